package cmd

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"ovs-offline/collect/k8s"
	"ovs-offline/internal/kube"
)

// kubeconfig is the configuration of a cluster's client, with kubectl's flags.
type kubeconfig struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

func newKubeconfig() *kubeconfig {
	return &kubeconfig{rules: clientcmd.NewDefaultClientConfigLoadingRules()}
}

func (k *kubeconfig) addFlags(f *pflag.FlagSet) {
	f.StringVar(&k.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "path to the kubeconfig file (or KUBECONFIG)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.ContextOverrideFlags.Namespace.Description = "namespace of OVS and OVN, if not the usual one"
	names.Timeout.Description = "limit for one request, and for the silence of a stream (default for a stream: 1m)"
	clientcmd.BindOverrideFlags(&k.overrides, f, names)
}

func (k *kubeconfig) namespace() string { return k.overrides.Context.Namespace }

// load reads the configuration as kubectl does, or uses that of the pod that
// ovs-offline runs in. Requests are logged to the logger of ctx.
func (k *kubeconfig) load(ctx context.Context) (*rest.Config, error) {
	return kube.Config(ctx, k.clientConfig(), "ovs-offline/"+version)
}

func (k *kubeconfig) clientConfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.rules, &k.overrides)
}

// nodes returns the names of the cluster's nodes. It returns nil on error:
// completion must stay silent.
func (k *kubeconfig) nodes(ctx context.Context) []string {
	const timeout = 3 * time.Second
	config, err := k.load(ctx)
	if err != nil {
		return nil
	}
	config.Timeout = timeout
	cluster, err := k8s.Connect(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	names, err := cluster.Nodes(ctx, "")
	if err != nil {
		return nil
	}
	return names
}
