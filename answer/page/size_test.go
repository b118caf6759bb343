package page_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/collect"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

const (
	manyNodes    = 10
	flowsOfEach  = 5000
	largestBytes = 5 << 20
)

// TestTenNodesAreAtMostFiveMegabytes writes the page of nodes with thousands of flows each: a mail takes it, each node
// has most of its flows in the page, and the page says which are not.
func TestTenNodesAreAtMostFiveMegabytes(t *testing.T) {
	program := browserProgram(t)
	runtime := "none" // computes no drift: the other pages have that
	if sweep.Whole() {
		runtime = process.Name
	}
	file := writePageOn(t, runtime, tenNodes(t))
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	b := browse(t, file, 1600)
	flows := eval[[][]int](b, "theCase.nodes.map((node) => [node.flows, node.shown])")
	t.Logf("%s: %d bytes, flows and shown ones of each node: %v", program, info.Size(), flows)
	if len(flows) != manyNodes || info.Size() > largestBytes {
		t.Errorf("the page of %d nodes has %d bytes, more than %d", len(flows), info.Size(), largestBytes)
	}
	for _, n := range flows {
		if n[0] < flowsOfEach || n[1] < n[0]/2 {
			t.Errorf("%d of %d flows of a node are in the page", n[1], n[0])
		}
	}
	t.Logf("opened in %.0f ms", eval[float64](b, `performance.getEntriesByName("ready")[0].startTime`))
	for _, address := range []string{"#/", "#/physical", "#/network", "#/nodes/worker1c01/flows", "#/rules"} {
		b.goTo(address)
		b.checkLooks(address)
	}
	b.quiet()
}

// tenNodes returns the folder of copies of the nodes of the set kubernetes-ic, with more flows.
func tenNodes(t *testing.T) string {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	reports, err := sets.Recorded(t, "../../scripts/lab/lab", "kubernetes-ic").Copies(t.Context(), t.TempDir(),
		(manyNodes+2)/3)
	if err != nil {
		t.Fatal(err)
	}
	folder, random := ovs.Dir(t), rand.New(rand.NewPCG(1, 2))
	for _, report := range reports[:manyNodes] {
		wd, err := workdir.Lock(filepath.Join(folder, filepath.Base(report)))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = collect.Collect(t.Context(), wd, collect.SosReport{Path: report}, collect.Options{})
		wd.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		multiplyFlows(t, wd, random)
	}
	return folder
}

var (
	counters = regexp.MustCompile(`n_packets=\d+, n_bytes=\d+`)
	ofIPv4   = regexp.MustCompile(`[, ](ip|tcp|udp|icmp),`)
)

// multiplyFlows gives a node's br-int at least flowsOfEach flows: the further ones match further addresses, and have
// counters of their own.
func multiplyFlows(t *testing.T, wd *workdir.Dir, random *rand.Rand) {
	t.Helper()
	dump := wd.DumpFile("br-int", workdir.Flows)
	text := files.Read(t, dump)
	var more strings.Builder
	for count := strings.Count(text, "\n"); count < flowsOfEach; {
		for line := range strings.Lines(text) {
			before, after, ok := strings.Cut(line, ",metadata=")
			if !ok || !ofIPv4.MatchString(before) || strings.Contains(line, "nw_src=") {
				continue
			}
			packets := random.IntN(1 << random.IntN(24))
			line = fmt.Sprintf("%s,nw_src=10.%d.%d.%d,metadata=%s", before, random.IntN(256), random.IntN(256), random.IntN(256),
				after)
			more.WriteString(counters.ReplaceAllString(line,
				fmt.Sprintf("n_packets=%d, n_bytes=%d", packets, packets*(60+random.IntN(1400)))))
			count++
		}
	}
	files.Write(t, dump, text+more.String())
}
