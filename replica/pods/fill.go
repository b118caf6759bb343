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
	watch := &watch{start: s, slots: make(chan struct{}, atOnce), results: make(chan loadResult, len(s.groups)), printed: map[string]bool{}, began: time.Now()}
	for _, group := range s.groups {
		watch.waiting = append(watch.waiting, &waiting{group: group, since: watch.began, patience: patienceSilent})
		watch.total += len(group.nodes)
	}
	err := watch.run(ctx)
	cancel()
	watch.loading.Wait()
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

// loadResult is the outcome of loading a pod.
type loadResult struct {
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
	results chan loadResult
	total   int             // replicas
	begun   int             // replicas whose pod is being loaded
	ready   int             // replicas that were started
	printed map[string]bool // lines about problems
	shown   string          // the last progress
	showed  time.Time

	unanswered time.Time // since when the API server does not answer; zero if it does
}

func (w *watch) run(ctx context.Context) error {
	pause := 100 * time.Millisecond
	inProgress := 0
	for len(w.waiting)+inProgress > 0 {
		list, err := w.cluster.client.Pods(ctx, w.place.Namespace, setSelector(w.place.Set))
		if err := w.answered(ctx, err); err != nil {
			return err
		}
		if err == nil {
			inProgress += w.checkPods(ctx, list.Items)
		}
		w.show()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case result := <-w.results:
			inProgress--
			w.loaded(result)
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

// checkPods loads the pods that run, gives up the pods that never will, and returns how many it
// began to load.
func (w *watch) checkPods(ctx context.Context, pods []corev1.Pod) (begun int) {
	var left []*waiting
	notMade := map[*batchv1.Job]podState{}
	for _, waiting := range w.waiting {
		pod := current(pods, waiting.job.Name, waiting.index)
		state := stateOf(pod)
		if pod == nil && time.Since(w.began) > time.Second {
			if _, asked := notMade[waiting.job]; !asked {
				notMade[waiting.job] = w.stateWithoutPods(ctx, waiting.job)
			}
			state = notMade[waiting.job]
		}
		w.note(waiting, state)
		switch {
		case state.running && time.Now().Before(waiting.next):
			left = append(left, waiting)
		case state.running:
			begun++
			w.load(ctx, waiting, pod)
		case time.Since(waiting.since) >= waiting.patience && waiting.problem != "":
			w.giveUp(waiting, errors.New(waiting.problem))
		case time.Since(waiting.since) >= waiting.patience:
			w.giveUp(waiting, fmt.Errorf("its pod does not run after %s%s", waiting.patience, state.lacks))
		default:
			left = append(left, waiting)
		}
	}
	w.waiting = left
	return begun
}

// note keeps the problem of a group, and prints a new one.
func (w *watch) note(waiting *waiting, state podState) {
	if waiting.problem != "" && state.problem == "" {
		return
	}
	if state.patience != waiting.patience {
		waiting.since, waiting.patience = time.Now(), state.patience
		if state.problem != "" && !w.printed[state.problem] {
			w.printed[state.problem] = true
			w.options.Say("", "waiting: "+state.problem)
		}
	}
	waiting.problem = state.problem
}

// show prints the progress if it has changed, or was not printed for a while.
func (w *watch) show() {
	text := fmt.Sprintf("replicas: %d of %d ready, %d starting", w.ready, w.total, w.begun)
	if text != w.shown || time.Since(w.showed) > progressPause {
		w.shown, w.showed = text, time.Now()
		w.options.Progress(text)
	}
}

// stateWithoutPods returns the state of the pods of a Job that do not exist.
func (w *watch) stateWithoutPods(ctx context.Context, job *batchv1.Job) podState {
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
func (w *watch) giveUp(waiting *waiting, err error) {
	for _, node := range waiting.nodes {
		node.outcome.Err = errors.Join(err, replica.Stop(context.Background(), node.Dir)) // only files of this host are removed
	}
}

// load loads a pod in the background.
func (w *watch) load(ctx context.Context, waiting *waiting, pod *corev1.Pod) {
	w.begun += len(waiting.nodes)
	w.loading.Go(func() {
		w.slots <- struct{}{}
		defer func() { <-w.slots }()
		host := &Host{cluster: w.cluster, place: w.place}
		host.place.Job, host.place.Index, host.place.Pod, host.place.UID = waiting.job.Name, waiting.index, pod.Name, string(pod.UID)
		w.results <- loadResult{waiting, w.serve(ctx, host, waiting.group)}
	})
}

// loaded takes the result of loading a pod. After an error that may pass, the pod is
// loaded again: it may be another one then.
func (w *watch) loaded(result loadResult) {
	w.begun -= len(result.nodes)
	if result.err == nil {
		w.ready += result.started()
		return
	}
	if result.tried++; result.tried == 1 {
		result.failing = time.Now()
	}
	if isFinal(result.err) || result.tried >= tries && time.Since(result.failing) >= patienceLoading {
		w.giveUp(result.waiting, explainRefusal(result.err))
		return
	}
	if text := "trying again: " + result.err.Error(); !w.printed[text] {
		w.printed[text] = true
		w.options.Say("", text)
	}
	result.problem, result.patience = "", 0
	result.next = time.Now().Add(pauseLoading << min(result.tried-1, 2))
	w.waiting = append(w.waiting, result.waiting)
}

// serve loads the nodes of a group into a pod and starts their replicas.
func (s *start) serve(ctx context.Context, host *Host, g *group) error {
	if err := host.checkVersion(ctx, s.clusters.version, g.image); err != nil {
		return err
	}
	var nodes []Workdir
	for _, node := range g.nodes {
		nodes = append(nodes, node.Workdir)
	}
	outcomes, err := host.start(ctx, nodes, s.clusters.version, s.options.Say)
	if err != nil {
		return err
	}
	for i, node := range g.nodes {
		if node.outcome = outcomes[i]; node.outcome.Err != nil {
			node.outcome.Err = errors.Join(node.outcome.Err, replica.Stop(context.WithoutCancel(ctx), node.Dir))
		}
	}
	return nil
}
