package k8s

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
)

// stall is the flag for how long a stream may stall.
const stall = "--request-timeout=3s"

// How many runs have a fault: whichever of its rows, each protocol meets each twice at least.
var (
	// nodeRuns have a fault in the connections or processes of one node of a real cluster.
	nodeRuns = sweep.Count(250, 60)
	// serverRuns have a fault of the API server, which all workers share. It happens while all of them collect.
	serverRuns = sweep.Count(50, 12)
	// standInRuns have a fault behind a stand-in.
	standInRuns = sweep.Count(40, 20)
)

// The faults of processes.
const (
	interrupted = "SIGINT"
	killed      = "SIGKILL"
	stopped     = "SIGSTOP"
)

// breakdown is a fault at a place of the way from client to pod.
type breakdown struct {
	place string
	kind  string
	// after is the number of bytes after which it happens: of one connection for faults
	// of connections, and of all bytes that reach the client for those of processes.
	after int64
	times int           // how many connections fail, 0 for all
	gap   time.Duration // until a process is continued or started again; 0: not before the client ends
	fault cluster.Kind  // of a connection
}

func (b breakdown) String() string {
	switch {
	case b.place == container || b.place == pod:
		return b.kind + " of the " + b.place
	case b.kind == killed && b.place != theClient:
		return fmt.Sprintf("%s of the %s, started again after %s", b.kind, b.place, b.gap)
	case b.kind == stopped && b.gap > 0:
		return fmt.Sprintf("%s of the %s, continued after %s", b.kind, b.place, b.gap)
	case b.kind != "":
		return fmt.Sprintf("%s of the %s", b.kind, b.place)
	}
	return fmt.Sprintf("%s of the connection %s", b.fault, b.place)
}

// Places: connections, processes, things in the cluster, and two behind a stand-in.
const (
	toServer   = "client to API server"
	toKubelet  = "API server to kubelet"
	theClient  = "client"
	kubelet    = "kubelet"
	containerd = "containerd"
	apiServer  = "API server"
	container  = "container"
	pod        = "pod"
	toRuntime  = "kubelet to container runtime"
	theCommand = "command in the pod"
)

// nodeFaults are the kinds of faults at each place of a node.
func nodeFaults() []breakdown {
	return slices.Concat(connectionFaults(toServer), connectionFaults(toKubelet), []breakdown{
		{place: theClient, kind: interrupted}, {place: theClient, kind: killed}, {place: theClient, kind: stopped},
		{place: kubelet, kind: killed}, {place: kubelet, kind: stopped},
		{place: containerd, kind: killed}, {place: containerd, kind: stopped},
	})
}

// serverFaults are the kinds of faults of the API server.
func serverFaults() []breakdown {
	return []breakdown{{place: apiServer, kind: killed}, {place: apiServer, kind: stopped}}
}

// standInFaults are the kinds of faults behind a stand-in.
func standInFaults() []breakdown {
	return append(connectionFaults(toRuntime), breakdown{place: theCommand, fault: cluster.Kill})
}

func connectionFaults(place string) []breakdown {
	return []breakdown{{place: place, fault: cluster.Close}, {place: place, fault: cluster.Reset},
		{place: place, fault: cluster.HalfClose}, {place: place, fault: cluster.Stall}}
}

// draw returns a breakdown of a kind, at a random byte and for a random time.
func (w *worker) draw(b breakdown, chance *rand.Rand) breakdown {
	switch b.place {
	case toServer, toKubelet, toRuntime, theCommand:
		b.times = []int{1, 1, 2, 0}[chance.IntN(4)]
		b.after = near(chance, w.longest[b.place])
	case theClient:
		b.gap = []time.Duration{time.Second, 5 * time.Second, 0}[chance.IntN(3)]
		b.after = near(chance, w.total)
		if b.kind == interrupted {
			b.after /= 2 // not after its end
		}
	default:
		b.gap = gaps[chance.IntN(len(gaps))]
		if b.kind == stopped && chance.IntN(3) == 0 {
			b.gap = 0
		}
		b.after = near(chance, w.total)
	}
	return b
}

// near returns a number of bytes up to most: anywhere or, since most streams are short,
// near the start; sometimes 0, where nothing has been answered.
func near(chance *rand.Rand, most int64) int64 {
	switch n := chance.Int64N(max(1, most)); chance.IntN(8) {
	case 0:
		return 0
	case 1, 2, 3:
		return min(n, chance.Int64N(1<<(8+chance.IntN(10))))
	default:
		return n
	}
}

// strike makes a breakdown happen at most once, and undoes it.
type strike struct {
	do, undo func()
	gap      time.Duration // 0: undone by end

	mu               sync.Mutex
	happened, undone time.Time // zero if it has not
	over             bool
}

// now makes the breakdown happen.
func (s *strike) now() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || !s.happened.IsZero() {
		return
	}
	s.happened = time.Now()
	s.do()
	if s.gap > 0 {
		time.AfterFunc(s.gap, s.restore)
	}
}

// restore undoes the breakdown if it has happened.
func (s *strike) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.happened.IsZero() && s.undone.IsZero() {
		s.undone = time.Now()
		s.undo()
	}
}

// end undoes the breakdown, or keeps it from happening. It returns when it happened and
// was undone, zero times if it has not happened.
func (s *strike) end() (happened, undone time.Time) {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.restore()
	return s.happened, s.undone
}

// onProcess returns a strike on a server, which is started again or continued after it.
func onProcess(t *testing.T, p *cluster.Process, b breakdown) *strike {
	s := &strike{gap: b.gap}
	if b.kind == stopped {
		s.do, s.undo = func() { p.Signal(syscall.SIGSTOP) }, func() { p.Signal(syscall.SIGCONT) }
		return s
	}
	s.do = p.Kill
	s.undo = func() {
		if err := p.Start(); err != nil {
			t.Error(err)
		}
	}
	return s
}

// onClient returns a strike on collect-k8s. One that is stopped for good is killed later.
func onClient(command *exec.Cmd, b breakdown) *strike {
	signal := func(s syscall.Signal) func() { return func() { command.Process.Signal(s) } }
	s := &strike{gap: b.gap, undo: func() {}}
	switch b.kind {
	case interrupted:
		s.do = signal(syscall.SIGINT)
	case killed:
		s.do = signal(syscall.SIGKILL)
	default:
		s.do, s.undo = signal(syscall.SIGSTOP), signal(syscall.SIGCONT)
		if s.gap == 0 {
			s.gap, s.undo = 4*time.Second, signal(syscall.SIGKILL)
		}
	}
	return s
}

// onHop lets the connections through a hop fail, and returns how to end that.
func onHop(hop *cluster.Hop, b breakdown) (end func() bool) {
	hop.Break(&cluster.Fault{Kind: b.fault, After: b.after, Times: b.times})
	return func() bool {
		happened := hop.Happened() > 0
		hop.Break(nil)
		return happened
	}
}

// worker is a node to which each part of the way from client to pod can fail by itself,
// except the API server.
type worker struct {
	c         *cluster.Cluster
	node      *cluster.Node
	way, user string // WebSocket or SPDY, and a user that has no other
	hops      map[string]*cluster.Hop
	pods      []cluster.Pod
	dir       string
	count     int
	// In a run without faults:
	total   int64            // bytes that reach the client
	longest map[string]int64 // bytes of the longest connection through a hop
	took    time.Duration
}

func newWorker(t *testing.T, c *cluster.Cluster, b *builder, number int) *worker {
	t.Helper()
	hop, err := cluster.Listen(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hop.Stop)
	w := &worker{c: c, node: b.node, pods: b.pods, way: "WebSocket", user: cluster.Admin, dir: t.TempDir(),
		hops: map[string]*cluster.Hop{toServer: hop, toKubelet: b.node.FromServer}}
	if number%2 == 1 {
		w.way, w.user = "SPDY", overSPDY
	}
	return w
}

// command returns a run of collect-k8s on the worker's node, into a new folder.
func (w *worker) command(t *testing.T) (*exec.Cmd, string) {
	w.count++
	dir := filepath.Join(w.dir, fmt.Sprint(w.count))
	return program(t, collectArgs(t, w.c, w.user, w.hops[toServer].Address, "-w", dir, w.node.Name, stall)...), dir
}

// reference collects the node without faults, and notes how long it takes and how much
// is transferred.
func (w *worker) reference(t *testing.T) (content, error) {
	command, dir := w.command(t)
	w.hops[toServer].Watch(0, nil)
	r := w.finish(t, command, trial{dir: dir})
	have, err := read(dir)
	if r.code != 0 || err != nil || len(have) == 0 {
		return nil, fmt.Errorf("%s without faults: exit code %d, %d files, %w\n%s", w.node.Name, r.code, len(have), err,
			r.complaints)
	}
	w.took, w.total, w.longest = r.took, r.received, map[string]int64{}
	for place, hop := range w.hops {
		w.longest[place] = hop.Longest()
	}
	return have, nil
}

// trial is a run of collect-k8s with a breakdown.
type trial struct {
	breakdown
	result
	dir      string
	happened bool
	took     time.Duration
	received int64         // bytes that reached the client
	left     []string      // processes in the node's pods that stay
	lingered time.Duration // how long the last process was there after the client's end
}

// run collects the worker's node with a breakdown, and waits until the processes in the
// pods have ended.
func (w *worker) run(t *testing.T, b breakdown) trial {
	command, dir := w.command(t)
	r := trial{breakdown: b, dir: dir}
	if hop := w.hops[b.place]; hop != nil {
		end := onHop(hop, b)
		r = w.finish(t, command, r)
		r.happened = end()
	} else {
		s := w.strike(t, command, b)
		w.hops[toServer].Watch(b.after, s.now)
		r = w.finish(t, command, r)
		at, _ := s.end()
		r.happened = !at.IsZero()
	}
	w.watchProcesses(&r)
	return r
}

func (w *worker) strike(t *testing.T, command *exec.Cmd, b breakdown) *strike {
	switch b.place {
	case theClient:
		return onClient(command, b)
	case kubelet:
		return onProcess(t, w.node.Kubelet, b)
	case containerd:
		return onProcess(t, w.node.Containerd, b)
	case container:
		return w.onContainer(t)
	case pod:
		return w.onPod(t)
	}
	return onProcess(t, w.c.Server, b)
}

// finish runs the client.
func (w *worker) finish(t *testing.T, command *exec.Cmd, r trial) trial {
	begin := time.Now()
	r.result = finish(t, command)
	r.took, r.received = time.Since(begin), w.hops[toServer].Total()
	w.hops[toServer].Watch(0, nil)
	return r
}

// watchProcesses waits until the processes in the pods end, and kills those that stay.
func (w *worker) watchProcesses(r *trial) {
	ended := time.Now()
	var left []int
	if err := ovs.Until(background, "the processes in the pods to end", func() bool {
		left = w.node.Processes()
		return len(left) == 0
	}); err != nil {
		for _, pid := range left {
			r.left = append(r.left, machine.CommandLine(pid))
			syscall.Kill(pid, syscall.SIGKILL) // it is none of the next run's
		}
	}
	r.lingered = time.Since(ended)
}

// recover waits until commands can be run in the node's pods again.
func (w *worker) recover(t *testing.T) {
	run := executors(t, w.c)[w.way]
	var last error
	if err := ovs.Until(t.Context(), "node "+w.node.Name+" to recover", func() bool {
		var out, complaints bytes.Buffer
		last = run(w.pods[0].Namespace, w.pods[0].Name, ovsTools, []string{"true"}, &out, &complaints)
		return last == nil
	}); err != nil {
		t.Error(err, last)
	}
}

// judge returns what is wrong with a trial, "" if nothing. A client that hangs fails in finish.
func (w *worker) judge(truth content, r trial) string {
	switch {
	case r.kind == interrupted && r.happened && r.code == 1 && !r.isInterrupted():
		return "it does not name its interruption"
	case len(r.left) > 0:
		return fmt.Sprintf("it left processes in the pod:\n\t%s", strings.Join(r.left, "\n\t"))
	case r.code < 0: // killed: it could say nothing
		return truth.judgeKilled(r.dir)
	}
	return truth.judge(r.result, r.dir)
}

// isInterrupted reports whether the program ended because it was interrupted.
func (r result) isInterrupted() bool {
	return strings.Contains(r.complaints, "ovs-offline: interrupted")
}

// tally counts faulted runs by their results.
type tally struct {
	sync.Mutex
	t                   *testing.T
	runs, missed, wrong int
	interrupted         int            // runs that ended because of their interruption
	dealt               map[string]int // how many breakdowns, by protocol
	codes               map[int]int
	kinds               map[string]int // by protocol and breakdown
	slowest, lingered   time.Duration
	began               time.Time
}

func newTally(t *testing.T) *tally {
	return &tally{t: t, dealt: map[string]int{}, codes: map[int]int{}, kinds: map[string]int{}, began: time.Now()}
}

// add adds a trial and what is wrong with it.
func (s *tally) add(w *worker, r trial, problem string) {
	s.Lock()
	defer s.Unlock()
	if problem != "" {
		s.wrong++
		s.t.Errorf("%s, node %s: %s after %d bytes: exit %d after %.1f s: %s\n%s", w.way, w.node.Name, r.breakdown, r.after,
			r.code, r.took.Seconds(), problem, messages(r.complaints))
	}
	if !r.happened {
		s.missed++
		return
	}
	if s.runs++; s.runs%25 == 0 {
		s.t.Logf("%d faulted runs after %.0f s", s.runs, time.Since(s.began).Seconds())
	}
	if r.isInterrupted() {
		s.interrupted++
	}
	s.codes[r.code]++
	s.kinds[w.way+", "+r.breakdown.String()]++
	s.slowest, s.lingered = max(s.slowest, r.took), max(s.lingered, r.lingered)
}

// messages returns what collect-k8s printed, without the lines of its progress.
func messages(printed string) string {
	var kept strings.Builder
	for line := range strings.Lines(printed) {
		if !strings.Contains(line, ": collecting, ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// deal returns the next of the rows for a protocol, unless there are so many runs already.
func (s *tally) deal(way string, rows []breakdown, runs int) (row breakdown, wanted bool) {
	s.Lock()
	defer s.Unlock()
	n := s.dealt[way]
	s.dealt[way]++
	return rows[n%len(rows)], s.runs < runs && s.missed < 2*runs && !s.t.Failed()
}

func (s *tally) String() string {
	var kinds strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.kinds)) {
		fmt.Fprintf(&kinds, "\n%5d  %s", s.kinds[k], k)
	}
	return fmt.Sprintf("%d faulted runs in %.0f s: %d whole, %d failed, %d incomplete and said so, %d killed, %d wrong; the slowest took %.1f s; the last process in a pod ended %.2f s after its client (in %d more the fault never came)%s",
		s.runs, time.Since(s.began).Seconds(), s.codes[0], s.codes[1], s.codes[3], s.codes[-1], s.wrong, s.slowest.Seconds(),
		s.lingered.Seconds(), s.missed, kinds.String())
}

// faultsAreNeverSilent breaks connections and processes at random places, and checks that
// each run ends, that no process stays in a pod, and that a run that lacks data
// reports it.
func faultsAreNeverSilent(t *testing.T, c *cluster.Cluster, workers []*worker, truth content) {
	counts := newTally(t)
	var all sync.WaitGroup
	for i, w := range workers {
		chance := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			for {
				row, wanted := counts.deal(w.way, nodeFaults(), nodeRuns)
				if !wanted {
					return
				}
				r := w.run(t, w.draw(row, chance))
				counts.add(w, r, w.judge(truth, r))
				os.RemoveAll(r.dir)
				if row.place == kubelet || row.place == containerd {
					w.recover(t)
				}
			}
		})
	}
	all.Wait()
	chance := rand.New(rand.NewPCG(0, 2))
	for {
		row, wanted := counts.deal(apiServer, serverFaults(), nodeRuns+serverRuns)
		if !wanted {
			break
		}
		serverFails(t, c, workers, truth, counts, workers[0].draw(row, chance), chance)
	}
	t.Log(counts)
	if !t.Failed() && (counts.codes[0] == 0 || counts.codes[1]+counts.codes[3] == 0) {
		t.Error("want both runs that recover from a fault and runs that do not")
	}
	if !t.Failed() && counts.interrupted == 0 {
		t.Error("no interrupted run ended because of that")
	}
}

// serverFails lets the API server fail while all workers collect. They begin at different
// times, so that each of them is at another place.
func serverFails(t *testing.T, c *cluster.Cluster, workers []*worker, truth content, counts *tally, b breakdown,
	chance *rand.Rand) {
	s := onProcess(t, c.Server, b)
	trials := make([]trial, len(workers))
	begun := make([]time.Time, len(workers))
	var all sync.WaitGroup
	for i, w := range workers {
		delay := time.Duration(chance.Int64N(int64(w.took)))
		all.Go(func() {
			if i == 0 {
				w.hops[toServer].Watch(b.after, s.now)
			} else {
				time.Sleep(delay) // each worker is to be at another place
			}
			begun[i] = time.Now()
			command, dir := w.command(t)
			trials[i] = w.finish(t, command, trial{breakdown: b, dir: dir})
		})
	}
	all.Wait()
	from, until := s.end()
	for i, w := range workers {
		all.Go(func() {
			r := trials[i]
			w.watchProcesses(&r)
			r.happened = until.After(begun[i]) && from.Before(begun[i].Add(r.took))
			counts.add(w, r, w.judge(truth, r))
			os.RemoveAll(r.dir)
			w.recover(t)
		})
	}
	all.Wait()
}
