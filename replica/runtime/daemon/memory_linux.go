package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"ovs-offline/internal/lazyregexp"
)

var vmData = lazyregexp.New(`(?m)^VmData:\s+([0-9]+) kB$`)

// LimitMemory limits the memory of a process to what it uses now and the room that the
// function returns for that, all in bytes. It returns the limit. Memory is what a
// process can write to and no file holds (RLIMIT_DATA, setrlimit(2)), whether it was
// touched or not. A daemon of OVS that gets no more memory aborts.
func LimitMemory(pid int, room func(used int64) int64) (limit int64, err error) {
	if pid == 0 {
		return 0, errors.New("its process is not visible here")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	match := vmData.FindSubmatch(status)
	if match == nil {
		return 0, fmt.Errorf("/proc/%d/status has no VmData", pid)
	}
	used, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		return 0, err
	}
	used <<= 10
	limit = used + room(used)
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &old); err != nil {
		return 0, fmt.Errorf("reading its limits: %w", err)
	}
	// The hard limit stays: a process can raise its own limit only up to that.
	wanted := unix.Rlimit{Cur: min(uint64(limit), old.Max), Max: old.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &wanted, nil); err != nil {
		return 0, fmt.Errorf("setting its limit: %w", err)
	}
	return int64(wanted.Cur), nil
}
