package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// watch looks at the memory of a process and of its children until it is told
// to stop. What wait tells is of no use: a process starts with the peak of the
// one that forked it.
func watch(pid int, s *sample) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		const between = 4 * time.Millisecond
		tick := time.NewTicker(between)
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

// children are the processes that any thread of a process started.
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

// status reads a size of /proc/PID/status, in bytes; 0 where there is none.
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

// daemonsCPU is what the daemons of some folders have spent, in seconds, by pid.
func daemonsCPU(folders []string) map[int]float64 {
	spent := map[int]float64{}
	for _, folder := range folders {
		_ = eachPID(folder, func(pid int) error {
			raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, fields, found := strings.Cut(string(raw), ") ") // a name can hold anything
			if words := strings.Fields(fields); found && len(words) > 12 {
				user, _ := strconv.ParseFloat(words[11], 64)
				system, _ := strconv.ParseFloat(words[12], 64)
				const perSecond = 100 // USER_HZ, wherever Linux runs on amd64 and arm64
				spent[pid] = (user + system) / perSecond
			}
			return nil
		})
	}
	return spent
}

// eachPID calls do for the processes whose pid files stand below a folder.
func eachPID(below string, do func(pid int) error) error {
	return filepath.WalkDir(below, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".pid") {
			return nil // what is not there has no daemons
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil // it has just ended
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			return err
		}
		return do(pid)
	})
}

// endDaemons ends the daemons whose pid files stand below a folder.
func endDaemons(below string) error { return eachPID(below, end) }
