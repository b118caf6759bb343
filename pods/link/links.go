package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
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

// Open returns the host of the replica of a workdir. It may load the replica anew.
type Open func(ctx context.Context, wd *workdir.Dir) (Host, error)

// Links are the links of one command to the pods of replicas: one stream to each pod. They
// can be used concurrently.
type Links struct {
	open Open

	mu      sync.Mutex
	pods    map[string]*pod
	sockets map[string]*sockets // by the path of the workdir
	folder  *folder             // nil until it is needed
	closed  bool
	end     context.CancelFunc
	ctx     context.Context // ends with Close
}

// New returns Links that connect to no pod yet. Close ends them.
func New(open Open) *Links {
	l := &Links{open: open, pods: map[string]*pod{}, sockets: map[string]*sockets{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	return l
}

// Close ends all connections and removes the files of the links.
func (l *Links) Close() error {
	l.end()
	l.mu.Lock()
	l.closed = true
	pods, all, folder := l.pods, l.sockets, l.folder
	l.mu.Unlock()
	for _, s := range all {
		s.close()
	}
	for _, p := range pods {
		p.close()
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
func (e executor) Exec(ctx context.Context, c runtime.Command) (exit int, err error) {
	return e.links.Run(ctx, e.wd, append([]string{"exec", "--"}, c.Argv...), c)
}

// Run runs a command of ovs-offline on the workdir of a replica in its pod, with the
// streams of c, and returns its exit code. With Terminal, standard input and output are a
// terminal of this process: the command gets a terminal in the pod, and what it prints there
// is standard output.
func (l *Links) Run(ctx context.Context, wd *workdir.Dir, args []string, c runtime.Command) (exit int, err error) {
	host, err := l.open(ctx, wd)
	if err != nil {
		return 0, err
	}
	args = onWorkdir(host.Folder(), args)
	p, err := l.to(ctx, host)
	if err != nil {
		return 0, err
	}
	return p.run(ctx, args, c)
}

// onWorkdir returns a command line of ovs-offline for a workdir.
func onWorkdir(path string, args []string) []string {
	return append([]string{"--workdir=" + path}, args...)
}

// to returns the link to a pod, connected.
func (l *Links) to(ctx context.Context, host Host) (*pod, error) {
	l.mu.Lock()
	p := l.pods[host.Pod()]
	if p == nil {
		p = &pod{name: host.String()}
		l.pods[host.Pod()] = p
	}
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return nil, errors.New("the command has ended")
	}
	// The stream serves other questions as well: it does not end with the context of this one.
	return p, p.connect(ctx, func(context.Context) (io.ReadWriteCloser, error) {
		return host.Stream(l.ctx, Program, "--workdir="+path.Dir(host.Folder()), "pod", "link")
	})
}

// exitOf returns the exit code in the reply of a run.
func exitOf(content []byte) (int, error) {
	var r reply
	if err := json.Unmarshal(content, &r); err != nil {
		return 0, fmt.Errorf("%w: %w", errFrame, err)
	}
	if r.Error != "" {
		return 0, fmt.Errorf("%w: %s", errRun, r.Error)
	}
	return r.Exit, nil
}
