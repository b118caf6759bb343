package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/machine"
)

// Pod describes a pod. Its containers are in the network of this machine.
type Pod struct {
	Namespace, Name, Node string
	Labels                map[string]string
	Containers            map[string]Container // by name
}

// Container describes a container of a pod. Its first process does nothing.
type Container struct {
	Programs Programs
	Mounts   []Mount
	Crashes  bool // its first process ends at once
	Unready  bool // it never becomes ready
}

// AddPods creates pods and their namespaces, and waits until their containers run, or for
// a container that crashes until the kubelet delays its next start.
func (c *Cluster) AddPods(ctx context.Context, pods ...Pod) error {
	for _, p := range pods {
		if err := c.CreatePod(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range pods {
		if err := c.awaitPod(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// CreatePod creates a pod and its namespace, and does not wait for its containers.
func (c *Cluster) CreatePod(ctx context.Context, p Pod) error {
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = c.Client.CoreV1().Pods(p.Namespace).Create(ctx, p.object(), metav1.CreateOptions{})
	return err
}

func (p Pod) object() *corev1.Pod {
	no, grace := false, int64(0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels},
		Spec: corev1.PodSpec{
			NodeName: p.Node, HostNetwork: true, AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace,
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	volumes := map[string]string{} // by path of the host
	for name, container := range p.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, container.object(name, volumes))
	}
	for host, name := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: host}}})
	}
	return pod
}

func (c Container) object(name string, volumes map[string]string) corev1.Container {
	object := corev1.Container{Name: name, Image: ImageWithoutTools, ImagePullPolicy: corev1.PullNever}
	for _, m := range append(c.Programs.mounts(), c.Mounts...) {
		if volumes[m.Host] == "" {
			volumes[m.Host] = "v" + strconv.Itoa(len(volumes))
		}
		object.VolumeMounts = append(object.VolumeMounts, corev1.VolumeMount{Name: volumes[m.Host], MountPath: m.Container, ReadOnly: m.ReadOnly})
	}
	if c.Crashes {
		object.Command = []string{"/usr/bin/false"}
	}
	if c.Unready {
		object.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/usr/bin/false"}}}}
	}
	return object
}

func (c *Cluster) awaitPod(ctx context.Context, p Pod) error {
	ctx, cancel := context.WithTimeout(ctx, ovs.Patience())
	defer cancel()
	return await(ctx, func() error {
		pod, err := c.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, container := range p.Containers {
			if state := stateOf(pod, name); !container.is(state) {
				return fmt.Errorf("pod %s: container %s is %+v", p.Name, name, state)
			}
		}
		return nil
	})
}

func stateOf(pod *corev1.Pod, container string) corev1.ContainerState {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.State
		}
	}
	return corev1.ContainerState{}
}

// is reports whether the container has the state that it shall have.
func (c Container) is(state corev1.ContainerState) bool {
	if c.Crashes {
		return state.Waiting != nil && state.Waiting.Reason == "CrashLoopBackOff"
	}
	return state.Running != nil
}

// RemovePods removes those pods that exist, and waits until their node has no process and
// no cgroup of them.
func (c *Cluster) RemovePods(ctx context.Context, pods ...Pod) error {
	ctx, cancel := context.WithTimeout(ctx, ovs.Patience())
	defer cancel()
	var groups []machine.Cgroup
	now := int64(0)
	for _, p := range pods {
		pod, err := c.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			return err
		}
		if n := c.node(p.Node); n != nil {
			groups = append(groups, n.pods().Find("pod"+string(pod.UID)))
		}
	}
	return await(ctx, func() error {
		for _, g := range groups {
			if g.Exists() {
				return fmt.Errorf("cgroup %s is still there", g)
			}
		}
		return nil
	})
}

// FirstProcess returns the pid of a container's first process.
func (c *Cluster) FirstProcess(ctx context.Context, namespace, name, container string) (int, error) {
	pod, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	if n := c.node(pod.Spec.NodeName); n != nil {
		for _, s := range pod.Status.ContainerStatuses {
			if _, id, _ := strings.Cut(s.ContainerID, "://"); s.Name == container && id != "" {
				for _, pid := range n.pods().Find(id).Processes() {
					if machine.NamespacedPID(pid) == 1 {
						return pid, nil
					}
				}
			}
		}
	}
	return 0, fmt.Errorf("container %s of pod %s has no process", container, name)
}

// Upper returns the folder of the files that a container has changed in its image.
func Upper(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 5 || words[4] != "/" {
			continue
		}
		for option := range strings.SplitSeq(words[len(words)-1], ",") {
			if upper, is := strings.CutPrefix(option, "upperdir="); is {
				return upper, nil
			}
		}
	}
	return "", errors.New("the root of the container is no overlay")
}

// await calls check until it returns nil, and returns its last error when ctx or the patience ends.
func await(ctx context.Context, check func() error) error {
	var last error
	if err := ovs.Until(ctx, "a part of the cluster", func() bool {
		last = check()
		return last == nil
	}); err != nil {
		return errors.Join(err, last)
	}
	return nil
}
