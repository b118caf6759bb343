//go:build !linux

package container

import "os"

// SocketOwner is the user as whom an engine's service runs. Here it runs in a
// virtual machine, as a user there, and shares files as the caller's.
func SocketOwner(string) (uid int, err error) { return os.Geteuid(), nil }
