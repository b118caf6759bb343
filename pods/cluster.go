package pods

import (
	"cmp"
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

// podID identifies a pod, and every pod that replaces it.
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
	files, err := kubeconfigOf(p.Set)
	if err != nil {
		return nil, err
	}
	id := clusterID{files, p.Context, p.Server}
	if found := c.connected[id]; found != nil {
		return found, nil
	}
	kubeconfig := kube.Config{
		Rules:     clientcmd.NewDefaultClientConfigLoadingRules(),
		Overrides: clientcmd.ConfigOverrides{CurrentContext: p.Context}, Program: program + "/" + c.version,
		Advice: fmt.Sprintf("set KUBECONFIG to the file with the context %q", p.Context),
	}
	if files != "" {
		kubeconfig.Rules = &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(files)}
	}
	config, err := kubeconfig.Load(ctx)
	if err != nil {
		return nil, err
	}
	if config.Host != p.Server {
		return nil, fmt.Errorf("the replica was started in the cluster %s, and the context %q is now that of %s: set KUBECONFIG to the file of the former", p.Server, p.Context, config.Host)
	}
	found, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	c.connected[id] = found
	return found, nil
}

func newCluster(config *rest.Config) (*cluster, error) {
	limited := rest.CopyConfig(config)
	limited.Timeout = cmp.Or(config.Timeout, patienceServer)
	client, err := kube.Connect(limited)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &cluster{client}, nil
}
