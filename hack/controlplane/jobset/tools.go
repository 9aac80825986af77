//go:build tools

// Package tools keeps the JobSet controller among the requirements of this module.
package tools

import _ "sigs.k8s.io/jobset"
