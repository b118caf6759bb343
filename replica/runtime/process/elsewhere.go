//go:build !linux

package process

import (
	"errors"

	"ovs-offline/replica/runtime"
)

// Supported returns why local processes are not available on this system.
func Supported() error {
	return errors.New("local processes run on Linux only: use --runtime podman or docker")
}

// New returns nil: call Supported first.
func New(Options) runtime.Runtime { return nil }

// RunningRoot returns "": no daemon runs.
func RunningRoot(string) string { return "" }
