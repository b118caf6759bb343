package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watch samples the memory of a process and of its children until stop is called.
// The peak that wait returns cannot be used, because a process inherits that of its
// parent.
func watch(pid int, s *sample) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		const interval = 4 * time.Millisecond
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			s.Peak = max(s.Peak, status(pid, "VmHWM:"))
			sum := status(pid, "VmRSS:")
			for _, child := range children(pid) {
				sum += status(child, "VmRSS:")
			}
			s.Together = max(s.Together, sum)
			select {
			case <-ended:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(ended); <-done }
}

// children returns the processes that any thread of a process started.
func children(pid int) []int {
	var found []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		raw, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(raw)) {
			if child, err := strconv.Atoi(word); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// status returns a size in /proc/PID/status in bytes, 0 if it is missing.
func status(pid int, key string) int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, text, found := strings.Cut(string(raw), key)
	if !found {
		return 0
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), " ")
	kilobytes, _ := strconv.ParseInt(text, 10, 64)
	return kilobytes << 10
}

// daemonsCPU returns the CPU time of the daemons of some folders, in seconds, by
// process ID.
func daemonsCPU(folders []string) map[int]float64 {
	spent := map[int]float64{}
	for _, folder := range folders {
		_ = eachPID(folder, func(pid int) error {
			raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, fields, found := strings.Cut(string(raw), ") ") // a name can hold any character
			if words := strings.Fields(fields); found && len(words) > 12 {
				user, _ := strconv.ParseFloat(words[11], 64)
				system, _ := strconv.ParseFloat(words[12], 64)
				const perSecond = 100 // USER_HZ, on Linux for amd64 and arm64
				spent[pid] = (user + system) / perSecond
			}
			return nil
		})
	}
	return spent
}

// eachPID calls do for the processes whose pid files are below a folder.
func eachPID(below string, do func(pid int) error) error {
	return filepath.WalkDir(below, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".pid") {
			return nil // a missing folder has no daemons
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil // the process has just ended
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			return err
		}
		return do(pid)
	})
}

// endDaemons ends the daemons whose pid files are below a folder, and waits until
// they have ended.
func endDaemons(below string) error {
	return eachPID(below, func(pid int) error {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		const pause, timeout = 2 * time.Millisecond, 10 * time.Second
		for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(pause) {
			// A zombie has no command line.
			if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err != nil || len(raw) == 0 {
				return nil
			}
		}
		return fmt.Errorf("process %d does not end", pid)
	})
}
