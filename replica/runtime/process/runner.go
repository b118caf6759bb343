//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process/namespace"
)

// runner is a process of this program in a root file system, which runs tools there. It
// ends with this process.
type runner struct {
	socket  *net.UnixConn // for requests: see package namespace
	output  *os.File      // what it printed: the reason why it ended
	ended   chan struct{} // closed when it has ended
	folders []folder      // of the host, when it was started
}

// folder identifies a folder: one that was removed and made again is another.
type folder struct{ device, inode uint64 }

func identify(paths []string) []folder {
	list := make([]folder, len(paths)) // zero for a missing folder
	for i, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			list[i] = folder{uint64(st.Dev), st.Ino}
		}
	}
	return list
}

// needRunner returns the runner, which it starts if necessary. A runner sees only the
// folders that existed when it was started.
func (r *Runtime) needRunner() (*runner, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	folders := identify(r.options.Folders)
	if r.runner != nil && slices.Equal(r.runner.folders, folders) {
		return r.runner, nil
	}
	r.dropRunner()
	ours, theirs, err := sockets()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	output, err := memoryFile()
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	cmd, err := helper(context.Background(), r.options.toolRequest(namespace.Runner, nil), []string{})
	if err == nil {
		cmd.ExtraFiles, cmd.Stderr = []*os.File{theirs}, output // the first is namespace.RunnerSocket
		err = r.options.explain(cmd.Start())
	}
	if err != nil {
		return nil, errors.Join(err, ours.Close(), output.Close())
	}
	r.runner = &runner{socket: ours, output: output, ended: make(chan struct{}), folders: folders}
	go func(runner *runner) {
		_ = cmd.Wait() // its output has the reason
		close(runner.ended)
	}(r.runner)
	return r.runner, nil
}

// dropRunner ends the runner, with r.mu locked. Tools that it runs are not ended.
func (r *Runtime) dropRunner() {
	if r.runner != nil {
		_ = r.runner.socket.Close()
		r.runner = nil
	}
}

func (r *Runtime) isCurrent(runner *runner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runner == runner
}

// runnerEndedError returns the error for a runner that has ended, and makes the next tool start
// another.
func (r *Runtime) runnerEndedError(runner *runner) error {
	r.mu.Lock()
	if r.runner == runner {
		r.dropRunner()
	}
	r.mu.Unlock()
	const timeout = time.Second
	select {
	case <-runner.ended:
	case <-time.After(timeout):
	}
	text, _ := io.ReadAll(io.NewSectionReader(runner.output, 0, 1<<16))
	return fmt.Errorf("the process that runs tools in the image's root has ended%s", daemon.Reason(string(text)))
}

// sockets returns a pair of connected sockets, on which each write is one message: one
// end for this process and one to hand on.
func sockets() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a pair of sockets: %w", err)
	}
	ends := []*os.File{os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")}
	conn, err := net.FileConn(ends[0]) // duplicates it
	_ = ends[0].Close()
	if err != nil {
		_ = ends[1].Close()
		return nil, nil, fmt.Errorf("using a pair of sockets: %w", err)
	}
	return conn.(*net.UnixConn), ends[1], nil
}
