//go:build !linux

package process

import (
	"errors"

	"ovs-offline/replica/runtime"
)

// Supported returns why local processes are not available on this system.
func Supported() error {
	return errors.New("replicas run on Linux only, or in the pods of a cluster: use --runtime kubernetes")
}

// New returns nil: call Supported first.
func New(Options) runtime.Runtime { return nil }

// RunningRoot returns "": no daemon runs.
func RunningRoot(string) string { return "" }

// Landlock returns 0: only Linux has it.
func Landlock() int { return 0 }
