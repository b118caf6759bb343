package pods

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"ovs-offline/internal/kube"
	"ovs-offline/replica"
)

// Clusters holds the connections of one command to the clusters that replicas run in. It
// connects to each once.
type Clusters struct {
	version string // of this program

	mu        sync.Mutex
	connected map[clusterID]*cluster
}

// NewClusters returns Clusters without connections; version is that of ovs-offline.
func NewClusters(version string) *Clusters {
	return &Clusters{version: version, connected: map[clusterID]*cluster{}}
}

type clusterID struct{ kubeconfig, context, server string }

// cluster is a connection.
type cluster struct {
	client *kube.Client
	server string
}

// connect returns the cluster of a place.
func (c *Clusters) connect(ctx context.Context, p replica.Place) (*cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := clusterID{p.Kubeconfig, p.Context, p.Server}
	if found := c.connected[id]; found != nil {
		return found, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(p.Kubeconfig)}
	config, err := kube.Config(ctx, clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: p.Context}), "ovs-offline/"+c.version)
	if err != nil {
		return nil, err
	}
	if config.Host != p.Server {
		return nil, fmt.Errorf("the replica was started in the cluster %s, and the context %q of %s is now that of %s", p.Server, p.Context, p.Kubeconfig, config.Host)
	}
	found, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	c.connected[id] = found
	return found, nil
}

func newCluster(config *rest.Config) (*cluster, error) {
	client, err := kube.Connect(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &cluster{client: client, server: config.Host}, nil
}

// at returns the host at a place.
func (c *Clusters) at(ctx context.Context, p replica.Place) (*Host, error) {
	found, err := c.connect(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Host{cluster: found, place: p}, nil
}
