//go:build !linux

package archive

import "io"

// widen leaves a pipe as it is: its size is the system's affair here.
func widen(io.ReadCloser) {}
