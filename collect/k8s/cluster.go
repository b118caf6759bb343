package k8s

import (
	"context"
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"ovs-offline/internal/kube"
)

// API holds the requests to an API server that a collection needs; kube.Client has them.
type API interface {
	Version(ctx context.Context) (string, error)
	Node(ctx context.Context, name string) (*corev1.Node, error)
	Nodes(ctx context.Context, selector string) (*corev1.NodeList, error)
	Pods(ctx context.Context, namespace, selector string) (*corev1.PodList, error)
	PodLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser, error)
	Services(ctx context.Context) (*corev1.ServiceList, error)
	Review(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error)
}

// Cluster is a Kubernetes cluster: its API, and an Executor for its pods.
type Cluster struct {
	Name    string // its server's URL
	Version string // of its API server, "v1.36.3"; "" if unknown
	API     API
	Executor
}

// Connect returns the Cluster of a configuration. It sends no request yet.
func Connect(config *rest.Config) (*Cluster, error) {
	client, err := kube.Connect(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Name: config.Host, API: client, Executor: remote{client}}, nil
}

// remote is the Executor of a real cluster.
type remote struct{ client *kube.Client }

func (r remote) Exec(ctx context.Context, target Target, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return r.client.Exec(ctx, kube.Command{Namespace: target.Namespace, Pod: target.Pod, Container: target.Container, Argv: argv, Stdin: stdin, Stdout: stdout, Stderr: stderr})
}

// Nodes returns the names of the nodes that the label selector matches; "" matches all.
func (c *Cluster) Nodes(ctx context.Context, selector string) ([]string, error) {
	list, err := c.API.Nodes(ctx, selector)
	if err != nil {
		return nil, kube.Explain(err, "listing nodes")
	}
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names, nil
}
