package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Cluster is a Kubernetes cluster: its API, and an Executor for its pods.
type Cluster struct {
	Name    string // its server's URL
	Version string // of its API server, "v1.36.3"; "" if unknown
	API     API
	Executor
}

// Connect returns the Cluster of a configuration. It sends no request yet.
func Connect(config *rest.Config) (*Cluster, error) {
	limited := rest.CopyConfig(config)
	limited.Timeout = cmp.Or(config.Timeout, defaultStall)
	api, err := newRequests(limited)
	if err != nil {
		return nil, err
	}
	streams := rest.CopyConfig(config)
	streams.Timeout = 0 // this is for requests; streams are watched by transfer
	return &Cluster{Name: config.Host, API: api, Executor: &remote{config: streams, api: api, handshake: limited.Timeout}}, nil
}

// Nodes returns the names of the nodes that the label selector matches; "" matches all.
func (c *Cluster) Nodes(ctx context.Context, selector string) ([]string, error) {
	list, err := c.API.Nodes(ctx, selector)
	if err != nil {
		return nil, explain(err, "listing nodes")
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Name)
	}
	return names, nil
}

// unavailable reports whether a request failed because the API server did not answer, or
// because it is not ready.
func unavailable(err error) bool {
	var noAnswer *url.Error
	return errors.As(err, &noAnswer) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// explain adds the meaning for the user to an error of the API server.
func explain(err error, doing string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: %w: are the credentials of the kubeconfig (or --token) still good?", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
