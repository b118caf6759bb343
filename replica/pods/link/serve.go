package link

import (
	"context"
	"encoding/json"
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

	"golang.org/x/crypto/ssh"

	"ovs-offline/workdir"
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

// Serve serves the near end until the stream or ctx ends, and then ends what still runs. It
// reports whether that was the case: programs that a command had started may be left.
func (s *Server) Serve(ctx context.Context, stream io.ReadWriteCloser) (cut bool, err error) {
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return false, err
	}
	defer root.Close()
	config, err := farConfig()
	if err != nil {
		return false, err
	}
	transport := newTransport(stream)
	defer context.AfterFunc(ctx, func() { transport.Close() })()
	tooLong := time.AfterFunc(silence, func() { transport.Close() })
	conn, channels, requests, err := ssh.NewServerConn(transport, config)
	tooLong.Stop()
	if err != nil {
		return false, fmt.Errorf("the near end of the link: %w", errors.Join(ctx.Err(), err))
	}
	go ssh.DiscardRequests(requests)
	go keepAlive(conn, transport, pause, silence)
	end := &end{server: s, root: root}
	end.serve(ctx, channels)
	return end.cut.Load(), ctx.Err()
}

// end is a far end while it serves.
type end struct {
	server *Server
	root   *os.Root
	cut    atomic.Bool // a run was ended early
}

// serve serves channels until the connection ends, and then waits a while for channels in progress.
func (e *end) serve(ctx context.Context, channels <-chan ssh.NewChannel) {
	const patience = 10 * time.Second // in which a command can end its own daemons
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxChannels)
	for asked := range channels {
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-slots }()
				e.answer(ctx, asked)
			})
		default:
			_ = asked.Reject(ssh.ResourceShortage, fmt.Sprintf("%d connections and commands are in progress", maxChannels)) // fails if the near end is gone
		}
	}
	cancel()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		e.cut.Store(true)
	}
}

// answer serves a channel until it ends.
func (e *end) answer(ctx context.Context, asked ssh.NewChannel) {
	var err error
	switch asked.ChannelType() {
	case channelSession:
		if channel, requests, err := asked.Accept(); err == nil {
			e.session(ctx, channel, requests)
		}
	case channelList:
		err = e.list(asked)
	case channelSocket:
		err = e.dial(ctx, asked)
	default:
		err = errors.New("a link has no channels of this type")
	}
	if err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, err.Error()) // fails if it was accepted, or the near end is gone
	}
}

// list sends the sockets of a workdir's replica.
func (e *end) list(asked ssh.NewChannel) error {
	found, err := e.socketsOf(string(asked.ExtraData()))
	if err != nil {
		return err
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		return err
	}
	defer channel.Close()
	go ssh.DiscardRequests(requests)
	return json.NewEncoder(channel).Encode(found)
}

// socketsOf returns the sockets of a workdir's replica.
func (e *end) socketsOf(name string) ([]socket, error) {
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
			socket := socket{Folder: folder.Name(), Name: entry.Name()}
			if program, isControl := controlled(entry.Name()); isControl {
				socket.Name = program + pidSuffix
			}
			found = append(found, socket)
		}
	}
	return found, nil
}

// varRunName is the name of workdir.VarRuns in a workdir.
var varRunName = filepath.Base((&workdir.Dir{}).VarRuns())

// pidSuffix ends the name of the pid file of a daemon.
const pidSuffix = ".pid"

// controlName returns the name of the control socket of a daemon.
func controlName(program, pid string) string { return program + "." + pid + ".ctl" }

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

// dial connects a channel to a socket.
func (e *end) dial(ctx context.Context, asked ssh.NewChannel) error {
	var payload socketPayload
	if err := ssh.Unmarshal(asked.ExtraData(), &payload); err != nil {
		return err
	}
	conn, err := e.connect(ctx, payload.Path)
	if err != nil {
		return err
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	go ssh.DiscardRequests(requests)
	join(conn, channel)
	return nil
}

// connect connects to a socket in the folders of a workdir's replica, and to no other: the
// root follows no link that leads out of it.
func (e *end) connect(ctx context.Context, path string) (net.Conn, error) {
	parts := strings.Split(path, "/")
	if len(parts) != 4 || !workdir.IsNodeName(parts[0]) || parts[1] != varRunName || !isFileName(parts[2]) || !isFileName(parts[3]) {
		return nil, fmt.Errorf("%q is not the path of a socket of a replica", path)
	}
	folder, err := e.root.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	name, err := socketName(folder, parts[3])
	if err != nil {
		return nil, err
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

// socketName returns the name of a socket in a folder: the name of a pid file stands for the
// control socket of its daemon.
func socketName(folder *os.Root, name string) (string, error) {
	program, isPID := strings.CutSuffix(name, pidSuffix)
	if !isPID {
		return name, nil
	}
	pid, err := folder.ReadFile(name)
	if err != nil {
		return "", err
	}
	name = controlName(program, strings.TrimSpace(string(pid)))
	if !isFileName(name) {
		return "", fmt.Errorf("%q is not the name of a socket", name)
	}
	return name, nil
}

// dialIn connects to a socket through the descriptor of its folder.
func dialIn(ctx context.Context, folder *os.Root, name string) (net.Conn, error) {
	dir, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name))
}

// isFileName reports whether a text names a file in a folder.
func isFileName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= 255 && !strings.ContainsAny(name, "/\x00")
}
