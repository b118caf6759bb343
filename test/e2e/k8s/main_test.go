// Package k8s tests the built program's collect-k8s with a real API server and real
// kubelets and containerds, in whose pods real OVS and OVN daemons answer.
package k8s

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

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
)

// Files that `make test-k8s` builds, and others of the repository.
const (
	kubernetes = "../../../build/kubernetes"
	pause      = "../../../build/pause"
	ovsOffline = "../../../build/ovs-offline"
	labScript  = "../../../scripts/lab/lab"
	tools      = "../../../collect/k8s/testdata/bin" // an ovs-appctl that prints what it would on a kernel datapath
)

// overSPDY is a user that may run commands over SPDY only.
const overSPDY = "over-spdy"

// cleanups are functions to run after all tests.
var cleanups struct {
	sync.Mutex
	list []func()
}

func atExit(f func()) {
	cleanups.Lock()
	defer cleanups.Unlock()
	cleanups.list = append(cleanups.list, f)
}

func cleanUp() {
	cleanups.Lock()
	defer cleanups.Unlock()
	for i := len(cleanups.list) - 1; i >= 0; i-- {
		cleanups.list[i]()
	}
	cleanups.list = nil
}

// rig is what this run of the tests has on the machine.
var rig struct {
	*machine.Run
	err error // why there is none
}

func TestMain(m *testing.M) {
	machine.KeeperMain()
	for _, program := range []string{kubernetes, pause, ovsOffline} {
		if _, err := os.Stat(program); err != nil {
			fmt.Fprintln(os.Stderr, "missing program, which `make test-k8s` builds:", err)
			os.Exit(1)
		}
	}
	rig.Run, rig.err = machine.Begin()
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		cleanUp()
		os.Exit(130)
	}()
	if rig.err == nil {
		os.Setenv("XDG_STATE_HOME", filepath.Join(scratch(), "state")) // starts of other programs remove what is old
	}
	klog.SetLogger(logr.Discard()) // a stand-in logs each failed command
	code := m.Run()
	cleanUp()
	if rig.err == nil {
		for _, what := range rig.End() {
			fmt.Fprintln(os.Stderr, "left by the tests:", what)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// scratch returns a folder that is removed after all tests.
func scratch() string { return rig.Dir }

// theCluster is shared by tests. Each test makes its own pods, and removes them.
var theCluster = sync.OnceValues(func() (*cluster.Cluster, error) { return newCluster("shared", cluster.Options{}) })

// theNode is the node that most tests use.
var theNode = sync.OnceValues(func() (*cluster.Node, error) {
	c, err := theCluster()
	if err != nil {
		return nil, err
	}
	return c.StartNode(context.Background(), "node-1")
})

// newCluster starts a cluster, which ends after all tests. Only Flags and Jobs of the
// options count.
func newCluster(name string, options cluster.Options) (*cluster.Cluster, error) {
	options.Dir, options.Cgroup = filepath.Join(scratch(), name), rig.Cgroup()
	options.Users = []string{"nobody", "nothing-but-create", "nothing-but-get", "enough", overSPDY}
	for _, program := range []struct {
		path  *string
		built string
	}{{&options.Kubernetes, kubernetes}, {&options.Pause, pause}} {
		var err error
		if *program.path, err = filepath.Abs(program.built); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(options.Dir, 0o700); err != nil {
		return nil, err
	}
	c, err := cluster.Start(context.Background(), options)
	if err == nil {
		atExit(func() { c.Stop() })
	}
	return c, err
}

func sharedCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	needRig(t)
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sharedNode(t *testing.T) (*cluster.Cluster, *cluster.Node) {
	t.Helper()
	c := sharedCluster(t)
	n, err := theNode()
	if err != nil {
		t.Fatal(err)
	}
	return c, n
}

// needRig skips a test where nodes cannot run.
func needRig(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for containerd")
	}
	if rig.err != nil {
		t.Skip(rig.err)
	}
	for _, program := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "ovs-vswitchd", "ovn-northd",
		"ovn-controller", "ip", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
}
