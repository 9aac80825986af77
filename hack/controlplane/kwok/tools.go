//go:build tools

// Package tools keeps the kwok controller, which plays the nodes, among the requirements of this module.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
