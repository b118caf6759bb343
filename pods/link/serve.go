package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"ovs-offline/internal/workdir"
)

// Server is the far end of a link.
type Server struct {
	// Root is the folder of the workdirs whose sockets may be used.
	Root string
	// Run runs a command line of ovs-offline and returns its exit code. It ends early if
	// ctx does.
	Run func(ctx context.Context, args []string, stdin, stdout, stderr *os.File) int
	// Command returns a process that runs a command line of ovs-offline. Commands with a
	// terminal run in one: only a process can have a terminal of its own.
	Command func(args []string) *exec.Cmd
}

// Serve answers requests until the stream or ctx ends, and then ends what still runs. It
// reports whether that was the case: programs that a command had started may be left.
func (s *Server) Serve(ctx context.Context, stream io.ReadWriteCloser) (cut bool, err error) {
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return false, err
	}
	defer root.Close()
	session, err := yamux.Server(stream, config())
	if err != nil {
		return false, err
	}
	defer context.AfterFunc(ctx, func() { session.Close() })()
	e := &end{server: s, root: root, inputs: map[runNumber]chan net.Conn{}}
	e.serve(ctx, session)
	return e.cut.Load(), ctx.Err()
}

// end is a far end while it serves.
type end struct {
	server *Server
	root   *os.Root
	cut    atomic.Bool // a run was ended early

	mu     sync.Mutex
	inputs map[runNumber]chan net.Conn
}

// serve answers requests until the session ends, and waits a while for the requests in progress.
func (e *end) serve(ctx context.Context, session *yamux.Session) {
	const patience = 10 * time.Second // in which a command can end its own daemons
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for {
		stream, err := session.Accept()
		if err != nil {
			break
		}
		wg.Go(func() {
			defer stream.Close()
			e.answer(ctx, stream)
		})
	}
	cancel()
	session.Close()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		e.cut.Store(true)
	}
}

func (e *end) answer(ctx context.Context, stream net.Conn) {
	var q request
	if err := readJSON(stream, frameRequest, &q); err != nil {
		return // the near end is gone, or of another version, which it notices itself
	}
	switch {
	case q.List != nil:
		var r reply
		found, err := e.list(*q.List)
		if r.Sockets = found; err != nil {
			r.Error = err.Error()
		}
		_ = writeJSON(stream, frameReply, r) // fails if the near end is gone
	case q.Dial != nil:
		e.dial(ctx, stream, *q.Dial)
	case q.Run != nil:
		e.run(ctx, stream, *q.Run)
	case q.In != nil:
		e.pass(ctx, stream, *q.In)
	}
}

// list returns the sockets of a workdir's replica.
func (e *end) list(name string) ([]socket, error) {
	if !workdir.IsNodeName(name) {
		return nil, fmt.Errorf("%q is not the name of a workdir", name)
	}
	varRun := filepath.Join(name, varRunName)
	folders, err := fs.ReadDir(e.root.FS(), varRun)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no replica runs
	}
	if err != nil {
		return nil, err
	}
	var found []socket
	for _, folder := range folders {
		entries, err := fs.ReadDir(e.root.FS(), filepath.Join(varRun, folder.Name()))
		if err != nil {
			continue // no folder
		}
		for _, entry := range entries {
			if entry.Type() != fs.ModeSocket {
				continue
			}
			s := socket{Folder: folder.Name(), Name: entry.Name()}
			if program, isControl := controlled(entry.Name()); isControl {
				s = socket{Folder: folder.Name(), Program: program}
			}
			found = append(found, s)
		}
	}
	return found, nil
}

// varRunName is the name of workdir.VarRuns in a workdir.
var varRunName = filepath.Base((&workdir.Dir{}).VarRuns())

// controlled returns the program of a control socket, whose name is PROGRAM.PID.ctl.
func controlled(name string) (program string, ok bool) {
	rest, ok := strings.CutSuffix(name, ".ctl")
	if !ok {
		return "", false
	}
	program, pid, _ := strings.Cut(rest, ".")
	_, err := strconv.Atoi(pid)
	return program, err == nil
}

// dial connects a stream to a socket.
func (e *end) dial(ctx context.Context, stream net.Conn, s socket) {
	conn, err := e.connect(ctx, s)
	if err != nil {
		_ = writeJSON(stream, frameReply, reply{Error: err.Error()}) // fails if the near end is gone
		return
	}
	if writeJSON(stream, frameReply, reply{}) != nil {
		conn.Close()
		return
	}
	join(conn, stream)
}

// join copies between two connections until one of them ends, and closes both.
func join(a, b net.Conn) {
	go func() {
		_, _ = io.Copy(a, b) // an error is the end of either
		a.Close()
		b.Close()
	}()
	_, _ = io.Copy(b, a)
	a.Close()
	b.Close()
}

// connect connects to a socket in the folders of a workdir's replica, and to no other: the
// root follows no link that leads out of it.
func (e *end) connect(ctx context.Context, s socket) (net.Conn, error) {
	name := s.Name
	if !workdir.IsNodeName(s.Workdir) || !isFileName(s.Folder) || name != "" && !isFileName(name) || s.Program != "" && !isFileName(s.Program) {
		return nil, fmt.Errorf("%q, %q, %q is not a socket of a replica", s.Workdir, s.Folder, s.Program+name)
	}
	folder, err := e.root.OpenRoot(filepath.Join(s.Workdir, varRunName, s.Folder))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if s.Program != "" {
		pid, err := folder.ReadFile(s.Program + ".pid")
		if err != nil {
			return nil, err
		}
		name = s.Program + "." + strings.TrimSpace(string(pid)) + ".ctl"
	}
	info, err := folder.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is not a socket", name)
	}
	return dialIn(ctx, folder, name)
}

// dialIn connects to a socket through the descriptor of its folder.
func dialIn(ctx context.Context, folder *os.Root, name string) (net.Conn, error) {
	dir, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name))
}

// isFileName reports whether a text names a file in a folder.
func isFileName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}
