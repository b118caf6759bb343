package pods

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podWith returns a pod whose container is in a state.
func podWith(state corev1.ContainerState) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: "registry.example/replicas:v1"}}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: state}}},
	}
}

// TestProblemsOfPods checks what is said about a pod that does not run, with the words of
// a kubelet of Kubernetes 1.36 with containerd, and whether it is waited for.
func TestProblemsOfPods(t *testing.T) {
	deleted := podWith(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	deleted.DeletionTimestamp = new(metav1.Now())
	silent := deleted.DeepCopy()
	silent.Spec.NodeName = "node-1"
	silent.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	evicted := podWith(corev1.ContainerState{})
	evicted.Status.ContainerStatuses = nil
	evicted.Status.Phase, evicted.Status.Message = corev1.PodFailed, "The node was low on resource: memory."
	unschedulable := podWith(corev1.ContainerState{})
	unschedulable.Status.ContainerStatuses = nil
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient memory."}}
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		want   string
		waited bool
	}{
		"no pod yet": {nil, "", true},
		"creating": {podWith(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}),
			"", true},
		"full cluster": {unschedulable, "pod pod-0 finds no node: 0/3 nodes are available: 3 Insufficient memory.", true},
		"no image": {podWith(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
			Message: "not found"}}), "pod pod-0 can't pull the image registry.example/replicas:v1: not found", true},
		"no credentials": {podWith(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull",
			Message: "failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized"}}),
			"401 Unauthorized: does the registry want credentials? (\"kubectl create secret docker-registry\"", true},
		"wrong name": {podWith(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName",
			Message: "couldn't parse"}}), "pod pod-0 can't run the image registry.example/replicas:v1: InvalidImageName: couldn't parse", false},
		"no ovs-offline": {podWith(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError",
			ExitCode: 128, Message: "executable file not found in $PATH"}}),
			"has no ovs-offline that can be run: executable file not found", false},
		"old ovs-offline": {podWith(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error",
			ExitCode: 2}}), "ended with exit code 2: Error: is ovs-offline in the image registry.example/replicas:v1 of the same version as here?", false},
		"out of memory": {podWith(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled",
			ExitCode: 137}}), "used more than its limit of memory", false},
		"stopped": {podWith(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error",
			ExitCode: 143}}), "pod pod-0 was stopped: Error", true},
		"evicted": {evicted, "pod pod-0 ended: The node was low on resource: memory.", true},
		"silent":  {silent, "pod pod-0 was deleted, and the kubelet of its node node-1 does not report to the cluster", true},
		"deleted": {deleted, "pod pod-0 was deleted", true},
	} {
		got := stateOf(c.pod)
		if got.running || !strings.Contains(got.problem, c.want) || c.want == "" && got.problem != "" ||
			got.patience > 0 != c.waited {
			t.Errorf("%s: %+v, want %q, waited for: %t", name, got, c.want, c.waited)
		}
	}
	running := podWith(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	running.Status.Phase = corev1.PodRunning
	if got := stateOf(running); !got.running || got.problem != "" {
		t.Errorf("a running pod: %+v", got)
	}
}

// TestCurrentPodOfAnIndex checks that the pod that lives is found, not those that it has
// replaced, and not that of another index.
func TestCurrentPodOfAnIndex(t *testing.T) {
	began := time.Now()
	pod := func(name, job, index string, phase corev1.PodPhase, age time.Duration) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began.Add(-age)),
				Labels:      map[string]string{batchv1.JobNameLabel: job},
				Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: index}},
			Status: corev1.PodStatus{Phase: phase},
		}
	}
	going := pod("going", "a", "0", corev1.PodRunning, time.Second)
	going.DeletionTimestamp = new(metav1.Now())
	list := []corev1.Pod{
		pod("evicted", "a", "0", corev1.PodFailed, time.Hour), pod("lives", "a", "0", corev1.PodRunning, time.Minute), going,
		pod("other index", "a", "1", corev1.PodPending, 0), pod("other Job", "b", "0", corev1.PodRunning, 0),
		pod("first", "c", "0", corev1.PodFailed, time.Hour), pod("second", "c", "0", corev1.PodFailed, time.Minute),
	}
	for _, c := range []struct {
		job   string
		index int
		want  string
	}{{"a", 0, "lives"}, {"a", 1, "other index"}, {"b", 0, "other Job"}, {"c", 0, "second"}, {"c", 1, ""}} {
		got := ""
		if p := current(list, c.job, c.index); p != nil {
			got = p.Name
		}
		if got != c.want {
			t.Errorf("index %d of Job %s: %q, want %q", c.index, c.job, got, c.want)
		}
	}
}
