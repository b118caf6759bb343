package cluster

import (
	"context"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pod describes a pod of a test.
type Pod struct {
	Namespace, Name, Node string
	Labels                map[string]string
	Containers            map[string]*Container // by name
	Waiting               string                // why no container runs, such as "CrashLoopBackOff"
	Unready               bool                  // running but not ready
}

// AddNode adds a node whose kubelet is at address (host:port), "" for the cluster's.
func (c *Cluster) AddNode(ctx context.Context, name, address string) error {
	if address == "" {
		address = c.Kubelet.Address
	}
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return err
	}
	nodes := c.Client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}, {Type: corev1.NodeHostName, Address: name}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// AddPod adds a pod with its status, and its namespace.
func (c *Cluster) AddPod(ctx context.Context, p Pod) error {
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels}}
	pod.Spec.NodeName = p.Node
	for name := range p.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "localhost/test"})
	}
	if pod, err = c.Client.CoreV1().Pods(p.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod.Status = p.status()
	if _, err = c.Client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for name, container := range p.Containers {
		if p.Waiting == "" {
			c.containers.Store(p.id(name), container)
		}
	}
	return nil
}

func (p Pod) id(container string) string { return p.Namespace + "/" + p.Name + "/" + container }

func (p Pod) status() corev1.PodStatus {
	ready := corev1.ConditionTrue
	if p.Unready || p.Waiting != "" {
		ready = corev1.ConditionFalse
	}
	now := metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "127.0.0.1", StartTime: &now, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready},
	}}
	for name := range p.Containers {
		s := corev1.ContainerStatus{Name: name, Ready: ready == corev1.ConditionTrue, Image: "localhost/test", ContainerID: "test://" + p.id(name)}
		if p.Waiting != "" {
			s.RestartCount = 7
			s.State.Waiting = &corev1.ContainerStateWaiting{Reason: p.Waiting, Message: "back-off 5m0s restarting failed container"}
		} else {
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	return status
}

// Forget makes a pod unknown to the kubelets, while the API server still has it.
func (c *Cluster) Forget(p Pod) {
	for name := range p.Containers {
		c.containers.Delete(p.id(name))
	}
}

// RemovePod removes a pod from the API server and the kubelets immediately.
func (c *Cluster) RemovePod(ctx context.Context, p Pod) error {
	c.Forget(p)
	now := int64(0)
	return c.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// RemoveNode removes a node.
func (c *Cluster) RemoveNode(ctx context.Context, name string) error {
	return c.Client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// Grant gives a user the permissions of the rules in all namespaces. Further calls for
// the same user have no effect.
func (c *Cluster) Grant(ctx context.Context, user string, rules ...rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := c.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: user, APIGroup: rbacv1.GroupName},
	}
	_, err := c.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}
