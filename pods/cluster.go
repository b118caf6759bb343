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
	loading   map[podID]*sync.Mutex // held while a pod is loaded anew
}

// NewClusters returns Clusters without connections; version is that of ovs-offline.
func NewClusters(version string) *Clusters {
	return &Clusters{version: version, connected: map[clusterID]*cluster{}, loading: map[podID]*sync.Mutex{}}
}

type clusterID struct{ kubeconfig, context, server string }

// podID identifies a pod and those that replace it.
type podID struct {
	server, namespace, job string
	index                  int
}

// cluster is a connection.
type cluster struct{ client *kube.Client }

// connect returns the cluster of a place.
func (c *Clusters) connect(ctx context.Context, p replica.Place) (*cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := clusterID{p.Kubeconfig, p.Context, p.Server}
	if found := c.connected[id]; found != nil {
		return found, nil
	}
	kubeconfig := kube.Config{
		Rules:     &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(p.Kubeconfig)},
		Overrides: clientcmd.ConfigOverrides{CurrentContext: p.Context}, Program: program + "/" + c.version,
	}
	config, err := kubeconfig.Load(ctx)
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
	return &cluster{client}, nil
}
