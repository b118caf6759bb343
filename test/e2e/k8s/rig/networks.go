package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
	"ovs-offline/test/e2e/k8s/ovnkube"
)

// runOVNKubernetes has a cluster with OVN-Kubernetes until ctx or the standard input ends.
func runOVNKubernetes(ctx context.Context, p programs) error {
	if err := find(&p.kubernetes, &p.pause, &p.ovnkube, &p.root); err != nil {
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
	c, err := cluster.Start(ctx, cluster.Options{Kubernetes: p.kubernetes, Pause: p.pause, Dir: dir, Cgroup: all.Cgroup(), Flags: ovnkube.Flags, Jobs: true})
	if err != nil {
		return err
	}
	defer c.Stop()
	d, err := ovnkube.Start(ctx, ovnkube.Options{Cluster: c, Built: p.ovnkube, Root: p.root, Nodes: 2})
	if err != nil {
		return err
	}
	kubeconfig, err := c.Kubeconfig(cluster.Admin, "")
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", kubeconfig)
	if err := fillOVNKubernetes(ctx, d, filepath.Join(dir, "truths.json")); err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
	}
	for _, n := range d.Nodes {
		fmt.Printf("# %s: %q\n", n.Name, n.Inside())
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

// fillOVNKubernetes adds networks and objects, asks all questions with real packets, and
// writes the right answers to a file, a list for `trace --file`.
func fillOVNKubernetes(ctx context.Context, d *ovnkube.Deployment, file string) error {
	pods, err := d.AddObjects(ctx)
	if err != nil {
		return err
	}
	for _, p := range pods {
		fmt.Printf("# %s on %s: %s, network %s\n", p.Title(), p.Node, p.Network, p.NAD)
	}
	servers, err := d.Serve(pods)
	if err != nil {
		return err
	}
	defer servers.Close()
	questions, err := d.Questions(ctx, pods)
	if err != nil {
		return err
	}
	truths, err := ovnkube.Find(ctx, questions)
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
