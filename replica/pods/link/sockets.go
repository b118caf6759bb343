package link

import (
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"ovs-offline/workdir"
)

// socket is a socket of a replica.
type socket struct {
	Folder string `json:"folder"` // in var-run: "ovs", "ovn_nb", "ovn_sb", "recorded"
	// Name is the name of the file. The control socket of a daemon has the name of its pid file
	// here: its own has the process ID, which the far end looks up for each connection.
	Name string `json:"name"`
}

// sockets are the sockets of one replica on this machine. They stay as they are if the pod
// is replaced: Connect leads them to the new one.
type sockets struct {
	links *Links
	wd    *workdir.Dir

	connecting sync.Mutex // held by Connect
	attempts   atomic.Int64
	failed     error // of the last attempt

	mu        sync.Mutex
	path      string // of the folder that stands for var-run; "" before the first Connect
	name      string // of the workdir's folder in the pod
	pod       *pod   // nil before the first Connect
	connected int    // how often Connect has connected
	listeners []net.Listener
	made      map[socket]bool
}

// VarRuns returns the folder with the folders of sockets, which Connect makes.
func (s *sockets) VarRuns() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

// Connected reports whether the sockets lead to the replica.
func (s *sockets) Connected() bool {
	pod, _ := s.currentName()
	return pod != nil && pod.connected() != nil
}

// Connections returns how often Connect has connected.
func (s *sockets) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected
}

func (s *sockets) currentName() (pod *pod, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pod, s.name
}

// Connect makes the sockets lead to the replica. If its pod was lost, it waits until the
// replica runs again. If it fails for one caller, it fails for all callers that wait.
func (s *sockets) Connect(ctx context.Context) error {
	before := s.attempts.Load()
	s.connecting.Lock()
	defer s.connecting.Unlock()
	switch {
	case s.Connected():
		return nil
	case s.attempts.Load() != before && s.failed != nil:
		return s.failed
	}
	err := s.connect(ctx)
	if ctx.Err() == nil {
		s.failed = err
		s.attempts.Add(1)
	}
	return err
}

func (s *sockets) connect(ctx context.Context) error {
	host, pod, err := s.links.reach(ctx, s.wd)
	if err != nil {
		return err
	}
	name := path.Base(host.Folder())
	found, err := pod.list(ctx, name)
	if err != nil {
		return err
	}
	if err := s.make(found); err != nil {
		return fmt.Errorf("sockets for the replica in %s: %w", host, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pod, s.name = pod, name
	s.connected++
	return nil
}

// maxSockets bounds the sockets of a replica. It has two for each bridge, and a few for each
// daemon; a pod could list many more.
const maxSockets = 4096

// make makes a socket on this machine for each socket of the replica that has none yet.
func (s *sockets) make(found []socket) error {
	if len(found) > maxSockets {
		return fmt.Errorf("the pod lists %d sockets, and a replica has at most %d", len(found), maxSockets)
	}
	varRuns, err := s.links.folderFor(s)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil {
		s.path, s.made = varRuns, map[socket]bool{}
	}
	for _, one := range found {
		if s.made[one] || !isFileName(one.Folder) || !isFileName(one.Name) || !isFileName(strings.TrimSuffix(one.Name, pidSuffix)) {
			continue
		}
		s.made[one] = true
		if err := s.listen(filepath.Join(varRuns, one.Folder), one); err != nil {
			return err
		}
	}
	return nil
}

// listen makes a socket and, for the control socket of a daemon, its pid file.
func (s *sockets) listen(folder string, one socket) error {
	const pid = "1" // tools and unixctl look for the socket PROGRAM.PID.ctl
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	name := one.Name
	if program, isPID := strings.CutSuffix(name, pidSuffix); isPID {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(pid+"\n"), 0o600); err != nil {
			return err
		}
		name = controlName(program, pid)
	}
	listener, err := listenIn(folder, name)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, listener)
	go s.accept(listener, one)
	return nil
}

// listenIn listens at a socket, whose path may be longer than an address can be.
func listenIn(folder, name string) (net.Listener, error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the descriptor in the path is closed; the folder is removed as a whole
	return listener, nil
}

// accept carries the connections to a socket.
func (s *sockets) accept(listener net.Listener, one socket) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		pod, name := s.currentName()
		if pod == nil {
			conn.Close()
			continue
		}
		go pod.forward(s.links.ctx, conn, path.Join(name, varRunName, one.Folder, one.Name))
	}
}

func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, listener := range s.listeners {
		listener.Close()
	}
}
