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
	loading   map[podID]*loading
}

// NewClusters returns Clusters without connections; version is the version of ovs-offline.
func NewClusters(version string) *Clusters {
	return &Clusters{version: version, connected: map[clusterID]*cluster{}, loading: map[podID]*loading{}}
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
func (c *Clusters) connect(ctx context.Context, place replica.Place) (*cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	files, err := kubeconfigOf(place.Set)
	if err != nil {
		return nil, err
	}
	id := clusterID{files, place.Context, place.Server}
	if found := c.connected[id]; found != nil {
		return found, nil
	}
	config, err := c.load(ctx, place, files)
	if err != nil {
		return nil, err
	}
	found, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	c.connected[id] = found
	return found, nil
}

// load reads the configuration of the cluster that a replica was started in: from the files
// of that start if they still lead there, or else as kubectl does.
func (c *Clusters) load(ctx context.Context, place replica.Place, files string) (*rest.Config, error) {
	if files != "" {
		kept := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(files)}
		if config, err := c.loadFrom(ctx, place, kept); err == nil {
			return config, nil
		}
	}
	config, err := c.loadFrom(ctx, place, clientcmd.NewDefaultClientConfigLoadingRules())
	if err != nil && files != "" {
		err = fmt.Errorf("%w; the start used %s", err, files)
	}
	return config, err
}

// loadFrom reads the configuration of the cluster of a place from some files.
func (c *Clusters) loadFrom(ctx context.Context, place replica.Place, files *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	kubeconfig := kube.Config{Rules: files, Overrides: clientcmd.ConfigOverrides{CurrentContext: place.Context}, Program: program + "/" + c.version, Advice: "KUBECONFIG names none"}
	config, err := kubeconfig.Load(ctx)
	if err == nil && config.Host != place.Server {
		err = fmt.Errorf("the context %q now leads to %s", place.Context, config.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("the cluster %s can't be reached: %w: set KUBECONFIG to the file with its context %q", place.Server, err, place.Context)
	}
	return config, nil
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
