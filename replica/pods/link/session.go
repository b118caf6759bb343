package link

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// endSession ends the processes of a session as the end of its terminal does, by SIGHUP, and
// kills what is left. The leader is a child of this process, which waits for it.
func endSession(leader int) {
	const (
		polite = 2 * time.Second // in which a process can end itself
		most   = 5 * time.Second // in which a killed one ends
		pause  = 10 * time.Millisecond
	)
	signalAll(members(leader), unix.SIGHUP)
	signalAll(members(leader), unix.SIGCONT) // a stopped process would not end
	for end := time.Now().Add(polite); time.Now().Before(end); time.Sleep(pause) {
		if len(members(leader)) == 0 {
			return
		}
	}
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(pause) {
		left := members(leader)
		if len(left) == 0 {
			return
		}
		signalAll(left, unix.SIGKILL) // again for children that were made meanwhile
	}
}

func signalAll(pids []int, signal unix.Signal) {
	for _, pid := range pids {
		_ = unix.Kill(pid, signal) // fails if it has ended
	}
}

// members returns the processes of a session that have not ended.
func members(leader int) (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range found {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var state string
		var parent, group, session int
		// The name, which may hold anything, ends with the last parenthesis: see proc(5).
		rest := stat[bytes.LastIndexByte(stat, ')')+1:]
		if _, err := fmt.Sscan(string(rest), &state, &parent, &group, &session); err != nil || session != leader || state == "Z" || state == "X" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
