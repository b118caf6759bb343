package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/kubeovn"
	"ovs-offline/test/e2e/k8s/machine"
	"ovs-offline/test/e2e/k8s/ovnkube"
	"ovs-offline/test/e2e/k8s/truth"
)

// network is a rig whose pods have a real network.
type network struct {
	flags []string // of the API server
	// start starts the network with programs that a folder has, and prints its nodes. The
	// function that it returns fills it, prints the pods, and returns what real packets did.
	start func(ctx context.Context, c *cluster.Cluster, built, root string) (fill, error)
}

type fill func(context.Context) ([]truth.Truth, error)

func ovnKubernetes() network {
	return network{ovnkube.Flags, func(ctx context.Context, c *cluster.Cluster, built, root string) (fill, error) {
		d, err := ovnkube.Start(ctx, ovnkube.Options{Cluster: c, Built: built, Root: root, Nodes: 2})
		if err != nil {
			return nil, err
		}
		for _, n := range d.Nodes {
			printNode(n.Node.Node)
		}
		return func(ctx context.Context) ([]truth.Truth, error) {
			pods, truths, _, err := d.Truths(ctx) // the servers end with the rig
			for _, p := range pods {
				fmt.Printf("# %s on %s: %s, network %s\n", p.Title(), p.Node, p.Network, p.NAD)
			}
			return truths, err
		}, nil
	}}
}

func kubeOVN() network {
	return network{kubeovn.Flags, func(ctx context.Context, c *cluster.Cluster, built, root string) (fill, error) {
		d, err := kubeovn.Start(ctx, kubeovn.Options{Cluster: c, Built: built, Root: root, Nodes: 2})
		if err != nil {
			return nil, err
		}
		for _, n := range d.Nodes {
			printNode(n.Node.Node)
		}
		return func(ctx context.Context) ([]truth.Truth, error) {
			pods, truths, _, err := d.Truths(ctx) // the servers end with the rig
			for _, p := range pods {
				fmt.Printf("# %s on %s: %s, %v in subnet %s of VPC %s\n", p.Name, p.Node, p.Network, p.IPs, p.Subnet, p.VPC)
			}
			return truths, err
		}, nil
	}}
}

func printNode(n *cluster.Node) { fmt.Printf("# %s: %q\n", n.Name, n.Inside()) }

// runNetwork has a cluster with a network until ctx or the standard input ends.
func runNetwork(ctx context.Context, p programs, built string, network network) error {
	if err := find(&p.kubernetes, &p.pause, &built, &p.root); err != nil {
		return err
	}
	all, err := machine.Begin()
	if err != nil {
		return err
	}
	defer all.End()
	dir := filepath.Join(all.Dir, "rig")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Kubernetes: p.kubernetes, Pause: p.pause, Dir: dir, Cgroup: all.Cgroup(), Flags: network.flags, Jobs: true})
	if err != nil {
		return err
	}
	defer c.Stop()
	kubeconfig, err := c.Kubeconfig(cluster.Admin, "")
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", kubeconfig)
	if err := startNetwork(ctx, c, built, p.root, network, filepath.Join(dir, "truths.json")); err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
	}
	in := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(in)
	}()
	select {
	case <-ctx.Done():
	case <-in:
	}
	return nil
}

// startNetwork starts a network, fills it, and writes the right answers to a file, a list for
// `trace --file`.
func startNetwork(ctx context.Context, c *cluster.Cluster, built, root string, network network, file string) error {
	fill, err := network.start(ctx, c, built, root)
	if err != nil {
		return err
	}
	truths, err := fill(ctx)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(truths, "", " ")
	if err != nil {
		return err
	}
	fmt.Printf("export TRUTHS=%s\n", file)
	return os.WriteFile(file, text, 0o600)
}
