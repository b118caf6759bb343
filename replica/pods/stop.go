package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ovs-offline/internal/kube"
	"ovs-offline/internal/logging"
	"ovs-offline/internal/show"
	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// PlaceOf returns where in a cluster the replica of a workdir was started, even if that
// start was not completed; nil if it was started in another runtime, or not at all.
func PlaceOf(wd *workdir.Dir) (*replica.Place, error) {
	state, err := replica.LastState(wd)
	return state.Pod, err
}

// patienceGone is how long Stop waits until what it deletes is gone.
const patienceGone = time.Minute

// stopping is a replica to stop.
type stopping struct {
	wd    *workdir.Dir
	place replica.Place
	err   *error
}

// Stop stops the replicas of workdirs, which are locked, and whose PlaceOf is not nil. What
// was made in the cluster for a start is deleted once no other workdir in the same folder
// uses it. The errors are in the order of the workdirs.
func (c *Clusters) Stop(ctx context.Context, wds []*workdir.Dir) []error {
	errs := make([]error, len(wds))
	bySet := map[string][]stopping{}
	for i, wd := range wds {
		place, err := PlaceOf(wd)
		if errs[i] = err; err == nil {
			bySet[place.Set] = append(bySet[place.Set], stopping{wd, *place, &errs[i]})
		}
	}
	for _, list := range bySet {
		err := c.stopSet(ctx, list)
		for _, stopping := range list {
			switch *stopping.err = err; {
			case err == nil:
				*stopping.err = replica.Stop(ctx, stopping.wd)
			case ctx.Err() == nil && !errors.Is(err, ErrRemains):
				*stopping.err = fmt.Errorf("%w: if that cluster is gone for good, remove %s", err, stopping.wd.ReplicaFile())
			}
		}
	}
	return errs
}

// stopSet stops replicas of one start. Those of a cluster that can't be reached count as
// stopped once the cluster must have ended them.
func (c *Clusters) stopSet(ctx context.Context, list []stopping) error {
	place := list[0].place
	cl, err := c.connect(ctx, place)
	if err == nil {
		err = cl.stopSet(ctx, list)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrRemains) {
		return err
	}
	if time.Now().After(place.Ends) {
		logging.FromContext(ctx).Debug("the cluster has ended the replicas", "set", place.Set, "at", place.Ends, "error", err)
		return nil
	}
	return fmt.Errorf("stopping what was started in the cluster %s, which ends by itself at %s: %w", place.Server, show.Time(place.Ends), err)
}

func (c *cluster) stopSet(ctx context.Context, list []stopping) error {
	if !hasOtherWorkdirs(list) {
		err := c.delete(ctx, list[0].place.Namespace, list[0].place.Set)
		if err == nil {
			forget(list[0].place.Set)
		}
		return err
	}
	for _, stopping := range list {
		if err := c.stopOne(ctx, stopping.place); err != nil {
			return err
		}
	}
	return nil
}

// hasOtherWorkdirs reports whether the start that made these replicas also made replicas of other
// workdirs.
func hasOtherWorkdirs(list []stopping) bool {
	below, _ := workdir.Below(filepath.Dir(list[0].wd.Path())) // without them no other is known
	return slices.ContainsFunc(below, func(path string) bool {
		if slices.ContainsFunc(list, func(stopping stopping) bool { return stopping.wd.Path() == path }) {
			return false
		}
		other, err := workdir.Find(path)
		if err != nil {
			return false
		}
		place, err := PlaceOf(other)
		return err == nil && place != nil && place.Set == list[0].place.Set
	})
}

// stopOne ends one of several replicas of a start, and removes its data from the pod.
func (c *cluster) stopOne(ctx context.Context, place replica.Place) error {
	if place.Pod == "" {
		return nil // it was not loaded
	}
	host := &Host{cluster: c, place: place}
	err := host.run(ctx, []string{program, "--workdir=" + place.Folder, "stop", "--purge"}, nil, io.Discard, nil)
	if err != nil && isGone(ctx, c, place) {
		return nil // the replica went with its pod
	}
	if err != nil {
		return fmt.Errorf("%s: %w", host, err)
	}
	return nil
}

// isGone reports whether the pod of a place is certainly gone.
func isGone(ctx context.Context, cluster *cluster, place replica.Place) bool {
	pod, err := cluster.client.Pod(ctx, place.Namespace, place.Pod)
	return apierrors.IsNotFound(err) || err == nil && string(pod.UID) != place.UID
}

// ErrRemains is wrapped when all of a start was deleted, and some of it is not gone: a pod
// goes once its kubelet has ended it.
var ErrRemains = errors.New("not everything is gone")

// delete deletes the Jobs of a start, with all that they own, and waits until that is gone.
func (c *cluster) delete(ctx context.Context, namespace, set string) error {
	limited, cancel := context.WithTimeout(ctx, patienceGone)
	defer cancel()
	asked := map[string]bool{}
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		jobs, err := c.client.Jobs(limited, namespace, ours+","+setSelector(set))
		if err != nil {
			return fmt.Errorf("deleting set %s in namespace %s: %w", set, namespace, err)
		}
		if len(jobs.Items) == 0 {
			return nil
		}
		for _, job := range jobs.Items {
			if asked[string(job.UID)] {
				continue
			}
			if err := c.client.DeleteJob(limited, namespace, job.Name, job.UID); err != nil && !apierrors.IsNotFound(err) {
				return kube.Explain(err, "deleting Job "+job.Name+" in namespace "+namespace)
			}
			asked[string(job.UID)] = true
		}
		select {
		case <-limited.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return c.remainsError(ctx, namespace, set)
		case <-time.After(pause):
		}
		if pause == time.Second && c.waitsForKubelets(limited, namespace, set) {
			return c.remainsError(ctx, namespace, set)
		}
	}
}

// waitsForKubelets reports whether all that remains of a deleted start are pods whose
// kubelet is silent.
func (c *cluster) waitsForKubelets(ctx context.Context, namespace, set string) bool {
	list, err := c.client.Pods(ctx, namespace, setSelector(set))
	return err == nil && len(list.Items) > 0 && !slices.ContainsFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil || !isSilent(&pod) })
}

// remainsError returns the error about what remains of a deleted start.
func (c *cluster) remainsError(ctx context.Context, namespace, set string) error {
	const limit = 5 * time.Second // the time of ctx may be over
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	list, err := c.client.Pods(ctx, namespace, setSelector(set))
	switch {
	case err != nil:
		return fmt.Errorf("set %s in namespace %s was deleted, and %w; what remains is not known: %w", set, namespace, ErrRemains, err)
	case len(list.Items) == 0:
		return fmt.Errorf("set %s in namespace %s was deleted, and %w: the controllers of the cluster have not removed its Jobs: do they run?", set, namespace, ErrRemains)
	}
	return fmt.Errorf("set %s in namespace %s was deleted, and %w: %s: a pod goes when the kubelet of its node runs again, or when the node is removed from the cluster; \"kubectl delete pod --force --namespace %s --selector %s\" does not wait for that",
		set, namespace, ErrRemains, namesOf(list.Items), namespace, setSelector(set))
}

// namesOf describes pods that are not gone, and their nodes.
func namesOf(pods []corev1.Pod) string {
	var texts []string
	for _, pod := range pods {
		text := "pod " + pod.Name
		if pod.Spec.NodeName != "" {
			text += " on node " + pod.Spec.NodeName
		}
		if isSilent(&pod) {
			text += ", whose kubelet does not report to the cluster"
		}
		texts = append(texts, text)
	}
	const maxNames = 3
	if more := len(texts) - maxNames; more > 0 {
		texts = append(texts[:maxNames], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
