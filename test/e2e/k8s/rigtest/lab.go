package rigtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
)

// Files that `make` builds or fetches for all rigs, as seen from the folder of a rig's tests.
const (
	build      = "../../../../build"
	kubernetes = build + "/kubernetes"
	pause      = build + "/pause"
	ovsOffline = build + "/ovs-offline"
	root       = build + "/roots/sid"
)

// Limited is a user of the cluster without permissions.
const Limited = "limited"

// Lab is a cluster that all tests of a package share, and a collection of its nodes before any
// test changes them.
type Lab struct {
	*machine.Run
	Cluster *cluster.Cluster
	Program Program
	Root    string // the root file system with OVS and OVN
	Built   string // the folder of the network's programs
	Nodes   string // the folder of the collected nodes, "" until they are

	network string // "ovnkube" or "kubeovn"
	err     error  // why there is no Run
	end     func() int
	made    func() error // makes the deployment once
}

// Main runs the tests of a package and ends the lab, also at a signal. The network is the name of
// the folder in build that has its programs, which `make test-NETWORK` fills. Need calls start,
// once, to start the deployment.
func (l *Lab) Main(m *testing.M, network string, start func() error) int {
	machine.KeeperMain()
	l.network = network
	l.end = sync.OnceValue(l.remove)
	l.made = sync.OnceValue(start)
	if l.Run, l.err = machine.Begin(); l.err == nil {
		stopped := make(chan os.Signal, 1)
		signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-stopped
			l.end()
			os.Exit(130)
		}()
		os.Setenv("XDG_DATA_HOME", filepath.Join(l.Dir, "data")) // the image is there
		os.Setenv("XDG_STATE_HOME", filepath.Join(l.Dir, "state"))
	}
	code := m.Run()
	if l.Run != nil {
		code = max(code, l.end())
	}
	return code
}

// remove removes what the tests made, and returns 1 if it finds more than they know of.
func (l *Lab) remove() (code int) {
	if l.Cluster != nil {
		if l.Nodes != "" {
			l.Program.Run("-w", l.Nodes, "stop")
		}
		l.Cluster.Stop()
	}
	for _, what := range l.End() {
		fmt.Fprintln(os.Stderr, "left by the tests:", what)
		code = 1
	}
	return code
}

// Need skips a test where the rig can't run, as Find does, and starts the deployment before the first one.
func (l *Lab) Need(t *testing.T, files ...string) {
	t.Helper()
	l.Find(t, files...)
	if err := l.made(); err != nil {
		t.Fatal(err)
	}
}

// Find finds the programs, and skips a test where the rig can't run. The files are in the root file
// system.
func (l *Lab) Find(t *testing.T, files ...string) {
	t.Helper()
	switch {
	case os.Geteuid() != 0:
		t.Skip("needs root, for containerd and network namespaces")
	case l.Run == nil:
		t.Skip(l.err)
	}
	needed := []string{kubernetes, pause, ovsOffline, filepath.Join(build, l.network, "version")}
	for _, file := range files {
		needed = append(needed, filepath.Join(root, file))
	}
	for _, file := range needed {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("%v: `make test-%s` makes it; a root file system from before has to be removed first", err, l.network)
		}
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "nsenter", "unshare", "chroot"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	program := ""
	for path, to := range map[string]*string{ovsOffline: &program, filepath.Join(build, l.network): &l.Built, root: &l.Root} {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		*to = absolute
	}
	l.Program = Program(program)
}

// Other returns the folder in build with another release of the network's programs, and skips a test without
// them.
func (l *Lab) Other(t *testing.T, folder string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(build, folder))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "version")); err != nil {
		t.Skipf("%v: `make test-%s` makes it", err, l.network)
	}
	return path
}

// Start starts the cluster without nodes, whose API server gets the flags.
func (l *Lab) Start(flags ...string) (err error) {
	l.Cluster, err = l.StartCluster("rig", flags...)
	return err
}

// StartCluster starts a cluster without nodes in a folder of the lab, which has to be stopped.
func (l *Lab) StartCluster(folder string, flags ...string) (c *cluster.Cluster, err error) {
	options := cluster.Options{Dir: filepath.Join(l.Dir, folder), Cgroup: l.Cgroup(), Flags: flags, Users: []string{Limited}, Jobs: true}
	if options.Kubernetes, err = filepath.Abs(kubernetes); err != nil {
		return nil, err
	}
	if options.Pause, err = filepath.Abs(pause); err != nil {
		return nil, err
	}
	if err := os.Mkdir(options.Dir, 0o700); err != nil {
		return nil, err
	}
	return cluster.Start(context.Background(), options)
}

// Collect collects the nodes and starts their replicas with the nodes' own release.
func (l *Lab) Collect() error {
	build := map[string]string{"ovnkube": "rig", "kubeovn": "kube-ovn"}[l.network] // the rig of kube-ovn has no patched OVN: its own is the build
	if r := l.Program.Run("image", "add", "--tag", build, l.Root); r.Code != 0 {
		return r
	}
	nodes := filepath.Join(l.Dir, "nodes")
	if r := l.Program.CollectAtRest(l.Cluster, nodes); r.Code != 0 {
		return r
	}
	l.Nodes = nodes
	if r := l.Program.Run("-w", l.Nodes, "start"); r.Code != 0 {
		return r
	}
	return nil
}
