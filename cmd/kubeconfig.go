package cmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"ovs-offline/collect/k8s"
	"ovs-offline/internal/logging"
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
	log := logging.FromContext(ctx)
	setKlog(log)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.rules, &k.overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is configured: set KUBECONFIG, or give --kubeconfig, or --server")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = "ovs-offline/" + version
	config.QPS, config.Burst = 50, 100 // ten nodes at once ask in bursts
	if !log.Enabled(ctx, slog.LevelDebug) {
		config.WarningHandler = rest.NoWarnings{}
	}
	return config, nil
}

// setKlog makes client-go log requests to a logger that is enabled, else nothing.
func setKlog(log *slog.Logger) {
	klog.SetSlogLogger(log)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		f := flag.NewFlagSet("klog", flag.ContinueOnError)
		klog.InitFlags(f)
		_ = f.Set("v", "6") // its own flag and a number: it can't fail
	}
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
