// Package kube is the connection to a Kubernetes cluster: its configuration, requests to
// its API server, and commands in its pods. All of them end with their context.
package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// DefaultTimeout is how long a request may be unanswered without a limit of the user.
const DefaultTimeout = 60 * time.Second

// Client sends requests to an API server, and runs commands in containers. An error of
// the server is an apierrors.APIStatus. A Client knows few groups of the API: client-go's
// set of all groups costs every start of the program 10 ms and 40 MB of its file.
type Client struct {
	rest    rest.Interface
	streams *rest.Config
	timeout time.Duration // of a request, and of the handshake of a stream
}

// Connect returns a Client with a configuration. It sends no request yet.
func Connect(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authorizationv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	client := &Client{streams: rest.CopyConfig(config), timeout: cmp.Or(config.Timeout, DefaultTimeout)}
	client.streams.Timeout = 0 // this is for requests; whoever reads a stream watches it
	limited := rest.CopyConfig(config)
	limited.Timeout = client.timeout
	limited.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	var err error
	client.rest, err = rest.UnversionedRESTClientFor(limited)
	return client, err
}

// Version returns the version of the server, for example "v1.36.3".
func (c *Client) Version(ctx context.Context) (string, error) {
	var info version.Info
	err := endsWith(ctx, func() error {
		body, err := c.rest.Get().AbsPath("/version").Do(ctx).Raw()
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &info)
	})
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// Node returns a node by its name.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, sendFor(ctx, scopeRequest(c.rest.Get(), coreGroup, "", "nodes").Name(name), node)
}

// Nodes returns the nodes that the label selector matches; "" matches all.
func (c *Client) Nodes(ctx context.Context, selector string) (*corev1.NodeList, error) {
	list := &corev1.NodeList{}
	return list, sendFor(ctx, selected(scopeRequest(c.rest.Get(), coreGroup, "", "nodes"), selector), list)
}

// Pods returns the pods of a namespace ("": of all) that the label selector matches.
func (c *Client) Pods(ctx context.Context, namespace, selector string) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	return list, sendFor(ctx, selected(scopeRequest(c.rest.Get(), coreGroup, namespace, "pods"), selector), list)
}

// Services returns the services of all namespaces.
func (c *Client) Services(ctx context.Context) (*corev1.ServiceList, error) {
	list := &corev1.ServiceList{}
	return list, sendFor(ctx, scopeRequest(c.rest.Get(), coreGroup, "", "services"), list)
}

// Review returns the server's answer to whether the user has a permission.
func (c *Client) Review(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	answer := &authorizationv1.SelfSubjectAccessReview{}
	group := authorizationv1.SchemeGroupVersion
	return answer, sendFor(ctx, c.rest.Post().AbsPath("/apis", group.Group, group.Version).Resource("selfsubjectaccessreviews").Body(review), answer)
}

// sendFor sends a request and sets object to the answer. After an error, object may still
// be written to.
func sendFor(ctx context.Context, request *rest.Request, object runtime.Object) error {
	return endsWith(ctx, func() error { return request.Do(ctx).Into(object) })
}

func selected(request *rest.Request, selector string) *rest.Request {
	if selector != "" {
		request = request.Param("labelSelector", selector)
	}
	return request
}

// Unavailable reports whether a request failed because the API server did not answer, or
// because it is not ready.
func Unavailable(err error) bool {
	var noAnswer *url.Error
	return errors.As(err, &noAnswer) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// IsForbidden reports whether a request was refused because the user lacks a permission, or
// because of the namespace's quota. Over SPDY, client-go returns the server's answer to an exec
// as text.
func IsForbidden(err error) bool {
	return apierrors.IsForbidden(err) || strings.Contains(err.Error(), " is forbidden: ")
}

// Explain adds the meaning for the user to an error of the API server.
func Explain(err error, doing string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: %w: are the credentials of the kubeconfig (or --token) still good?", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
