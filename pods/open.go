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
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

// Open returns the host of the replica of a workdir, whose replica.json has its place. If
// the pod was replaced, as after an eviction, Open loads the workdir into the new one and
// starts the replica there. It says so with a line for the user.
func (c *Clusters) Open(ctx context.Context, wd *workdir.Dir, say func(text string)) (*Host, error) {
	p, err := c.placeOf(wd)
	if err != nil {
		return nil, err
	}
	cl, err := c.connect(ctx, p)
	if err != nil && time.Now().After(p.Ends) {
		return nil, fmt.Errorf("the time of the replica (start --keep) was over at %s: \"ovs-offline start\" starts it again: %w", p.Ends.Local().Format(time.DateTime), err)
	}
	if err != nil {
		return nil, err
	}
	of := c.loadOf(p)
	pod, err := cl.find(ctx, p, of.opened.Load(), say)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, kube.Explain(err, "looking for pod "+p.Namespace+"/"+p.Pod)
	}
	h := &Host{cluster: cl, place: p}
	if err != nil || string(pod.UID) != p.UID || !stateOf(pod).running || pod.DeletionTimestamp != nil {
		if h, err = c.reopen(ctx, cl, wd, say); err != nil {
			return nil, err
		}
	}
	of.opened.Store(true)
	return h, nil
}

// find returns the pod of a place. For a command that has reached it before, an API server
// that does not answer may only be restarting.
func (c *cluster) find(ctx context.Context, p replica.Place, before bool, say func(text string)) (*corev1.Pod, error) {
	said := false
	for began := time.Now(); ; {
		pod, err := c.client.Pod(ctx, p.Namespace, p.Pod)
		if err == nil || !before || !kube.Unavailable(err) || time.Since(began) > patienceServer {
			return pod, err
		}
		if !said {
			said = true
			say("trying again: " + err.Error())
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Recorded returns the host that the replica of a workdir was last loaded into. Whether it
// still runs is seen when it is used.
func (c *Clusters) Recorded(ctx context.Context, wd *workdir.Dir) (*Host, error) {
	p, err := c.placeOf(wd)
	if err != nil {
		return nil, err
	}
	cl, err := c.connect(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Host{cluster: cl, place: p}, nil
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
	if p := state.Pod; p.Version != c.version {
		return replica.Place{}, fmt.Errorf("the replica in %s was started by %w: %q, and this is %q: use that one, or start the replica anew with \"ovs-offline start\"", wd.Path(), errVersion, p.Version, c.version)
	}
	return *state.Pod, nil
}

// reopen loads a workdir into the pod that has replaced its own.
func (c *Clusters) reopen(ctx context.Context, cl *cluster, wd *workdir.Dir, say func(text string)) (*Host, error) {
	locked, err := lock(ctx, wd.Path())
	if err != nil {
		return nil, err
	}
	defer locked.Unlock()
	p, err := c.placeOf(wd) // another command may have loaded it
	if err != nil {
		return nil, err
	}
	one := c.loadOf(p)
	before := one.waits.Load()
	one.Lock()
	defer one.Unlock()
	if one.waits.Load() != before && one.failed != nil {
		return nil, one.failed // the pod was awaited for another of its replicas
	}
	pod, err := cl.await(ctx, p, say)
	if ctx.Err() == nil {
		one.failed = err
		one.waits.Add(1)
	}
	if err != nil {
		return nil, err
	}
	h := &Host{cluster: cl, place: p}
	h.place.Pod, h.place.UID = pod.Name, string(pod.UID)
	if p.UID == h.place.UID {
		return h, nil
	}
	say(fmt.Sprintf("pod %s was replaced by %s: loading %s again", p.Pod, pod.Name, wd.Path()))
	if err := h.checkVersion(ctx, c.version, pod.Spec.Containers[0].Image); err != nil {
		return nil, err
	}
	node := Node{Name: nameIn(p.Folder), Dir: locked}
	outcomes, err := h.start(ctx, []Node{node}, c.version, func(_, text string) { say(text) })
	if err != nil {
		return nil, err
	}
	return h, outcomes[0].Err
}

// loading is the state of a pod that is awaited and loaded anew, of one replica at a time.
type loading struct {
	sync.Mutex
	opened atomic.Bool  // a replica in it was reached
	waits  atomic.Int64 // how often the pod was awaited
	failed error        // of the last wait
}

// loadOf returns the state of a place's pod.
func (c *Clusters) loadOf(p replica.Place) *loading {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := podID{p.Server, p.Namespace, p.Job, p.Index}
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
func (c *cluster) await(ctx context.Context, p replica.Place, say func(text string)) (*corev1.Pod, error) {
	said := ""
	for began := time.Now(); ; {
		list, err := c.client.Pods(ctx, p.Namespace, batchv1.JobNameLabel+"="+p.Job)
		if err != nil {
			return nil, kube.Explain(err, "looking for the pod of Job "+p.Namespace+"/"+p.Job)
		}
		pod := current(list.Items, p.Job, p.Index)
		state := stateOf(pod)
		if state.running && pod.DeletionTimestamp == nil {
			return pod, nil
		}
		if pod == nil || pod.DeletionTimestamp != nil || time.Since(began) > patienceScheduling || hasEnded(pod) {
			job, err := c.jobOf(ctx, p)
			if err != nil {
				return nil, err
			}
			if refused, err := c.refusedPod(ctx, job); err == nil && refused != "" { // else the state has to do
				state.problem = refused
			}
		}
		if time.Since(began) > patienceScheduling {
			return nil, fmt.Errorf("pod %s/%s is gone, and none runs in its place after %s: %s: %s", p.Namespace, p.Pod, patienceScheduling, cmp.Or(strings.TrimSuffix(state.problem, "."), "the cluster gives no reason"), nextStep)
		}
		text := "pod " + p.Namespace + "/" + p.Pod + " is gone: waiting for the one that replaces it"
		if state.problem != "" {
			text += ": " + state.problem
		}
		if text != said {
			said = text
			say(text)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// jobOf returns the Job of a place, or an error if it is gone, or has ended.
func (c *cluster) jobOf(ctx context.Context, p replica.Place) (*batchv1.Job, error) {
	const again = "\"ovs-offline start\" starts the replica again"
	jobs, err := c.client.Jobs(ctx, p.Namespace, ofSet(p.Set))
	if err != nil {
		return nil, kube.Explain(err, "looking for Job "+p.Namespace+"/"+p.Job)
	}
	i := slices.IndexFunc(jobs.Items, func(j batchv1.Job) bool { return j.Name == p.Job })
	if i < 0 {
		return nil, fmt.Errorf("the Job %s/%s is gone: it was deleted, or its time (start --keep) was over: %s", p.Namespace, p.Job, again)
	}
	job := &jobs.Items[i]
	if job.DeletionTimestamp != nil {
		return nil, fmt.Errorf("the Job %s/%s was deleted: %s", p.Namespace, p.Job, again)
	}
	if failed := failure(job); failed != nil {
		return nil, fmt.Errorf("the Job %s/%s has ended: %s: %s", p.Namespace, p.Job, failed.Message, again)
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
