package k8s

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// Cluster is a Kubernetes cluster: what it says of its pods, and a way to run
// commands in them.
type Cluster struct {
	Name    string // its server's URL
	Version string // of its API server, "v1.36.3"; "" if it doesn't say
	API     kubernetes.Interface
	Executor
}

// Connect makes a Cluster of a configuration. It asks for nothing yet.
func Connect(config *rest.Config) (*Cluster, error) {
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	streams := rest.CopyConfig(config)
	streams.Timeout = 0 // of a request; a stream takes its time, and has a watch of its own
	return &Cluster{Name: config.Host, API: api, Executor: &remote{config: streams, rest: api.CoreV1().RESTClient()}}, nil
}

// Nodes are the names of the nodes with the labels of a selector, "" for all.
func (c *Cluster) Nodes(ctx context.Context, selector string) ([]string, error) {
	list, err := c.API.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, explain(err, "listing nodes")
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names, nil
}

// remote runs commands through the API server.
type remote struct {
	config *rest.Config
	rest   rest.Interface
}

// Exec asks over WebSocket, and over SPDY where the server or a proxy on the
// way refuses that. Neither has a terminal, nor a standard input.
func (r *remote) Exec(ctx context.Context, t Target, argv []string, stdout, stderr io.Writer) error {
	url := r.rest.Post().Resource("pods").Namespace(t.Namespace).Name(t.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: t.Container, Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	overWebSocket, err := remotecommand.NewWebSocketExecutor(r.config, http.MethodGet, url.String())
	if err != nil {
		return err
	}
	overSPDY, err := newSPDYExecutor(ctx, r.config, url)
	if err != nil {
		return err
	}
	either, err := remotecommand.NewFallbackExecutor(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	return either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
}

// isRefused tells answers that another try would only repeat: the container has
// no shell, or the request itself was refused. Over SPDY client-go gives the
// server's answer as text alone, which is tried again for nothing.
func isRefused(err error) bool {
	var exited utilexec.CodeExitError
	return apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || errors.As(err, &exited) && (exited.Code == 126 || exited.Code == 127)
}

// explain says what an error of the API server means for whoever runs us.
func explain(err error, doing string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: %w: are the credentials of the kubeconfig (or --token) still good?", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
