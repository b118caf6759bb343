// Package filelock locks a file against the other processes of this host. The kernel
// releases a lock when its process ends, however it ends.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// HeldError is the error of Take while another process holds the lock.
type HeldError struct{ PID string }

func (e *HeldError) Error() string { return "locked by the process " + e.PID }

// Lock is a lock that this process holds.
type Lock struct{ file *os.File }

// Take locks the file at path, which it creates if it is missing and never removes.
// It does not wait for another process that holds the lock: the error is a *HeldError. If
// the holder has removed the file, it locks a new one. If the holder has ended, it waits up
// to a second: a child that the holder had just forked has the file open until it executes
// its program. It also waits for a holder that has not written its number yet.
func Take(path string) (*Lock, error) {
	const patience, pause = time.Second, 5 * time.Millisecond
	for end := time.Now().Add(patience); ; {
		lock, err := take(path)
		var held *HeldError
		switch {
		case errors.As(err, &held) && (held.PID == "" || held.ended()) && time.Now().Before(end):
			time.Sleep(pause)
		case err != nil || lock.names(path):
			return lock, err
		default:
			lock.Release()
		}
	}
}

// ended reports whether the holder has ended.
func (e *HeldError) ended() bool {
	pid, err := strconv.Atoi(e.PID)
	return err == nil && pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}

// names reports whether path still names the locked file.
func (l *Lock) names(path string) bool {
	locked, err := l.file.Stat()
	if err != nil {
		return true // the holder cannot have removed a file that can't be examined
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(locked, named)
}

func take(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder := make([]byte, 64)
		n, _ := file.Read(holder)
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &HeldError{PID: strings.TrimSpace(string(holder[:n]))}
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := file.Truncate(0); err == nil {
		fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	return &Lock{file: file}, nil
}

// Release releases the lock.
func (l *Lock) Release() {
	// Closing the file is not enough: a child that was just forked has the file
	// open until it executes its program.
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	l.file.Close()
}
