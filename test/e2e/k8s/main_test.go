// Package k8s has the tests of `ovs-offline collect-k8s`: the built program,
// against a real API server, with exec reaching real OVS and OVN daemons.
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

// What `make test-k8s` builds.
const (
	apiserver  = "../../../build/kube-apiserver"
	ovsOffline = "../../../build/ovs-offline"
	labScript  = "../../../scripts/lab/lab"
	tools      = "../../../collect/k8s/testdata/bin" // an ovs-appctl that says what a kernel node's would
)

// overSPDY is a user who may not run commands over WebSocket.
const overSPDY = "over-spdy"

// cleanups are run when all tests have ended.
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
			fmt.Fprintln(os.Stderr, "`make test-k8s` builds what these tests run:", err)
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
	klog.SetLogger(logr.Discard()) // kubelets log each command that fails
	code := m.Run()
	cleanUp()
	os.Exit(code)
}

// scratch is a folder that lives as long as the tests. Its path is short, for
// the sockets in it.
var scratch = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "k8s-")
	if err != nil {
		panic(err)
	}
	atExit(func() { os.RemoveAll(dir) })
	return dir
})

// theCluster is shared by tests; each has nodes and pods of its own, and
// takes them away.
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

// needLab skips where containers and live nodes can't be.
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
