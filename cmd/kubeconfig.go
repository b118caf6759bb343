package cmd

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"ovs-offline/collect/k8s"
	"ovs-offline/internal/kube"
)

// kubeconfig is the configuration of a cluster's client, with kubectl's flags.
type kubeconfig struct{ kube.Config }

func newKubeconfig() *kubeconfig {
	return &kubeconfig{kube.Config{Rules: clientcmd.NewDefaultClientConfigLoadingRules(), Program: "ovs-offline/" + version, Advice: "set KUBECONFIG, or give --kubeconfig"}}
}

// addFlags adds all of kubectl's flags.
func (k *kubeconfig) addFlags(flags *pflag.FlagSet) {
	k.pathFlag(flags)
	k.Advice += ", or --server"
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.ContextOverrideFlags.Namespace.Description = "namespace of OVS and OVN, if not the usual one"
	names.Timeout.Description = "limit for one request, and for the silence of a stream (default for a stream: 1m)"
	clientcmd.BindOverrideFlags(&k.Overrides, flags, names)
	spellAsOurs(flags)
}

// addPlaceFlags adds the flags of kubectl that select a cluster and a namespace in it.
func (k *kubeconfig) addPlaceFlags(flags *pflag.FlagSet) {
	k.pathFlag(flags)
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.CurrentContext.BindStringFlag(flags, &k.Overrides.CurrentContext)
	names.ContextOverrideFlags.Namespace.Description = "namespace of the replicas in the cluster"
	names.ContextOverrideFlags.Namespace.BindStringFlag(flags, &k.Overrides.Context.Namespace)
	spellAsOurs(flags)
}

// spellAsOurs makes the usage of kubectl's flags begin and end like the usage of other flags: with a small
// letter, and without a full stop.
func spellAsOurs(flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if text := flag.Usage; len(text) > 1 && unicode.IsUpper(rune(text[0])) && unicode.IsLower(rune(text[1])) {
			flag.Usage = strings.TrimSuffix(strings.ToLower(text[:1])+text[1:], ".")
		}
	})
}

func (k *kubeconfig) pathFlag(flags *pflag.FlagSet) {
	flags.StringVar(&k.Rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "path to the kubeconfig file (or KUBECONFIG)")
}

// namespace returns the namespace that the user named, "" for none.
func (k *kubeconfig) namespace() string { return k.Overrides.Context.Namespace }

// nodes returns the names of the cluster's nodes. It returns nil on error:
// completion must stay silent.
func (k *kubeconfig) nodes(ctx context.Context) []string {
	const timeout = 3 * time.Second
	config, err := k.Load(ctx)
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
