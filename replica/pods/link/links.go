package link

import (
	"context"
	"errors"
	"io"
	"path"
	"sync"
	"time"

	"ovs-offline/internal/logging"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// Program is the name of ovs-offline in a pod.
const Program = "ovs-offline"

// Host is the pod of a replica, as package pods has it.
type Host interface {
	// Pod identifies the pod: hosts of one pod return the same text.
	Pod() string
	// Folder returns the path of the replica's workdir in the pod.
	Folder() string
	// String names the pod in messages.
	String() string
	// Stream runs a program in the pod and returns its standard input and output.
	Stream(ctx context.Context, argv ...string) (io.ReadWriteCloser, error)
}

// Attempt is the reason why the host of a replica is opened.
type Attempt int

const (
	First     Attempt = iota // nothing
	Unreached                // the host that First gave can't be reached
	Lost                     // the connection to the host was lost
)

// Open returns the host of the replica of a workdir. At the first attempt it is the recorded
// one; whether that still runs is seen when it is used. Later, Open asks the cluster, and may
// load the replica again.
type Open func(ctx context.Context, wd *workdir.Dir, attempt Attempt) (Host, error)

// Links are the links of one command to the pods of replicas: one stream to each pod. They
// can be used concurrently.
type Links struct {
	open     Open
	patience time.Duration // patienceFirst, but in tests

	mu      sync.Mutex
	pods    map[string]*pod     // by Host.Pod
	hosts   map[string]Host     // that were reached, by the path of the workdir
	sockets map[string]*sockets // by the path of the workdir
	folder  *folder             // nil until it is needed
	closed  bool
	end     context.CancelFunc
	ctx     context.Context // ends with Close
}

// New returns Links that connect to no pod yet. Close ends them.
func New(open Open) *Links {
	links := &Links{open: open, patience: patienceFirst, pods: map[string]*pod{}, hosts: map[string]Host{}, sockets: map[string]*sockets{}}
	links.ctx, links.end = context.WithCancel(context.Background())
	return links
}

// Close ends all connections and removes the files of the links.
func (l *Links) Close() error {
	l.end()
	l.mu.Lock()
	l.closed = true
	pods, all, folder := l.pods, l.sockets, l.folder
	l.mu.Unlock()
	for _, sockets := range all {
		sockets.close()
	}
	for _, pod := range pods {
		pod.close()
	}
	if folder == nil {
		return nil
	}
	return folder.remove()
}

// Linked reports whether the replica of a workdir runs in a pod.
func Linked(wd *workdir.Dir) bool {
	state, err := replica.ReadState(wd)
	return err == nil && state.Pod != nil
}

// Link returns the sockets of a workdir's replica if it runs in a pod, nil otherwise.
func (l *Links) Link(wd *workdir.Dir) workdir.Sockets {
	if !Linked(wd) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sockets[wd.Path()]
	if s == nil {
		s = &sockets{links: l, wd: wd}
		l.sockets[wd.Path()] = s
	}
	return s
}

// Executor returns the executor that runs programs beside the replica of a workdir, with
// the environment that they need there: it takes no variables.
func (l *Links) Executor(wd *workdir.Dir) runtime.Executor { return executor{l, wd} }

type executor struct {
	links *Links
	wd    *workdir.Dir
}

// Exec runs a program.
func (e executor) Exec(ctx context.Context, command runtime.Command) (exit int, err error) {
	return e.links.Run(ctx, e.wd, append([]string{"exec", "--"}, command.Argv...), command)
}

// Run runs a command of ovs-offline on the workdir of a replica in its pod, with the
// streams of the command, and returns its exit code. With Terminal, standard input and output are a
// terminal of this process: the command gets a terminal in the pod, and what it prints there
// is standard output.
func (l *Links) Run(ctx context.Context, wd *workdir.Dir, args []string, command runtime.Command) (exit int, err error) {
	host, pod, err := l.reach(ctx, wd)
	if err != nil {
		return 0, err
	}
	return pod.run(ctx, append([]string{"--workdir=" + host.Folder()}, args...), command)
}

// patienceFirst is how long the recorded pod of a replica may take to answer before the cluster is
// asked about it. To ask first would take each command another connection.
const patienceFirst = 3 * time.Second

// reach returns the host of the replica of a workdir, and the link to it, connected.
func (l *Links) reach(ctx context.Context, wd *workdir.Dir) (Host, *pod, error) {
	l.mu.Lock()
	host, closed := l.hosts[wd.Path()], l.closed
	l.mu.Unlock()
	if closed {
		return nil, nil, errors.New("the command has ended")
	}
	attempt := Lost
	if host == nil {
		attempt = Unreached
		first, err := l.open(ctx, wd, First)
		if err != nil {
			return nil, nil, err
		}
		limited, cancel := context.WithTimeout(ctx, l.patience)
		pod, err := l.linkedPod(limited, wd, first)
		cancel()
		if err == nil || ctx.Err() != nil {
			return first, pod, err
		}
		logging.FromContext(ctx).Debug("ask the cluster about a pod", "pod", first.String(), "error", err)
	} else if pod := l.linkTo(host); pod.connected() != nil {
		return host, pod, nil
	}
	host, err := l.open(ctx, wd, attempt)
	if err != nil {
		return nil, nil, err
	}
	pod, err := l.linkedPod(ctx, wd, host)
	return host, pod, err
}

// linkTo returns the link to a pod.
func (l *Links) linkTo(host Host) *pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.pods[host.Pod()]
	if pod == nil {
		pod = newPod(host.String())
		l.pods[host.Pod()] = pod
	}
	return pod
}

// linkedPod returns the link to the pod of a workdir's replica, connected.
func (l *Links) linkedPod(ctx context.Context, wd *workdir.Dir, host Host) (*pod, error) {
	pod := l.linkTo(host)
	// The stream serves other questions as well: it does not end with the context of this one.
	err := pod.connect(ctx, func() (io.ReadWriteCloser, error) {
		return host.Stream(l.ctx, Program, "--workdir="+path.Dir(host.Folder()), "pod", "link")
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hosts[wd.Path()] = host
	return pod, nil
}
