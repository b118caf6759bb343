package ovnkube

import (
	"bytes"
	"context"
	"encoding/json"
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

// Files that `make test-ovnkube` builds or fetches.
const (
	kubernetes = "../../../../build/kubernetes"
	pause      = "../../../../build/pause"
	ovsOffline = "../../../../build/ovs-offline"
	built      = "../../../../build/ovnkube"
	root       = "../../../../build/roots/sid"
)

var background = context.Background()

// lab is the deployment that all tests share, with a collection of it before any change.
var lab struct {
	*machine.Run
	cluster    *cluster.Cluster
	deployment *Deployment
	pods       []Pod
	truths     []Truth
	nodes      string // the folder of the collected nodes
	err        error  // why there is none
}

func TestMain(m *testing.M) {
	machine.KeeperMain()
	code := 1
	if lab.Run, lab.err = machine.Begin(); lab.err == nil {
		stopped := make(chan os.Signal, 1)
		signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-stopped
			end()
			os.Exit(130)
		}()
		os.Setenv("XDG_DATA_HOME", filepath.Join(lab.Dir, "data")) // the image is there
		os.Setenv("XDG_STATE_HOME", filepath.Join(lab.Dir, "state"))
	}
	code = m.Run()
	if lab.Run != nil {
		code = max(code, end())
	}
	os.Exit(code)
}

// end removes what the tests made, and returns 1 if it finds more than they know of.
var end = sync.OnceValue(func() (code int) {
	if lab.cluster != nil {
		if lab.nodes != "" {
			exec.Command(program(), "-w", lab.nodes, "stop").Run()
		}
		lab.cluster.Stop()
	}
	for _, what := range lab.End() {
		fmt.Fprintln(os.Stderr, "left by the tests:", what)
		code = 1
	}
	return code
})

func program() string {
	path, err := filepath.Abs(ovsOffline)
	if err != nil {
		panic(err)
	}
	return path
}

// need skips a test where OVN-Kubernetes can't run, and starts it before the first one.
func need(t *testing.T) {
	t.Helper()
	switch {
	case os.Geteuid() != 0:
		t.Skip("needs root, for containerd and network namespaces")
	case lab.Run == nil:
		t.Skip(lab.err)
	}
	for _, file := range []string{kubernetes, pause, ovsOffline, filepath.Join(built, "version"), filepath.Join(root, "usr/sbin/nft")} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("%v: `make test-ovnkube` makes it", err)
		}
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "ip", "nsenter", "unshare", "chroot"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
}

// start starts the deployment, asks all questions with real packets, collects the nodes
// and starts their replicas with the nodes' own release.
var start = sync.OnceValue(func() (err error) {
	dir := filepath.Join(lab.Dir, "rig")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	options := cluster.Options{Dir: dir, Cgroup: lab.Cgroup(), Flags: Flags, Jobs: true}
	folders := map[string]*string{kubernetes: &options.Kubernetes, pause: &options.Pause}
	here := Options{Nodes: 2}
	folders[built], folders[root] = &here.Built, &here.Root
	for path, to := range folders {
		if *to, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	if lab.cluster, err = cluster.Start(background, options); err != nil {
		return err
	}
	here.Cluster = lab.cluster
	if lab.deployment, err = Start(background, here); err != nil {
		return err
	}
	if lab.pods, err = lab.deployment.AddObjects(background); err != nil {
		return err
	}
	servers, err := lab.deployment.Serve(lab.pods)
	if err != nil {
		return err
	}
	defer servers.Close()
	questions, err := lab.deployment.Questions(background, lab.pods)
	if err != nil {
		return err
	}
	if lab.truths, err = Find(background, questions); err != nil {
		return err
	}
	if r := run("image", "add", here.Root); r.code != 0 {
		return r
	}
	lab.nodes = filepath.Join(lab.Dir, "nodes")
	if r := collectTo(lab.nodes); r.code != 0 {
		return r
	}
	if r := run("-w", lab.nodes, "start"); r.code != 0 {
		return r
	}
	return nil
})

// result is what a run of the program printed, an error if one was expected to succeed.
type result struct {
	args            []string
	code            int
	out, complaints string
}

func (r result) Error() string {
	return fmt.Sprintf("ovs-offline %q: exit %d\n%s\n%s", r.args, r.code, r.out, r.complaints)
}

func run(args ...string) result {
	r := result{args: args}
	var out, complaints bytes.Buffer
	command := exec.Command(program(), args...)
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	if r.code = command.ProcessState.ExitCode(); err != nil && r.code < 0 {
		complaints.WriteString(err.Error())
	}
	r.out, r.complaints = out.String(), complaints.String()
	return r
}

// collectTo collects all nodes into a folder, over the API server.
func collectTo(folder string) result {
	kubeconfig, err := lab.cluster.Kubeconfig(cluster.Admin, "")
	if err != nil {
		return result{code: 1, complaints: err.Error()}
	}
	return run("-w", folder, "collect-k8s", "--all", "--kubeconfig", kubeconfig)
}

// read reads the JSON that a run of the program printed, whose exit code is one of those.
func read(t *testing.T, into any, r result, codes ...int) {
	t.Helper()
	known := false
	for _, code := range append(codes, 0) {
		known = known || r.code == code
	}
	if err := json.Unmarshal([]byte(r.out), into); err != nil || !known {
		t.Fatalf("%v: %v", err, r)
	}
}
