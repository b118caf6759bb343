package k8s

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// most bounds how much more memory the program may use for a stream that is several
// times as long, in KiB.
const most = 64 << 10

// TestLargeStreamTakesLittleMemory collects a bridge whose dumps have more than 200 MB
// in one stream: they are complete, and memory does not grow with them.
func TestLargeStreamTakesLittleMemory(t *testing.T) {
	c, n := sharedNode(t)
	var small int
	t.Run("small", func(t *testing.T) {
		deployLab(t, c, n, openshift(), smallNode(t, someFlows(10, 1)))
		small = collectMeasured(t, c, filepath.Join(t.TempDir(), "w"), n.Name)
	})
	l := smallNode(t, someFlows(1200, 1200))
	deployLab(t, c, n, openshift(), l)
	dir := filepath.Join(t.TempDir(), "w")
	large := collectMeasured(t, c, dir, n.Name)
	stream := n.FromServer.Longest()
	t.Logf("a stream of %d MB, the program's memory: %d MiB, and %d MiB for a small one", stream/1e6, large>>10, small>>10)
	if stream < 200e6 {
		t.Errorf("the longest stream had %d bytes", stream)
	}
	if large > small+most {
		t.Errorf("%d KiB of memory for %d bytes, %d KiB for a small node", large, stream, small)
	}
	l.checkFlows(t, dir)
}

// collectMeasured collects a node and returns the peak of the program's memory, in
// KiB. It reads the peak while the process runs, because the kernel's figure for an
// ended process includes the process that it was forked from.
func collectMeasured(t *testing.T, c *cluster.Cluster, dir, node string) (most int) {
	t.Helper()
	command := program(t, collectArgs(t, c, cluster.Admin, "", "-w", dir, node)...)
	var complaints strings.Builder
	command.Stderr = &complaints
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil || most == 0 {
				t.Fatalf("%s: %v\n%s", node, err, complaints.String())
			}
			return most
		case <-time.After(5 * time.Millisecond): // the peak is read again and again
			most = max(most, peak(command.Process.Pid))
		}
	}
}

// peak returns the peak resident memory of a process in KiB, 0 if it has ended.
func peak(pid int) (n int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, line, found := strings.Cut(string(status), "VmHWM:"); err == nil && found {
		fmt.Sscan(line, &n)
	}
	return n
}

// checkFlows compares the flows in a workdir with those of the live node.
func (l *lab) checkFlows(t *testing.T, dir string) {
	t.Helper()
	live, err := exec.Command("ovs-ofctl", "-O", "OpenFlow15", "dump-flows",
		"unix:"+filepath.Join(l.dir, "ovs/br-int.mgmt")).Output()
	if err != nil {
		t.Fatal(err)
	}
	collected, err := os.ReadFile(filepath.Join(dir, "restore_flows/br-int.flows.dump"))
	if err != nil {
		t.Fatal(err)
	}
	want, have := entries(live), entries(collected)
	if len(want) == 0 || !slices.Equal(want, have) {
		t.Errorf("%d flows of %d, or different ones", len(have), len(want))
	}
}

// entries returns the checksum of each flow of a dump.
func entries(dump []byte) []string {
	var list []string
	for _, text := range fidelity.Entries(workdir.Flows, string(dump)) {
		list = append(list, fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
	}
	slices.Sort(list)
	return list
}

// TestSlowDiskLosesNothing collects onto a disk that is slower than the streams.
func TestSlowDiskLosesNothing(t *testing.T) {
	c, n := sharedNode(t)
	l := smallNode(t, someFlows(10000, 4))
	deployLab(t, c, n, openshift(), l)
	dir := filepath.Join(t.TempDir(), "w")
	command := program(t, collectArgs(t, c, cluster.Admin, "", "-w", dir, n.Name)...)
	command.Args = append([]string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=write", "-e",
		"inject=write:delay_enter=10ms", command.Path}, command.Args[1:]...)
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	command.Path = path
	r := finish(t, command)
	if strings.Contains(r.complaints, "Operation not permitted") {
		t.Skip("strace is not permitted here: ", r.complaints)
	}
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.complaints)
	}
	l.checkFlows(t, dir)
}

// TestSPDYReplacesRefusedWebSocket collects from a cluster that refuses WebSocket: its
// API server does not translate it into SPDY, its kubelet neither, and containerd does
// not know the protocol's version.
func TestSPDYReplacesRefusedWebSocket(t *testing.T) {
	t.Parallel() // its cluster is its own
	needRig(t)
	c, err := newCluster("spdy", cluster.Options{Flags: []string{"--feature-gates=TranslateStreamCloseWebsocketRequests=false"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop() })
	n, err := c.StartNode(t.Context(), "old", "--feature-gates=ExtendWebSocketsToKubelet=false")
	if err != nil {
		t.Fatal(err)
	}
	l := smallNode(t, someFlows(2000, 2))
	deployLab(t, c, n, openshift(), l)
	dir := filepath.Join(t.TempDir(), "w")
	r := collect(t, c, "-w", dir, "-v", "old")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.complaints)
	}
	overSPDY := regexp.MustCompile(`verb=POST url="[^"]*/exec\?[^"]*" status="101`)
	if !strings.Contains(r.complaints, "RemoteCommand fallback") || !overSPDY.MatchString(r.complaints) {
		t.Errorf("no message that WebSocket was refused and SPDY is used: %s", r.complaints)
	}
	l.checkFlows(t, dir)
}
