package cluster

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/daemons/ovs"
)

// controllers are those that a Job and its pods need, from its creation until nothing is
// left of it, those without which a namespace has no service account and no quota, and
// the one that finds the pods of services.
var controllers = []string{
	"job-controller", "ttl-after-finished-controller", "garbage-collector-controller", "pod-garbage-collector-controller", "disruption-controller",
	"node-lifecycle-controller", "taint-eviction-controller",
	"namespace-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller", "resourcequota-controller",
	"endpointslice-controller",
}

// startJobs starts the scheduler and the controllers.
func (c *Cluster) startJobs() error {
	kubeconfig, err := c.Kubeconfig(Admin, "")
	if err != nil {
		return err
	}
	flags := []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"}
	c.Scheduler, err = c.StartProcess("kube-scheduler", append([]string{c.program, "scheduler"}, flags...))
	if err != nil {
		return err
	}
	c.Controllers, err = c.StartProcess("kube-controller-manager", append([]string{
		c.program, "controller-manager", "--controllers=" + strings.Join(controllers, ","),
		"--root-ca-file=" + c.file("ca.crt"), "--service-account-private-key-file=" + c.file("accounts.key"),
	}, flags...))
	return err
}

// AddNamespace creates a namespace with labels. In a cluster with Options.Jobs, it waits
// until pods can be created there.
func (c *Cluster) AddNamespace(ctx context.Context, name string, labels map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, ovs.Patience())
	defer cancel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := c.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil || c.Controllers == nil {
		return err
	}
	return c.Controllers.Await(ctx, func() error {
		_, err := c.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
