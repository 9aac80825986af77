//go:build tools

// Package tools keeps the Go original's manager, which ktrainer is compared with,
// among the requirements of this module.
package tools

import _ "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"
