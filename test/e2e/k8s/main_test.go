// Package k8s tests the built program's collect-k8s with a real API server, whose exec
// reaches real OVS and OVN daemons.
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
)

// Files that `make test-k8s` builds, and others of the repository.
const (
	apiserver  = "../../../build/kube-apiserver"
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

func TestMain(m *testing.M) {
	for _, program := range []string{apiserver, ovsOffline} {
		if _, err := os.Stat(program); err != nil {
			fmt.Fprintln(os.Stderr, "missing program, which `make test-k8s` builds:", err)
			os.Exit(1)
		}
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		cleanUp()
		os.Exit(130)
	}()
	klog.SetLogger(logr.Discard()) // kubelets log each failed command
	code := m.Run()
	cleanUp()
	os.Exit(code)
}

// scratch returns a folder that is removed after all tests. Its path is short, because
// of the sockets in it.
var scratch = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "k8s-")
	if err != nil {
		panic(err)
	}
	atExit(func() { os.RemoveAll(dir) })
	return dir
})

// theCluster is shared by tests. Each test makes its own nodes and pods, and removes
// them.
var theCluster = sync.OnceValues(func() (*cluster.Cluster, error) { return newCluster("shared") })

func newCluster(name string, flags ...string) (*cluster.Cluster, error) {
	program, err := filepath.Abs(apiserver)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(scratch(), "cluster-"+name)
	if err = os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	c, err := cluster.Start(context.Background(), cluster.Options{
		APIServer: program, Dir: dir, Flags: flags,
		Users: []string{"nobody", "nothing-but-create", "nothing-but-get", "enough", overSPDY},
	})
	if err == nil {
		atExit(c.Stop)
	}
	return c, err
}

func sharedCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	needLab(t)
	c, err := theCluster()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// needLab skips a test where containers or live nodes cannot run.
func needLab(t *testing.T) {
	t.Helper()
	for _, program := range []string{"ovs-vswitchd", "ovn-northd", "ovn-controller", "ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if out, err := exec.Command("unshare", cluster.Unshare("--mount", "true")...).CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %s", out)
	}
}
