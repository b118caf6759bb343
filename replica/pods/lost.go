package pods

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ovs-offline/internal/kube"
)

// nextStep ends the error of a command that can't reach its pod.
const nextStep = "try again later, or start the replicas again with \"ovs-offline start\""

// unreachable adds to the error of a stream what the cluster reports about the pod: the
// error itself may name only a connection of the API server to a kubelet.
func (h *Host) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil || kube.IsForbidden(err) {
		return err
	}
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pod, asked := h.cluster.client.Pod(ctx, h.place.Namespace, h.place.Pod)
	var state string
	switch {
	case apierrors.IsNotFound(asked), asked == nil && string(pod.UID) != h.place.UID:
		state = "the pod is gone"
	case asked != nil:
		state = "asking the cluster about the pod: " + asked.Error()
	case pod.DeletionTimestamp != nil:
		state = "the pod was deleted" + andNode(pod)
	case !stateOf(pod).running:
		state = cmp.Or(stateOf(pod).problem, "the pod does not run")
	default:
		state = "according to the cluster, the pod runs on node " + pod.Spec.NodeName + andNode(pod)
	}
	return fmt.Errorf("%w: %s", err, state)
}

// isSilent reports whether the kubelet of a pod's node no longer reports to the cluster,
// which then counts the pod as not ready, after about 50 seconds by default. A container
// with replicas has no probe: as long as it runs, its kubelet reports it as ready.
func isSilent(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && condition(pod, corev1.ContainersReady) == corev1.ConditionTrue && condition(pod, corev1.PodReady) == corev1.ConditionFalse
}

// condition returns the status of a condition of a pod, "" if it has none.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}

// andNode returns the part of a sentence about the node of a pod whose kubelet is silent,
// "" otherwise.
func andNode(pod *corev1.Pod) string {
	if !isSilent(pod) {
		return ""
	}
	return ", and the kubelet of its node " + pod.Spec.NodeName + " does not report to the cluster"
}
