//go:build linux

package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Started is a keeper whose replica is not complete yet: it ends with this process.
type Started struct {
	wd       *workdir.Dir
	lifeline *os.File
	log      *os.File // what it printed: the reason why it ended
}

// Start starts a keeper of the namespaces that a workdir has, if it has any: nil if not. It returns at once.
func Start(wd *workdir.Dir) (*Started, error) {
	if len(os.Args) > 0 && os.Args[0] == Name {
		return nil, errors.New("this process was started to keep network namespaces and did not")
	}
	if err := os.MkdirAll(wd.VarRunNamespaces(), 0o700); err != nil {
		return nil, err
	}
	socket, err := bind(wd.NamespacesSocket())
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	fd, err := unix.MemfdCreate("output", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	s := &Started{wd: wd, lifeline: writer, log: os.NewFile(uintptr(fd), "output")}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = []string{Name, wd.Path()}, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, "/"
	cmd.Stderr, cmd.ExtraFiles = s.log, []*os.File{socket, reader} // socketFD, lifelineFD
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("user, network, PID and mount namespaces can't be created: %w%s", err, causeOf(err)), writer.Close(), s.log.Close())
	}
	go func() { _ = cmd.Wait() }() // its output has the reason
	return s, nil
}

// causeOf returns the likely cause of an error of the kernel, as an appendix.
func causeOf(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return " (the limit user.max_user_namespaces, user.max_net_namespaces or user.max_pid_namespaces is reached)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return " (the system forbids them: kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp profile)"
	}
	return ""
}

// bind makes the socket at which the keeper will listen.
func bind(path string) (*os.File, error) {
	dir, err := os.Open(filepath.Dir(path)) // the address of a socket holds at most 107 bytes
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Report waits until all namespaces are restored and returns what was.
func (s *Started) Report(ctx context.Context) ([]*report.Namespace, error) {
	client, err := s.dial(ctx)
	if err != nil {
		return nil, s.explain(err)
	}
	defer func() { _ = client.Close() }()
	list, err := client.Report(ctx)
	return list, s.explain(err)
}

// dial connects to the keeper, which begins to listen when it is up.
func (s *Started) dial(ctx context.Context) (*linux.Client, error) {
	const timeout, pause = 5 * time.Second, time.Millisecond
	for deadline := time.Now().Add(timeout); ; time.Sleep(pause) {
		client, err := linux.Dial(s.wd)
		if err == nil {
			return client, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if printed := s.printed(); time.Now().After(deadline) || printed != "" {
			return nil, err
		}
	}
}

// printed returns what the keeper printed.
func (s *Started) printed() string {
	text := make([]byte, 4096)
	n, _ := s.log.ReadAt(text, 0)
	return strings.TrimSpace(string(text[:n]))
}

// explain adds what the keeper printed to an error.
func (s *Started) explain(err error) error {
	if err == nil {
		return nil
	}
	if printed := s.printed(); printed != "" {
		return fmt.Errorf("%s: %w", printed, err)
	}
	return err
}

// Complete lets the keeper live on after this process. Call Close after it.
func (s *Started) Complete() error {
	_, err := s.lifeline.Write([]byte{1})
	return err
}

// Close ends the keeper unless Complete was called.
func (s *Started) Close() error { return errors.Join(s.lifeline.Close(), s.log.Close()) }

// PID returns the process ID of the keeper of a workdir, 0 if none runs.
func PID(wd *workdir.Dir) int {
	client, err := linux.Dial(wd)
	if err != nil {
		return 0
	}
	defer func() { _ = client.Close() }()
	return client.PID()
}

// Stop ends the keeper of a workdir and all its namespaces, and removes its socket. Where the socket is lost, the
// keeper is found by its command line.
func Stop(ctx context.Context, wd *workdir.Dir) error {
	for _, pid := range running(wd) {
		if err := end(ctx, pid, wd); err != nil {
			return fmt.Errorf("the process that keeps the network namespaces: %w", err)
		}
	}
	if err := os.Remove(wd.NamespacesSocket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Remove(wd.VarRunNamespaces()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// running returns the process IDs of the keepers of a workdir.
func running(wd *workdir.Dir) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && isKeeper(pid, wd) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isKeeper reports whether a process keeps the namespaces of a workdir.
func isKeeper(pid int, wd *workdir.Dir) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Equal(line, []byte(Name+"\x00"+wd.Path()+"\x00"))
}

// end kills a keeper and waits for its end.
func end(ctx context.Context, pid int, wd *workdir.Dir) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(handle) }()
	if !isKeeper(pid, wd) {
		return nil
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	const timeout, poll = 10 * time.Second, 50 // milliseconds
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, poll)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		case n > 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
	return fmt.Errorf("process %d did not end within %v", pid, timeout)
}
