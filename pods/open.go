package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	p, err := placeOf(wd)
	if err != nil {
		return nil, err
	}
	cl, err := c.connect(ctx, p)
	if err != nil {
		return nil, err
	}
	pod, err := cl.client.Pod(ctx, p.Namespace, p.Pod)
	if err == nil && string(pod.UID) == p.UID && stateOf(pod).running && pod.DeletionTimestamp == nil {
		return &Host{cluster: cl, place: p}, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, kube.Explain(err, "looking for pod "+p.Namespace+"/"+p.Pod)
	}
	return c.reopen(ctx, cl, wd, say)
}

// placeOf returns where the complete replica of a workdir runs.
func placeOf(wd *workdir.Dir) (replica.Place, error) {
	state, err := replica.ReadState(wd)
	if err != nil {
		return replica.Place{}, err
	}
	if state.Pod == nil {
		return replica.Place{}, fmt.Errorf("the replica in %s does not run in a cluster", wd.Path())
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
	p, err := placeOf(wd) // another command may have loaded it
	if err != nil {
		return nil, err
	}
	one := c.lockOf(p)
	one.Lock()
	defer one.Unlock()
	pod, err := cl.await(ctx, p, say)
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

// lockOf returns the lock of a place's pod: ovs-offline in it loads one bundle at a time.
func (c *Clusters) lockOf(p replica.Place) *sync.Mutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := podID{p.Server, p.Namespace, p.Job, p.Index}
	if c.loading[id] == nil {
		c.loading[id] = &sync.Mutex{}
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
		if pod == nil || time.Since(began) > patienceScheduling {
			if err := c.ended(ctx, p); err != nil {
				return nil, err
			}
		}
		if time.Since(began) > patienceScheduling {
			return nil, fmt.Errorf("pod %s/%s is gone, and none runs in its place after %s: %s", p.Namespace, p.Pod, patienceScheduling, state.problem)
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

// ended returns an error if the Job of a place is gone, or has ended.
func (c *cluster) ended(ctx context.Context, p replica.Place) error {
	jobs, err := c.client.Jobs(ctx, p.Namespace, ofSet(p.Set))
	if err != nil {
		return kube.Explain(err, "looking for Job "+p.Namespace+"/"+p.Job)
	}
	for _, j := range jobs.Items {
		if j.Name != p.Job {
			continue
		}
		for _, condition := range j.Status.Conditions {
			if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
				return fmt.Errorf("the Job %s/%s has ended: %s: \"ovs-offline start\" starts the replica again", p.Namespace, p.Job, condition.Message)
			}
		}
		return nil
	}
	return fmt.Errorf("the Job %s/%s is gone: it was deleted, or its time (start --keep) was over: \"ovs-offline start\" starts the replica again", p.Namespace, p.Job)
}
