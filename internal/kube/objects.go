package kube

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// scopeRequest makes a request about resources of one kind in a namespace.
func scopeRequest(request *rest.Request, group, namespace, resource string) *rest.Request {
	return request.AbsPath(group).Namespace(namespace).Resource(resource)
}

const (
	coreGroup       = "/api/v1"
	batchGroup      = "/apis/batch/v1"
	networkingGroup = "/apis/networking.k8s.io/v1"
)

// Pod returns a pod by its name.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	return pod, sendFor(ctx, scopeRequest(c.rest.Get(), coreGroup, namespace, "pods").Name(name), pod)
}

// PodLog returns the log of a container of a pod.
func (c *Client) PodLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	request := scopeRequest(c.rest.Get(), coreGroup, namespace, "pods").Name(pod).SubResource("log").Param("container", options.Container)
	if options.Previous {
		request = request.Param("previous", "true")
	}
	if options.Timestamps {
		request = request.Param("timestamps", "true")
	}
	if options.TailLines != nil {
		request = request.Param("tailLines", strconv.FormatInt(*options.TailLines, 10))
	}
	if options.LimitBytes != nil {
		request = request.Param("limitBytes", strconv.FormatInt(*options.LimitBytes, 10))
	}
	return request.Stream(ctx)
}

// TryPod returns the error with which the server would refuse a pod. It creates none.
func (c *Client) TryPod(ctx context.Context, pod *corev1.Pod) error {
	return sendFor(ctx, scopeRequest(c.rest.Post(), coreGroup, pod.Namespace, "pods").Param("dryRun", metav1.DryRunAll).Body(pod), &corev1.Pod{})
}

// Events returns the events about an object.
func (c *Client) Events(ctx context.Context, namespace string, about types.UID) (*corev1.EventList, error) {
	list := &corev1.EventList{}
	return list, sendFor(ctx, scopeRequest(c.rest.Get(), coreGroup, namespace, "events").Param("fieldSelector", "involvedObject.uid="+string(about)), list)
}

// CreateJob creates a Job, and returns it as the server completed it.
func (c *Client) CreateJob(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	made := &batchv1.Job{}
	return made, sendFor(ctx, scopeRequest(c.rest.Post(), batchGroup, job.Namespace, "jobs").Body(job), made)
}

// Jobs returns the Jobs of a namespace ("": of all) that the label selector matches.
func (c *Client) Jobs(ctx context.Context, namespace, selector string) (*batchv1.JobList, error) {
	list := &batchv1.JobList{}
	return list, sendFor(ctx, selected(scopeRequest(c.rest.Get(), batchGroup, namespace, "jobs"), selector), list)
}

// DeleteJob deletes a Job if it is the one with this uid. It stays until its pods are gone.
func (c *Client) DeleteJob(ctx context.Context, namespace, name string, uid types.UID) error {
	foreground := metav1.DeletePropagationForeground
	options, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, PropagationPolicy: &foreground,
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil {
		return err
	}
	return endsWith(ctx, func() error {
		return scopeRequest(c.rest.Delete(), batchGroup, namespace, "jobs").Name(name).SetHeader("Content-Type", "application/json").Body(options).Do(ctx).Error()
	})
}

// CreateNetworkPolicy creates a NetworkPolicy.
func (c *Client) CreateNetworkPolicy(ctx context.Context, policy *networkingv1.NetworkPolicy) error {
	return sendFor(ctx, scopeRequest(c.rest.Post(), networkingGroup, policy.Namespace, "networkpolicies").Body(policy), &networkingv1.NetworkPolicy{})
}
