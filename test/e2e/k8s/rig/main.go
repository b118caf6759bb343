// Command rig starts a Kubernetes cluster of one node on this machine, for replicas in
// pods, and ends it at Ctrl-C or at the end of its standard input:
//
//	cd test/e2e/k8s && go run ./rig
//
// It needs root and the programs that `make test-k8s` builds. It prints the kubeconfig,
// a namespace with the Pod Security level "restricted", and the image on the node. At
// each line of its standard input, it makes the image again from the tools of this machine
// and the program ovs-offline.
//
// With -ovnkube or -kubeovn, it starts a real OVN-Kubernetes or kube-ovn of two nodes instead,
// with all kinds of networks and objects, and prints the network namespaces of the nodes and
// pods, and a file of questions with the right answers for `ovs-offline trace --file`. `make
// test-ovnkube` and `make test-kubeovn` build what that needs.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
)

const namespace = "replicas"

type programs struct{ kubernetes, pause, ovsOffline, ovnkube, kubeovn, root string }

func main() {
	machine.KeeperMain()
	var p programs
	flag.StringVar(&p.kubernetes, "kubernetes", "../../../build/kubernetes", "the program of ./kubernetes")
	flag.StringVar(&p.pause, "pause", "../../../build/pause", "the program of ./pause")
	flag.StringVar(&p.ovsOffline, "ovs-offline", "../../../build/ovs-offline", "the program in the image")
	flag.StringVar(&p.ovnkube, "ovnkube", "", "the folder that ./ovnkube/build filled, such as ../../../build/ovnkube: starts OVN-Kubernetes")
	flag.StringVar(&p.kubeovn, "kubeovn", "", "the folder that ./kubeovn/build filled, such as ../../../build/kubeovn: starts kube-ovn")
	flag.StringVar(&p.root, "root", "../../../build/roots/sid", "the root file system with OVS and OVN for OVN-Kubernetes and kube-ovn")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := p.start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		os.Exit(1)
	}
}

// start starts the rig that the flags choose.
func (p programs) start(ctx context.Context) error {
	switch {
	case p.ovnkube != "":
		return runNetwork(ctx, p, p.ovnkube, ovnKubernetes())
	case p.kubeovn != "":
		return runNetwork(ctx, p, p.kubeovn, kubeOVN())
	}
	return run(ctx, p)
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
