package pods

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// How long what keeps a pod from running may last: it may pass.
const (
	patienceScheduling = time.Minute      // the cluster may get another node
	patiencePulling    = 20 * time.Second // the kubelet tries again after 10 s
	patienceCreating   = 20 * time.Second // the Job's controller tries again after 10 s
	patienceSilent     = 5 * time.Minute  // nothing is reported, as while a large image is pulled
)

// exitKilled is the exit code of a container that was killed.
const exitKilled = 128 + 9

// podState is how far a pod is.
type podState struct {
	running  bool
	problem  string        // why it does not run; "" while nothing is wrong
	patience time.Duration // how long the problem may last
	lacks    string        // the end of a sentence: what it lacks, if it is given up without a problem
}

// stateOf returns the state of a pod; nil is a pod that does not exist yet.
func stateOf(pod *corev1.Pod) podState {
	if pod == nil {
		return podState{patience: patienceSilent}
	}
	if pod.DeletionTimestamp != nil {
		return podState{problem: fmt.Sprintf("pod %s was deleted%s", pod.Name, andNode(pod)), patience: patienceCreating}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			return waitingState(pod, *status.State.Waiting)
		}
		if ended := status.State.Terminated; ended != nil {
			return endedState(pod, *ended)
		}
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return podState{running: true}
	case corev1.PodFailed, corev1.PodSucceeded:
		return podState{problem: fmt.Sprintf("pod %s ended: %s", pod.Name, cmp.Or(pod.Status.Message, pod.Status.Reason, string(pod.Status.Phase))), patience: patienceCreating}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return podState{problem: fmt.Sprintf("pod %s finds no node: %s", pod.Name, condition.Message), patience: patienceScheduling}
		}
	}
	if pod.Spec.NodeName != "" && pod.Status.StartTime == nil {
		return podState{patience: patienceScheduling, lacks: fmt.Sprintf(": the kubelet of node %s has done nothing for pod %s: does it run?", pod.Spec.NodeName, pod.Name)}
	}
	return podState{patience: patienceSilent}
}

// hasEnded reports whether a pod has ended, and was not replaced yet if it is the current one.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// waitingState returns the state of a pod whose container waits.
func waitingState(pod *corev1.Pod, waiting corev1.ContainerStateWaiting) podState {
	image := pod.Spec.Containers[0].Image
	switch waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return podState{patience: patienceSilent}
	case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable":
		return podState{problem: fmt.Sprintf("pod %s can't pull the image %s: %s%s", pod.Name, image, cmp.Or(waiting.Message, waiting.Reason), aboutCredentials(pod, waiting.Message)), patience: patiencePulling}
	}
	return podState{problem: fmt.Sprintf("pod %s can't run the image %s: %s: %s", pod.Name, image, waiting.Reason, waiting.Message)}
}

// aboutCredentials returns the next step if a registry has refused a pod's image for want of
// credentials, "" after another error. The words come from containerd and CRI-O, which
// pass on the registry's.
func aboutCredentials(pod *corev1.Pod, message string) string {
	message = strings.ToLower(message)
	words := []string{"unauthorized", "403 forbidden", "denied", "no basic auth credentials", "authorization failed", "authentication required"}
	if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(message, word) }) {
		return ""
	}
	const next = " (\"kubectl create secret docker-registry\" makes a secret, and start --image-pull-secret names it)"
	if len(pod.Spec.ImagePullSecrets) == 0 {
		return ": does the registry want credentials?" + next
	}
	var names []string
	for _, secret := range pod.Spec.ImagePullSecrets {
		names = append(names, secret.Name)
	}
	return fmt.Sprintf(": does the secret %s exist, and hold the credentials of this registry?", strings.Join(names, ", ")) + next
}

// endedState returns the state of a pod whose container has ended. The image is at fault if
// that was at its start; a container that was stopped is replaced.
func endedState(pod *corev1.Pod, ended corev1.ContainerStateTerminated) podState {
	image := pod.Spec.Containers[0].Image
	switch {
	case ended.Reason == "StartError" || ended.Reason == "ContainerCannotRun":
		return podState{problem: fmt.Sprintf("the image %s has no %s that can be run: %s: \"ovs-offline image push\" makes and pushes one with it", image, program, ended.Message)}
	case ended.Reason == "OOMKilled":
		return podState{problem: fmt.Sprintf("pod %s ended: it used more than its limit of memory, %s", pod.Name, pod.Spec.Containers[0].Resources.Limits.Memory())}
	case int(ended.ExitCode) == exitEnded || ended.ExitCode == exitKilled:
		return podState{problem: fmt.Sprintf("pod %s was stopped: %s", pod.Name, cmp.Or(pod.Status.Message, pod.Status.Reason, ended.Reason)), patience: patienceCreating}
	}
	return podState{problem: fmt.Sprintf("pod %s ended with exit code %d: %s: is %s in the image %s of the same version as here?", pod.Name, ended.ExitCode, cmp.Or(ended.Message, ended.Reason), program, image)}
}

// current returns the pod of an index of a Job: the one that lives, else the last one that
// ended; nil if there is none.
func current(pods []corev1.Pod, job string, index int) *corev1.Pod {
	var found *corev1.Pod
	for i, pod := range pods {
		if pod.Labels[batchv1.JobNameLabel] != job || pod.Annotations[batchv1.JobCompletionIndexAnnotation] != strconv.Itoa(index) {
			continue
		}
		if found == nil || rank(pod) > rank(*found) || rank(pod) == rank(*found) && found.CreationTimestamp.Before(&pod.CreationTimestamp) {
			found = &pods[i]
		}
	}
	return found
}

// rank orders the pods of an index: one that lives is the highest.
func rank(pod corev1.Pod) int {
	return slices.Index([]bool{pod.DeletionTimestamp != nil, hasEnded(&pod), true}, true)
}

// failure returns the condition of a Job that has failed, as at its deadline; nil for
// another one. JobFailureTarget comes first: JobFailed waits until all pods have ended.
func failure(job *batchv1.Job) *batchv1.JobCondition {
	for i, condition := range job.Status.Conditions {
		if (condition.Type == batchv1.JobFailureTarget || condition.Type == batchv1.JobFailed) && condition.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}
