package fabric

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/e2e/k8s/cluster"
)

// Pod is a running pod with a network of its own.
type Pod struct {
	corev1.Pod
	Network cluster.Network
}

// Pods waits until all pods run, while a server does, and returns those with a network of
// their own. Their interfaces compute the checksums of packets.
func (f *Fabric) Pods(ctx context.Context, server *cluster.Process) (pods []Pod, err error) {
	err = server.Await(ctx, func() error {
		pods, err = f.running(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, p := range pods {
		if err := f.ComputeChecksums(ctx, p.Network); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

// running returns the pods with a network of their own, or an error if one does not run.
func (f *Fabric) running(ctx context.Context) (pods []Pod, err error) {
	list, err := f.options.Cluster.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.Spec.HostNetwork {
			continue
		}
		if pod.Status.Phase != corev1.PodRunning {
			return nil, fmt.Errorf("pod %s/%s is %s", pod.Namespace, pod.Name, pod.Status.Phase)
		}
		pid, err := f.options.Cluster.FirstProcess(ctx, pod.Namespace, pod.Name, pod.Spec.Containers[0].Name)
		if err != nil {
			return nil, err
		}
		pods = append(pods, Pod{pod, cluster.NetworkOf(pid)})
	}
	return pods, nil
}
