package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ovs-offline/internal/kube"
	"ovs-offline/replica"
)

const (
	// atOnce is how many pods are loaded at the same time.
	atOnce = 10
	// tries is how often a pod is loaded at least, and patienceLoading how long it is tried: a
	// kubelet or the API server may be restarted.
	tries           = 3
	patienceLoading = 20 * time.Second
	pauseLoading    = time.Second // after the first failure; twice as long after each further one
	// progressPause is how often the same progress is printed.
	progressPause = 10 * time.Second
	// patienceServer is how long the API server may not answer.
	patienceServer = 20 * time.Second
)

// fill loads each pod as soon as it runs, and starts its replicas. The error concerns all
// nodes; the nodes of a pod that does not run get an outcome with the reason.
func (s *start) fill(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{start: s, slots: make(chan struct{}, atOnce), results: make(chan result, len(s.groups)), said: map[string]bool{}, began: time.Now()}
	for _, g := range s.groups {
		w.waiting = append(w.waiting, &waiting{group: g, since: w.began, patience: patienceSilent})
		w.total += len(g.nodes)
	}
	err := w.run(ctx)
	cancel()
	w.loading.Wait()
	return err
}

// waiting is a group whose pod is awaited.
type waiting struct {
	*group
	since    time.Time     // when the present problem began, or the wait
	problem  string        // the last one, even if nothing is wrong just now: most come and go
	patience time.Duration // with the problem
	tried    int           // how often loading it failed
	failing  time.Time     // when that failed first
	next     time.Time     // when it is tried again
}

// result is the outcome of loading a pod.
type result struct {
	*waiting
	err error
}

// started returns how many replicas of the group were started.
func (g *group) started() (n int) {
	for _, node := range g.nodes {
		if node.outcome.Err == nil {
			n++
		}
	}
	return n
}

// watch follows the pods of a start.
type watch struct {
	*start
	began   time.Time
	waiting []*waiting // groups whose pod is neither loaded nor given up
	slots   chan struct{}
	loading sync.WaitGroup
	results chan result
	total   int             // replicas
	begun   int             // replicas whose pod is being loaded
	ready   int             // replicas that were started
	said    map[string]bool // lines about problems
	shown   string          // the last progress
	showed  time.Time

	unanswered time.Time // since when the API server does not answer; zero if it does
}

func (w *watch) run(ctx context.Context) error {
	pause := 100 * time.Millisecond
	inProgress := 0
	for len(w.waiting)+inProgress > 0 {
		list, err := w.cluster.client.Pods(ctx, w.place.Namespace, ofSet(w.place.Set))
		if err := w.answered(ctx, err); err != nil {
			return err
		}
		if err == nil {
			inProgress += w.look(ctx, list.Items)
		}
		w.show()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r := <-w.results:
			inProgress--
			w.loaded(r)
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
	return nil
}

// answered returns the error of a request, unless the server may only be restarting.
func (w *watch) answered(ctx context.Context, err error) error {
	switch {
	case err == nil:
		w.unanswered = time.Time{}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case !kube.Unavailable(err):
		return w.explain(err, "listing pods in namespace "+w.place.Namespace)
	case w.unanswered.IsZero():
		w.unanswered = time.Now()
		w.options.Say("", "trying again: "+err.Error())
	}
	if time.Since(w.unanswered) > patienceServer {
		return kube.Explain(err, "the API server "+w.place.Server+" does not answer")
	}
	return nil
}

// look loads the pods that run, gives up the pods that never will, and returns how many it
// began to load.
func (w *watch) look(ctx context.Context, pods []corev1.Pod) (begun int) {
	var left []*waiting
	notMade := map[*batchv1.Job]podState{}
	for _, g := range w.waiting {
		pod := current(pods, g.job.Name, g.index)
		state := stateOf(pod)
		if pod == nil && time.Since(w.began) > time.Second {
			if _, asked := notMade[g.job]; !asked {
				notMade[g.job] = w.notMade(ctx, g.job)
			}
			state = notMade[g.job]
		}
		w.note(g, state)
		switch {
		case state.running && time.Now().Before(g.next):
			left = append(left, g)
		case state.running:
			begun++
			w.load(ctx, g, pod)
		case time.Since(g.since) >= g.patience && g.problem != "":
			w.giveUp(g, errors.New(g.problem))
		case time.Since(g.since) >= g.patience:
			w.giveUp(g, fmt.Errorf("its pod does not run after %s%s", g.patience, state.lacks))
		default:
			left = append(left, g)
		}
	}
	w.waiting = left
	return begun
}

// note keeps the problem of a group, and prints a new one.
func (w *watch) note(g *waiting, state podState) {
	if g.problem != "" && state.problem == "" {
		return
	}
	if state.patience != g.patience {
		g.since, g.patience = time.Now(), state.patience
		if state.problem != "" && !w.said[state.problem] {
			w.said[state.problem] = true
			w.options.Say("", "waiting: "+state.problem)
		}
	}
	g.problem = state.problem
}

// show prints the progress if it has changed, or for a while has not been printed.
func (w *watch) show() {
	text := fmt.Sprintf("replicas: %d of %d ready, %d starting", w.ready, w.total, w.begun)
	if text != w.shown || time.Since(w.showed) > progressPause {
		w.shown, w.showed = text, time.Now()
		w.options.Progress(text)
	}
}

// notMade returns the state of the pods of a Job that do not exist.
func (w *watch) notMade(ctx context.Context, job *batchv1.Job) podState {
	refused, err := w.cluster.refusedPod(ctx, job)
	switch {
	case err != nil:
		return podState{problem: "the cluster has made no pod yet; its events, which may have the reason, can't be read: " + err.Error(), patience: patienceScheduling}
	case refused == "":
		return podState{patience: patienceSilent}
	}
	return podState{problem: refused, patience: patienceCreating}
}

// giveUp gives the nodes of a group the reason why they have no replica.
func (w *watch) giveUp(g *waiting, err error) {
	for _, n := range g.nodes {
		n.outcome.Err = errors.Join(err, replica.Stop(context.Background(), n.Dir)) // only files of this host are removed
	}
}

// load loads a pod in the background.
func (w *watch) load(ctx context.Context, g *waiting, pod *corev1.Pod) {
	w.begun += len(g.nodes)
	w.loading.Go(func() {
		w.slots <- struct{}{}
		defer func() { <-w.slots }()
		h := &Host{cluster: w.cluster, place: w.place}
		h.place.Job, h.place.Index, h.place.Pod, h.place.UID = g.job.Name, g.index, pod.Name, string(pod.UID)
		w.results <- result{g, w.serve(ctx, h, g.group)}
	})
}

// loaded takes the result of loading a pod. After an error that may pass, the pod is
// loaded again: it may be another one then.
func (w *watch) loaded(r result) {
	w.begun -= len(r.nodes)
	if r.err == nil {
		w.ready += r.started()
		return
	}
	if r.tried++; r.tried == 1 {
		r.failing = time.Now()
	}
	if isFinal(r.err) || r.tried >= tries && time.Since(r.failing) >= patienceLoading {
		w.giveUp(r.waiting, explainRefusal(r.err))
		return
	}
	if text := "trying again: " + r.err.Error(); !w.said[text] {
		w.said[text] = true
		w.options.Say("", text)
	}
	r.problem, r.patience = "", 0
	r.next = time.Now().Add(pauseLoading << min(r.tried-1, 2))
	w.waiting = append(w.waiting, r.waiting)
}

// serve loads the nodes of a group into a pod and starts their replicas.
func (s *start) serve(ctx context.Context, h *Host, g *group) error {
	if err := h.checkVersion(ctx, s.clusters.version, g.image); err != nil {
		return err
	}
	var nodes []Node
	for _, n := range g.nodes {
		nodes = append(nodes, n.Node)
	}
	outcomes, err := h.start(ctx, nodes, s.clusters.version, s.options.Say)
	if err != nil {
		return err
	}
	for i, n := range g.nodes {
		if n.outcome = outcomes[i]; n.outcome.Err != nil {
			n.outcome.Err = errors.Join(n.outcome.Err, replica.Stop(context.WithoutCancel(ctx), n.Dir))
		}
	}
	return nil
}
