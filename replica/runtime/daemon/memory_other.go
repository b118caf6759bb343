//go:build !linux

package daemon

import "errors"

// LimitMemory returns an error: daemons run in the virtual machine of an engine.
func LimitMemory(int, func(int64) int64) (int64, error) {
	return 0, errors.New("its process is not visible here")
}
