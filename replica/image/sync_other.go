//go:build !linux

package image

import "golang.org/x/sys/unix"

// syncFiles waits until all files below a folder are on disk.
func syncFiles(string) error { return unix.Sync() }
