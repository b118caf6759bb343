package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ovs-offline/internal/kube"
	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// Recorded returns the host that the replica of a workdir, whose replica.json has its place,
// was last loaded into. Whether it still runs is seen when it is used.
func (c *Clusters) Recorded(ctx context.Context, wd *workdir.Dir) (*Host, error) {
	place, err := c.placeOf(wd)
	if err != nil {
		return nil, err
	}
	cl, err := c.connect(ctx, place)
	if err != nil && time.Now().After(place.Ends) {
		return nil, fmt.Errorf("the time of the replica (start --keep) was over at %s: \"ovs-offline start\" starts it again: %w", show.Time(place.Ends), err)
	}
	if err != nil {
		return nil, err
	}
	return &Host{cluster: cl, place: place}, nil
}

// Open works like Recorded, but asks the cluster. If the pod was replaced, as after an eviction,
// Open loads the workdir into the new one and starts the replica there. It says so with a line
// for the user. With reached, the command has reached the replica before: an API server that
// does not answer may only be restarting.
func (c *Clusters) Open(ctx context.Context, wd *workdir.Dir, reached bool, notify func(text string)) (*Host, error) {
	host, err := c.Recorded(ctx, wd)
	if err != nil {
		return nil, err
	}
	cl, place := host.cluster, host.place
	pod, err := cl.findPod(ctx, place, reached, notify)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, kube.Explain(err, "looking for pod "+place.Namespace+"/"+place.Pod)
	}
	if err != nil || string(pod.UID) != place.UID || !stateOf(pod).running || pod.DeletionTimestamp != nil {
		return c.reopen(ctx, cl, wd, notify)
	}
	return host, nil
}

// findPod returns the pod of a place. If it was reached before, it waits for an API server that
// does not answer.
func (c *cluster) findPod(ctx context.Context, place replica.Place, reached bool, notify func(text string)) (*corev1.Pod, error) {
	printed := false
	for began := time.Now(); ; {
		pod, err := c.client.Pod(ctx, place.Namespace, place.Pod)
		if err == nil || !reached || !kube.Unavailable(err) || time.Since(began) > patienceServer {
			return pod, err
		}
		if !printed {
			printed = true
			notify("trying again: " + err.Error())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// placeOf returns where the complete replica of a workdir runs. It is an error if another
// version of ovs-offline has started it, which then is the one in its pod.
func (c *Clusters) placeOf(wd *workdir.Dir) (replica.Place, error) {
	state, err := replica.ReadState(wd)
	if err != nil {
		return replica.Place{}, err
	}
	if state.Pod == nil {
		return replica.Place{}, fmt.Errorf("the replica in %s does not run in a cluster", wd.Path())
	}
	if place := state.Pod; place.Version != c.version {
		return replica.Place{}, fmt.Errorf("the replica in %s was started by %w: %q, and this is %q: use that one, or start the replica again with \"ovs-offline start\"", wd.Path(), errVersion, place.Version, c.version)
	}
	return *state.Pod, nil
}

// reopen loads a workdir into the pod that has replaced its own.
func (c *Clusters) reopen(ctx context.Context, cl *cluster, wd *workdir.Dir, notify func(text string)) (*Host, error) {
	locked, err := lock(ctx, wd.Path())
	if err != nil {
		return nil, err
	}
	defer locked.Unlock()
	place, err := c.placeOf(wd) // another command may have loaded it
	if err != nil {
		return nil, err
	}
	one := c.loadOf(place)
	before := one.waits.Load()
	one.Lock()
	defer one.Unlock()
	if one.waits.Load() != before && one.failed != nil {
		return nil, one.failed // the pod was awaited for another of its replicas
	}
	pod, err := cl.await(ctx, place, notify)
	if ctx.Err() == nil {
		one.failed = err
		one.waits.Add(1)
	}
	if err != nil {
		return nil, err
	}
	host := &Host{cluster: cl, place: place}
	host.place.Pod, host.place.UID = pod.Name, string(pod.UID)
	if place.UID == host.place.UID {
		return host, nil
	}
	notify(fmt.Sprintf("pod %s was replaced by %s: loading %s again", place.Pod, pod.Name, wd.Path()))
	if err := host.checkVersion(ctx, c.version, pod.Spec.Containers[0].Image); err != nil {
		return nil, err
	}
	node := Workdir{Name: nameIn(place.Folder), Dir: locked}
	outcomes, err := host.start(ctx, []Workdir{node}, c.version, func(_, text string) { notify(text) })
	if err != nil {
		return nil, err
	}
	return host, outcomes[0].Err
}

// loading is the state of a pod that is awaited and loaded again, one replica at a time.
type loading struct {
	sync.Mutex
	waits  atomic.Int64 // how often the pod was awaited
	failed error        // of the last wait
}

// loadOf returns the state of a place's pod.
func (c *Clusters) loadOf(place replica.Place) *loading {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := podID{place.Server, place.Namespace, place.Job, place.Index}
	if c.loading[id] == nil {
		c.loading[id] = &loading{}
	}
	return c.loading[id]
}

// lock locks a workdir. Another command may be loading it just now.
func lock(ctx context.Context, path string) (*workdir.Dir, error) {
	const patience, pause = time.Minute, 200 * time.Millisecond
	for began := time.Now(); ; {
		wd, err := workdir.Lock(path)
		if !errors.Is(err, workdir.ErrInUse) || time.Since(began) > patience {
			return wd, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// await returns the pod of a place once it runs.
func (c *cluster) await(ctx context.Context, place replica.Place, notify func(text string)) (*corev1.Pod, error) {
	printed := ""
	for began := time.Now(); ; {
		list, err := c.client.Pods(ctx, place.Namespace, batchv1.JobNameLabel+"="+place.Job)
		if err != nil {
			return nil, kube.Explain(err, "looking for the pod of Job "+place.Namespace+"/"+place.Job)
		}
		pod := current(list.Items, place.Job, place.Index)
		state := stateOf(pod)
		if state.running && pod.DeletionTimestamp == nil {
			return pod, nil
		}
		if pod == nil || pod.DeletionTimestamp != nil || time.Since(began) > patienceScheduling || hasEnded(pod) {
			job, err := c.jobOf(ctx, place)
			if err != nil {
				return nil, err
			}
			if refused, err := c.refusedPod(ctx, job); err == nil && refused != "" { // else the state has to do
				state.problem = refused
			}
		}
		if time.Since(began) > patienceScheduling {
			return nil, fmt.Errorf("pod %s/%s is gone, and none runs in its place after %s: %s: %s", place.Namespace, place.Pod, patienceScheduling, cmp.Or(strings.TrimSuffix(state.problem, "."), "the cluster gives no reason"), nextStep)
		}
		text := "pod " + place.Namespace + "/" + place.Pod + " is gone: waiting for the one that replaces it"
		if state.problem != "" {
			text += ": " + state.problem
		}
		if text != printed {
			printed = text
			notify(text)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// jobOf returns the Job of a place, or an error if it is gone, or has ended.
func (c *cluster) jobOf(ctx context.Context, place replica.Place) (*batchv1.Job, error) {
	const again = "\"ovs-offline start\" starts the replica again"
	jobs, err := c.client.Jobs(ctx, place.Namespace, setSelector(place.Set))
	if err != nil {
		return nil, kube.Explain(err, "looking for Job "+place.Namespace+"/"+place.Job)
	}
	i := slices.IndexFunc(jobs.Items, func(job batchv1.Job) bool { return job.Name == place.Job })
	if i < 0 {
		return nil, fmt.Errorf("the Job %s/%s is gone: it was deleted, or its time (start --keep) was over: %s", place.Namespace, place.Job, again)
	}
	job := &jobs.Items[i]
	if job.DeletionTimestamp != nil {
		return nil, fmt.Errorf("the Job %s/%s was deleted: %s", place.Namespace, place.Job, again)
	}
	if failed := failure(job); failed != nil {
		return nil, fmt.Errorf("the Job %s/%s has ended: %s: %s", place.Namespace, place.Job, failed.Message, again)
	}
	return job, nil
}

// refusedPod returns why the cluster does not create a pod of a Job, "" if its last try
// succeeded: the events of the Job have the reason.
func (c *cluster) refusedPod(ctx context.Context, job *batchv1.Job) (string, error) {
	list, err := c.client.Events(ctx, job.Namespace, job.UID)
	if err != nil {
		return "", err
	}
	newest := slices.MaxFunc(append(list.Items, corev1.Event{}), func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	if newest.Type != corev1.EventTypeWarning {
		return "", nil
	}
	// Each try has another name, which would make it another problem.
	name := regexp.MustCompile(`("` + regexp.QuoteMeta(job.Name) + `-\d+)-[a-z0-9]+"`)
	return "the cluster makes no pod: " + name.ReplaceAllString(newest.Message, `$1"`), nil
}
