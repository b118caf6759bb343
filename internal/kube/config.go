package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"ovs-offline/internal/logging"
)

// Config is a kubeconfig, with what a user selects in it.
type Config struct {
	Rules     *clientcmd.ClientConfigLoadingRules
	Overrides clientcmd.ConfigOverrides
	Program   string // names this program and its version to the server
	Advice    string // how the user can name a cluster, for the error without one
}

// Load reads the configuration as kubectl does, or returns the one of the pod that this
// program runs in. Requests are logged to the logger of ctx.
func (c *Config) Load(ctx context.Context) (*rest.Config, error) {
	log := logging.FromContext(ctx)
	setKlog(log)
	config, err := c.client().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is configured: " + c.Advice)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = c.Program
	config.QPS, config.Burst = 50, 100 // ten nodes at once ask in bursts
	if !log.Enabled(ctx, slog.LevelDebug) {
		config.WarningHandler = rest.NoWarnings{}
	}
	return config, nil
}

func (c *Config) client() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.Rules, &c.Overrides)
}

// Namespace returns the selected namespace, or the context's.
func (c *Config) Namespace() (string, error) {
	namespace, _, err := c.client().Namespace()
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	return namespace, nil
}

// Context returns the name of the selected context, or of the current one; "" for the
// configuration of the pod that this program runs in.
func (c *Config) Context() (string, error) {
	if c.Overrides.CurrentContext != "" {
		return c.Overrides.CurrentContext, nil
	}
	raw, err := c.client().RawConfig()
	if err != nil {
		return "", fmt.Errorf("kubeconfig: %w", err)
	}
	return raw.CurrentContext, nil
}

// Files returns the paths of the files that the configuration is read from, as in
// KUBECONFIG, so that a command in another folder reads the same.
func (c *Config) Files() (string, error) {
	var files []string
	for _, path := range c.Rules.GetLoadingPrecedence() {
		if path == "" {
			continue
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("kubeconfig: %w", err)
		}
		if _, err := os.Stat(path); err == nil {
			files = append(files, path)
		}
	}
	return strings.Join(files, string(filepath.ListSeparator)), nil
}

// setKlog makes client-go log requests to a logger that is enabled, else nothing.
func setKlog(log *slog.Logger) {
	klog.SetSlogLogger(log)
	if log.Enabled(context.Background(), slog.LevelDebug) {
		set := flag.NewFlagSet("klog", flag.ContinueOnError)
		klog.InitFlags(set)
		_ = set.Set("v", "6") // its own flag and a number: it can't fail
	}
}
