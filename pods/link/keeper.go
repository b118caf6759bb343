package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"ovs-offline/internal/filelock"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
)

// A keeper is a process that keeps streams to pods open for commands that follow one
// another, as those of a shell script: a new stream takes longer than most commands. There
// is one for each start of replicas, which commands of the same user reach at a socket. It
// ends by itself.

// need is what a command sends to the keeper: the pod that it needs a stream to.
type need struct {
	Pod     string `json:"pod"`     // as Host.Pod returns it
	Workdir string `json:"workdir"` // of a replica in it
}

// keeperPatience is how long a pod may take to answer a keeper, and that to answer a command.
const keeperPatience = 3 * time.Second

// RunKept does as Run, over the stream of a keeper if there is one that has a stream to the
// pod. If there is no keeper, it calls start afterwards, which starts one for the commands
// that follow.
func (l *Links) RunKept(ctx context.Context, wd *workdir.Dir, args []string, c runtime.Command, start func()) (exit int, err error) {
	state, err := replica.ReadState(wd)
	if err != nil || state.Pod == nil || c.Terminal {
		return l.Run(ctx, wd, args, c)
	}
	p, err := kept(ctx, wd, *state.Pod)
	if err == nil {
		defer p.close()
		return p.run(ctx, onWorkdir(state.Pod.Folder, args), c)
	}
	noKeeper := !errors.Is(err, errNotKept)
	exit, err = l.Run(ctx, wd, args, c)
	if err == nil && noKeeper {
		start()
	}
	return exit, err
}

// errNotKept is wrapped when a keeper answers that it has no stream to a pod.
var errNotKept = errors.New("the keeper has no stream")

// kept returns the link to a pod over the stream of a keeper.
func kept(ctx context.Context, wd *workdir.Dir, place replica.Place) (*pod, error) {
	path, err := keeperFolder(place.Set)
	if err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err := isPrivate(folder); err != nil {
		return nil, err
	}
	conn, err := dialIn(ctx, folder, keeperSocket)
	if err != nil {
		return nil, err
	}
	if err := ask(conn, need{Pod: place.UID, Workdir: wd.Path()}); err != nil {
		conn.Close()
		return nil, err
	}
	p := &pod{name: place.String()}
	return p, p.connect(ctx, func(context.Context) (io.ReadWriteCloser, error) { return conn, nil })
}

// ask asks a keeper for a stream, which the connection then is.
func ask(conn net.Conn, n need) error {
	conn.SetDeadline(time.Now().Add(2 * keeperPatience))
	defer conn.SetDeadline(time.Time{})
	if err := writeJSON(conn, frameRequest, n); err != nil {
		return err
	}
	var r reply
	if err := readJSON(conn, frameReply, &r); err != nil {
		return err
	}
	if r.Error != "" {
		return fmt.Errorf("%w: %s", errNotKept, r.Error)
	}
	return nil
}

// keeper keeps streams to pods open.
type keeper struct {
	links    *Links
	idle     time.Duration
	listener net.Listener

	mu    sync.Mutex
	pods  map[string]*pod // connected, by Host.Pod
	users int             // the number of commands that use a stream, or are about to
	end   *time.Timer     // closes the listener once there has been no user for idle
}

// Keep keeps streams to pods open for other commands: at first to that of the replica of a
// workdir. It returns once no command has used a stream for idle, once the pods are gone,
// or when ctx ends; at once if another process does the same for this start of replicas.
func (l *Links) Keep(ctx context.Context, wd *workdir.Dir, idle time.Duration) error {
	state, err := replica.ReadState(wd)
	if err != nil || state.Pod == nil {
		return err
	}
	folder, err := newKeeperFolder(state.Pod.Set)
	var held *filelock.HeldError
	if errors.As(err, &held) {
		return nil
	}
	if err != nil {
		return err
	}
	listener, err := listenIn(folder.path, keeperSocket)
	if err != nil {
		return errors.Join(err, folder.remove())
	}
	k := &keeper{links: l, idle: idle, listener: listener, pods: map[string]*pod{}, users: 1, end: time.NewTimer(idle)}
	k.serve(ctx, wd)
	return folder.remove()
}

// serve serves commands until the keeper has to end.
func (k *keeper) serve(ctx context.Context, wd *workdir.Dir) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { k.listener.Close() })()
	go func() {
		select {
		case <-k.end.C:
			k.listener.Close()
		case <-ctx.Done():
		}
	}()
	go func() {
		k.connect(ctx, wd)
		k.done()
	}()
	var commands sync.WaitGroup
	for {
		conn, err := k.listener.Accept()
		if err != nil {
			break
		}
		k.begin()
		commands.Go(func() {
			defer k.done()
			defer conn.Close()
			k.answer(ctx, conn)
		})
	}
	// One may have come just before the listener was closed.
	ended := make(chan struct{})
	go func() { commands.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// begin counts a user.
func (k *keeper) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users++
	k.end.Stop()
}

// done counts a user that has ended.
func (k *keeper) done() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users--
	k.wait()
}

// wait begins to wait for the end if there is no user. Without a pod there is nothing to
// wait for.
func (k *keeper) wait() {
	switch {
	case k.users > 0:
	case len(k.pods) == 0:
		k.end.Reset(0)
	default:
		k.end.Reset(k.idle)
	}
}

// connect connects to the pod of a workdir's replica.
func (k *keeper) connect(ctx context.Context, wd *workdir.Dir) {
	host, err := k.links.open(ctx, wd)
	if err != nil {
		return // the command itself says why
	}
	p, err := k.links.to(ctx, host)
	if err != nil || !p.answers() {
		return
	}
	id := host.Pod()
	k.mu.Lock()
	k.pods[id] = p
	k.mu.Unlock()
	go func() {
		<-p.lostSign()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.pods, id)
		k.wait()
	}()
}

// answer answers a command, and passes on what it sends and gets.
func (k *keeper) answer(ctx context.Context, conn net.Conn) {
	conn.SetDeadline(time.Now().Add(keeperPatience))
	var n need
	if err := readJSON(conn, frameRequest, &n); err != nil {
		return
	}
	k.mu.Lock()
	p := k.pods[n.Pod]
	k.mu.Unlock()
	if p == nil || !p.answers() {
		_ = writeJSON(conn, frameReply, reply{Error: "to " + n.Pod}) // fails if the command is gone
		if wd, err := workdir.Find(n.Workdir); err == nil && p == nil {
			k.connect(ctx, wd)
		}
		return
	}
	if err := writeJSON(conn, frameReply, reply{}); err != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	p.relay(conn)
}

// answers reports whether the pod answers now. If it does not, the link to it is closed.
func (p *pod) answers() bool {
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	answered := make(chan error, 1)
	go func() {
		_, err := session.Ping()
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(keeperPatience):
		session.Close()
		return false
	}
}

// lostSign returns a channel that is closed when the link to the pod is lost.
func (p *pod) lostSign() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.CloseChan()
}

// relay passes the requests of a command on to the pod until the command ends.
func (p *pod) relay(conn net.Conn) {
	near, err := yamux.Server(conn, config())
	if err != nil {
		return
	}
	defer near.Close()
	for {
		from, err := near.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		session := p.session
		p.mu.Unlock()
		to, err := session.OpenStream()
		if err != nil {
			return
		}
		go join(from, to)
	}
}
