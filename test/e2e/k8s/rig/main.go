// Command rig starts a Kubernetes cluster of one node on this machine, for replicas in
// pods, and ends it at Ctrl-C or at the end of its standard input:
//
//	cd test/e2e/k8s && go run ./rig
//
// It needs root and the programs that `make test-k8s` builds. It prints the kubeconfig,
// a namespace with the Pod Security level "restricted", and the image on the node. At
// each line of its standard input, it makes the image again from the tools of this machine
// and the program ovs-offline.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
	"ovs-offline/test/e2e/k8s/ovnkube"
)

const namespace = "replicas"

type programs struct{ kubernetes, pause, ovsOffline, ovnkube, root string }

func main() {
	machine.KeeperMain()
	var p programs
	flag.StringVar(&p.kubernetes, "kubernetes", "../../../build/kubernetes", "the program of ./kubernetes")
	flag.StringVar(&p.pause, "pause", "../../../build/pause", "the program of ./pause")
	flag.StringVar(&p.ovsOffline, "ovs-offline", "../../../build/ovs-offline", "the program in the image")
	flag.StringVar(&p.ovnkube, "ovnkube", "", "the folder that ./ovnkube/build filled, such as ../../../build/ovnkube: starts OVN-Kubernetes on -nodes nodes instead")
	flag.StringVar(&p.root, "root", "../../../build/roots/sid", "the root file system with OVS and OVN for OVN-Kubernetes")
	nodes := flag.Int("nodes", 2, "how many nodes OVN-Kubernetes has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if p.ovnkube == "" {
		err = run(ctx, p)
	} else {
		err = runOVNKubernetes(ctx, p, *nodes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		os.Exit(1)
	}
}

// run has a cluster until ctx or the standard input ends.
func run(ctx context.Context, p programs) error {
	if err := find(&p.kubernetes, &p.pause, &p.ovsOffline); err != nil {
		return err
	}
	all, err := machine.Begin()
	if err != nil {
		return err
	}
	defer all.End()
	r, err := start(ctx, all, p)
	if err != nil {
		return err
	}
	defer r.cluster.Stop()
	return r.serve(ctx)
}

// find makes the paths absolute, and checks that they exist.
func find(paths ...*string) error {
	for _, path := range paths {
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if _, err = os.Stat(*path); err != nil {
			return fmt.Errorf("%w (`make test-k8s` or `make test-ovnkube` builds it)", err)
		}
	}
	return nil
}

// runOVNKubernetes has a cluster with OVN-Kubernetes until ctx or the standard input ends.
func runOVNKubernetes(ctx context.Context, p programs, nodes int) error {
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
	d, err := ovnkube.Start(ctx, ovnkube.Options{Cluster: c, Built: p.ovnkube, Root: p.root, Nodes: nodes})
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

// rig is a cluster with one node.
type rig struct {
	programs
	cluster *cluster.Cluster
	node    *cluster.Node
	archive string
}

func start(ctx context.Context, all *machine.Run, p programs) (*rig, error) {
	dir := filepath.Join(all.Dir, "rig")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{Kubernetes: p.kubernetes, Pause: p.pause, Dir: dir, Cgroup: all.Cgroup(), Jobs: true})
	if err != nil {
		return nil, err
	}
	r := &rig{programs: p, cluster: c, archive: filepath.Join(dir, "tools.tar")}
	if err := r.fill(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return r, nil
}

// fill adds what is in the cluster, and prints it.
func (r *rig) fill(ctx context.Context) (err error) {
	if r.node, err = r.cluster.StartNode(ctx, "node-1"); err != nil {
		return err
	}
	if err := r.cluster.AddNamespace(ctx, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}); err != nil {
		return err
	}
	kubeconfig, err := r.cluster.Kubeconfig(cluster.Admin, "")
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\nexport NAMESPACE=%s\n", kubeconfig, namespace)
	return r.makeImage(ctx)
}

func (r *rig) makeImage(ctx context.Context) error {
	tools, err := cluster.WriteTools(ctx, r.archive, r.ovsOffline)
	if err != nil {
		return err
	}
	if err := r.node.Import(ctx, tools.File); err != nil {
		return err
	}
	fmt.Printf("export IMAGE=%s\n", tools.Name)
	return nil
}

func (r *rig) serve(ctx context.Context) error {
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- struct{}{}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, more := <-lines:
			if !more {
				return nil
			}
			if err := r.makeImage(ctx); err != nil {
				fmt.Fprintln(os.Stderr, "rig:", err)
			}
		}
	}
}
