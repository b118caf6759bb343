package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"ovs-offline/internal/logging"
)

// Config reads a kubeconfig as kubectl does, or returns the configuration of the pod that
// this program runs in. program names this program to the server. Requests are logged to
// the logger of ctx.
func Config(ctx context.Context, kubeconfig clientcmd.ClientConfig, program string) (*rest.Config, error) {
	log := logging.FromContext(ctx)
	setKlog(log)
	config, err := kubeconfig.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is configured: set KUBECONFIG, or give --kubeconfig, or --server")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = program
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
