// Package machine holds what one run of the tests has on this machine, and removes all
// of it: processes, cgroups, mounts and files.
package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/test/daemons/ovs"
)

// prefix begins the name of each run's folder and cgroup.
const prefix = "ovs-offline-k8s-"

// keep is the environment variable that makes the program a keeper; its value is the
// folder of the run.
const keep = "OVS_OFFLINE_K8S_KEEP"

// Run has a folder, and a cgroup of the same name in every hierarchy. The program and
// all processes that it starts are in the cgroup. A second process, the keeper, removes
// both if the program ends without End, for example by SIGKILL.
type Run struct {
	Dir string // its path is short, because of the sockets in it

	lock   *os.File  // locked while the program or its keeper runs
	keeper *exec.Cmd // outside the cgroup
	alive  io.Closer // the keeper's standard input
}

// KeeperMain returns at once in an ordinary process. In a keeper, it waits for the end of
// the program, removes what the program left, and exits.
func KeeperMain() {
	dir := os.Getenv(keep)
	if dir == "" {
		return
	}
	io.Copy(io.Discard, os.Stdin)
	if sweep(dir) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// Begin removes what former runs left whose keeper was killed as well, and begins a run.
// It needs root and cgroup v2, or v1 in hybrid mode.
func Begin() (*Run, error) {
	if err := sweepFormer(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	r := &Run{Dir: dir}
	if err = r.begin(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return r, nil
}

func (r *Run) begin() (err error) {
	if r.lock, err = lock(r.Dir); err != nil {
		return err
	}
	if err := r.startKeeper(); err != nil {
		return err
	}
	program, err := r.Cgroup().Child("program")
	if err != nil {
		return err
	}
	folder, err := program.Unified()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte("0"), 0)
}

func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (r *Run) startKeeper() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	r.keeper = exec.Command(program)
	r.keeper.Env = append(os.Environ(), keep+"="+r.Dir)
	r.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C does not reach it
	r.keeper.ExtraFiles = []*os.File{r.lock}
	if r.alive, err = r.keeper.StdinPipe(); err != nil {
		return err
	}
	return r.keeper.Start()
}

// Cgroup returns the name of the run's cgroup.
func (r *Run) Cgroup() Cgroup { return CgroupOf(r.Dir) }

// CgroupOf returns the cgroup of the run that has the folder.
func CgroupOf(dir string) Cgroup { return Cgroup(filepath.Base(dir)) }

// End removes what is left of the run, except the program itself and its cgroup, and
// returns what should have gone before: the processes, mounts and cgroups that tests
// made and did not remove. The keeper removes the rest when the program has ended.
func (r *Run) End() (left []string) {
	left = r.left()
	for _, m := range r.mounts() {
		unix.Unmount(m, unix.MNT_DETACH)
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		left = append(left, err.Error())
	}
	return left
}

// left returns what is left of the run. What was ended a moment ago may still be there.
func (r *Run) left() (left []string) {
	_ = ovs.Until(context.Background(), "all of the run to end", func() bool {
		left = left[:0]
		for _, pid := range r.Cgroup().Processes() {
			if pid != os.Getpid() {
				left = append(left, "process "+CommandLine(pid))
			}
		}
		for _, m := range r.mounts() {
			left = append(left, "mount "+m)
		}
		left = append(left, r.cgroups()...)
		return len(left) == 0
	})
	return left
}

// cgroups returns the cgroups below the run's, except the program's.
func (r *Run) cgroups() (list []string) {
	for _, folder := range r.Cgroup().folders() {
		if name := filepath.Base(folder); name != "program" && name != string(r.Cgroup()) {
			list = append(list, "cgroup "+folder)
		}
	}
	return list
}

func (r *Run) mounts() []string { return mountsBelow(r.Dir) }

func mountsBelow(dir string) (points []string) {
	all, _ := mounts()
	for _, m := range all {
		if strings.HasPrefix(m.point, dir+"/") {
			points = append(points, m.point)
		}
	}
	return points
}

// CommandLine returns the pid, name and age of a process, and the beginning of its
// arguments.
func CommandLine(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	text := strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
	return fmt.Sprintf("%d %s, %.1f s old: %.80q", pid, strings.TrimSpace(string(name)), age(pid).Seconds(), text)
}

// age returns how long ago a process began.
func age(pid int) time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	uptime, _ := os.ReadFile("/proc/uptime")
	const ticks = 100 // per second, in proc(5)
	var began, now float64
	// The fields after the name, which may hold blanks: the first of them is the third.
	if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 19 {
		fmt.Sscan(fields[19], &began)
	}
	fmt.Sscan(string(uptime), &now)
	return time.Duration((now - began/ticks) * float64(time.Second))
}

// NamespacedPID returns the id of a process in its own pid namespace, in which the first
// process has 1. It returns 0 for a process that has ended.
func NamespacedPID(pid int) (id int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, line, found := strings.Cut(string(status), "NSpid:"); found {
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		id, _ = strconv.Atoi(words[len(words)-1])
	}
	return id
}

// sweepFormer removes the folders and cgroups of runs that have ended.
func sweepFormer() error {
	former, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range former {
		held, err := lock(dir)
		if err != nil { // it runs, or another user's
			continue
		}
		errs = append(errs, sweep(dir))
		held.Close()
	}
	return errors.Join(errs...)
}

// sweep removes the folder of a run that has ended, its cgroup, and all processes and
// mounts in these. Most mounts are in namespaces that end with their processes.
func sweep(dir string) error {
	err := CgroupOf(dir).Remove()
	for _, m := range mountsBelow(dir) {
		unix.Unmount(m, unix.MNT_DETACH)
	}
	return errors.Join(err, os.RemoveAll(dir))
}
