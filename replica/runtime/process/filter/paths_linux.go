//go:build linux && !amd64

package filter

// pathCalls are system calls that only older architectures have.
var pathCalls []uint32
