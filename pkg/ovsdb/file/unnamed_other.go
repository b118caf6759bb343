//go:build !linux

package file

import "os"

func makeUnnamed(folder string) (*os.File, error) { return removeNamed(folder) }
