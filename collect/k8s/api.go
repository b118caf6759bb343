package k8s

import (
	"context"
	"encoding/json"
	"net/url"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// API holds the requests to an API server that a collection needs. An error of the
// server is an apierrors.APIStatus.
type API interface {
	// Version returns the version of the server, for example "v1.36.3".
	Version(ctx context.Context) (string, error)
	// Node returns a node by its name.
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Nodes returns the nodes that the label selector matches; "" matches all.
	Nodes(ctx context.Context, selector string) (*corev1.NodeList, error)
	// Pods returns the pods of a namespace ("": of all) that the label selector matches.
	Pods(ctx context.Context, namespace, selector string) (*corev1.PodList, error)
	// Review returns the server's answer to whether the user has a permission.
	Review(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error)
}

// requests is the API of a real server. It knows two groups only: client-go's set of
// all groups costs every start of the program 10 ms and 40 MB of its file.
type requests struct{ client rest.Interface }

func newRequests(config *rest.Config) (requests, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return requests{}, err
		}
	}
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	return requests{client}, err
}

func (r requests) Version(ctx context.Context) (string, error) {
	var info version.Info
	err := endsWith(ctx, func() error {
		body, err := r.client.Get().AbsPath("/version").Do(ctx).Raw()
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

func (r requests) Node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, into(ctx, r.core().Resource("nodes").Name(name), node)
}

func (r requests) Nodes(ctx context.Context, selector string) (*corev1.NodeList, error) {
	list := &corev1.NodeList{}
	return list, into(ctx, selected(r.core().Resource("nodes"), selector), list)
}

func (r requests) Pods(ctx context.Context, namespace, selector string) (*corev1.PodList, error) {
	list := &corev1.PodList{}
	return list, into(ctx, selected(r.core().Namespace(namespace).Resource("pods"), selector), list)
}

func (r requests) Review(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	answer := &authorizationv1.SelfSubjectAccessReview{}
	group := authorizationv1.SchemeGroupVersion
	return answer, into(ctx, r.client.Post().AbsPath("/apis", group.Group, group.Version).Resource("selfsubjectaccessreviews").Body(review), answer)
}

// into sends a request and sets object to the answer. After an error, object may still
// be written to.
func into(ctx context.Context, request *rest.Request, object runtime.Object) error {
	return endsWith(ctx, func() error { return request.Do(ctx).Into(object) })
}

// exec returns the URL at which a command is run in a container, without a terminal.
func (r requests) exec(t Target, argv []string) *url.URL {
	request := r.core().Namespace(t.Namespace).Resource("pods").Name(t.Pod).SubResource("exec").
		Param("container", t.Container).Param("stdin", "true").Param("stdout", "true").Param("stderr", "true")
	for _, word := range argv {
		request.Param("command", word)
	}
	return request.URL()
}

func (r requests) core() *rest.Request { return r.client.Get().AbsPath("/api/v1") }

func selected(request *rest.Request, selector string) *rest.Request {
	if selector != "" {
		request = request.Param("labelSelector", selector)
	}
	return request
}
