package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ovs-offline/internal/kube"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

// PlaceOf returns where in a cluster the replica of a workdir was started, even if that
// start was not completed; nil if it was started in another runtime, or not at all.
func PlaceOf(wd *workdir.Dir) (*replica.Place, error) {
	state, err := replica.LastState(wd)
	return state.Pod, err
}

// patienceGone is how long Stop waits until what it deletes is gone.
const patienceGone = time.Minute

// Stop stops the replicas of workdirs, which are locked, and whose PlaceOf is not nil. What
// was made in the cluster for a start is deleted once no other workdir in the same folders
// uses it. The errors are in the order of the workdirs.
func (c *Clusters) Stop(ctx context.Context, wds []*workdir.Dir) []error {
	errs := make([]error, len(wds))
	bySet := map[string][]int{}
	places := make([]*replica.Place, len(wds))
	for i, wd := range wds {
		if places[i], errs[i] = PlaceOf(wd); errs[i] == nil {
			bySet[places[i].Set] = append(bySet[places[i].Set], i)
		}
	}
	for set, indices := range bySet {
		err := c.stopSet(ctx, set, indices, wds, places)
		for _, i := range indices {
			errs[i] = err
			if err == nil {
				errs[i] = replica.Stop(ctx, wds[i])
			}
		}
	}
	return errs
}

// stopSet stops some replicas of one start.
func (c *Clusters) stopSet(ctx context.Context, set string, indices []int, wds []*workdir.Dir, places []*replica.Place) error {
	p := *places[indices[0]]
	cl, err := c.connect(ctx, p)
	if err != nil {
		return fmt.Errorf("the replica was started in a cluster and can't be stopped: %w", err)
	}
	stopped := map[string]bool{}
	for _, i := range indices {
		stopped[wds[i].Path()] = true
	}
	if !used(wds[indices[0]], set, stopped) {
		return cl.delete(ctx, p.Namespace, set)
	}
	for _, i := range indices {
		if err := cl.stopOne(ctx, *places[i]); err != nil {
			return err
		}
	}
	return nil
}

// used reports whether a workdir beside this one, other than those that are stopped, has a
// replica of the same start.
func used(wd *workdir.Dir, set string, stopped map[string]bool) bool {
	below, _ := workdir.Below(filepath.Dir(wd.Path())) // without them no other is known
	for _, path := range below {
		if stopped[path] {
			continue
		}
		if other, err := workdir.Find(path); err == nil {
			if p, err := PlaceOf(other); err == nil && p != nil && p.Set == set {
				return true
			}
		}
	}
	return false
}

// stopOne ends one of several replicas of a start, and removes its data from the pod.
func (c *cluster) stopOne(ctx context.Context, p replica.Place) error {
	if p.Pod == "" {
		return nil // it was not loaded
	}
	h := &Host{cluster: c, place: p}
	err := h.run(ctx, []string{program, "--workdir=" + p.Folder, "stop", "--purge"}, nil, io.Discard, nil)
	if err != nil && isGone(ctx, c, p) {
		return nil // the replica went with its pod
	}
	return err
}

// isGone reports whether the pod of a place is certainly gone.
func isGone(ctx context.Context, c *cluster, p replica.Place) bool {
	pod, err := c.client.Pod(ctx, p.Namespace, p.Pod)
	return apierrors.IsNotFound(err) || err == nil && string(pod.UID) != p.UID
}

// delete deletes the Jobs of a start, with all that they own, and waits until that is gone.
func (c *cluster) delete(ctx context.Context, namespace, set string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patienceGone, fmt.Errorf("set %s in namespace %s was deleted, and its pods are not gone after %s", set, namespace, patienceGone))
	defer cancel()
	asked := map[string]bool{}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		jobs, err := c.client.Jobs(ctx, namespace, ours+","+ofSet(set))
		if err != nil {
			return fmt.Errorf("deleting set %s in namespace %s: %w", set, namespace, errors.Join(context.Cause(ctx), err))
		}
		if len(jobs.Items) == 0 {
			return nil
		}
		for _, j := range jobs.Items {
			if asked[string(j.UID)] {
				continue
			}
			if err := c.client.DeleteJob(ctx, namespace, j.Name, j.UID); err != nil && !apierrors.IsNotFound(err) {
				return kube.Explain(err, "deleting Job "+j.Name+" in namespace "+namespace)
			}
			asked[string(j.UID)] = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
