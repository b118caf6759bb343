//go:build !linux

package daemon

// Listener returns false: replicas run on Linux only.
func Listener(string) (pid, uid int, ok bool) { return 0, -1, false }
