package page

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/show"
	"ovs-offline/replica/runtime"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir"
)

// counted counts how often programs are chosen: each computation of drift chooses them once.
type counted struct {
	runtime.Runtimes
	times *int
}

func (c counted) Choose(ctx context.Context, name string, wanted runtime.Wanted) (runtime.Choice, error) {
	*c.times++
	return c.Runtimes.Choose(ctx, name, wanted)
}

// made returns the page of a workdir.
func made(t *testing.T, wd *workdir.Dir) *Page {
	t.Helper()
	times := 0
	programs := rule.Programs{Runtime: "process",
		Runtimes: func(wd *workdir.Dir) runtime.Runtimes { return counted{local.Runtimes(wd), &times} }}
	defer func() {
		if times > 1 {
			t.Errorf("the page computes drift %d times", times)
		}
	}()
	p, err := Make(t.Context(), snapshot.Of(wd),
		Options{Programs: programs, Version: "test",
			Call: func(_ string, args ...string) string { return "ovs-offline " + show.Words(args...) }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// dataIn decodes an element of a written page, as its script does.
func dataIn(t *testing.T, page, id string, into any) {
	t.Helper()
	m := regexp.MustCompile(`<script type="application/octet-stream" id="data-` + id +
		`">([A-Za-z0-9+/=]*)</script>`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no data %s", id)
	}
	packed, err := base64.StdEncoding.DecodeString(m[1])
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// dumped returns the flows in the dumps of a workdir: lines with actions.
func dumped(t *testing.T, wd *workdir.Dir) (flows int) {
	t.Helper()
	dumps, err := filepath.Glob(filepath.Join(wd.Path(), "restore_flows", "*.flows.dump"))
	if err != nil || len(dumps) == 0 {
		t.Fatalf("%v, %v", dumps, err)
	}
	for _, path := range dumps {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		flows += strings.Count(string(text), "actions=")
	}
	return flows
}

// TestPageOfACapture compares what the page of a captured node has with the node's dumps and databases, and checks
// that the page says what it lacks without a replica.
func TestPageOfACapture(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-controller", "unshare", "xz")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-kubernetes-worker"))
	p := made(t, wd)
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	var c struct {
		Nodes []struct {
			Name, Chunk    string
			Flows, Shown   int
			OVS, Fidelity  string
			Recorded       string
			DatapathShown  int `json:"datapath_shown"`
			Drift, Drifted any
		}
		Check     struct{ Findings []struct{ Rule string } }
		Endpoints []struct{ Name, Port string }
		Rules     []struct {
			UUID, Table, Name string
			Columns           []struct{ Name, Value string }
			Flows             map[string]int
		}
		Absent []struct{ Part, Why, Next string }
	}
	dataIn(t, out.String(), "case", &c)
	if len(c.Nodes) != 1 {
		t.Fatalf("%d nodes in the page", len(c.Nodes))
	}
	node, want := c.Nodes[0], dumped(t, wd)
	if node.Flows != want || node.Shown != want || node.OVS != "3.1.0" {
		t.Errorf("the page counts %d flows and has %d, of OVS %s; the dumps have %d, of 3.1.0", node.Flows, node.Shown,
			node.OVS, want)
	}
	expect.Equal(t, node.Recorded, "2026-11-21", "when the node was recorded: the name of the report has only the day")
	if strings.Contains(out.String(), "2026-11-21 00:00:00") {
		t.Error("the page has a time of day that nobody knows")
	}
	var content struct {
		Flows [][]any
	}
	dataIn(t, out.String(), node.Chunk, &content)
	expect.Equal(t, len(content.Flows), want, "flows in the chunk")
	if !slices.ContainsFunc(c.Check.Findings, func(f struct{ Rule string }) bool { return f.Rule == "match-malformed" }) {
		t.Errorf("the findings lack the ACL whose match can't be read: %v", c.Check.Findings)
	}
	if !slices.ContainsFunc(c.Endpoints, func(e struct{ Name, Port string }) bool {
		return e.Name == "ns1/client" &&
			e.Port == "ns1_client"
	}) {
		t.Error("the endpoints lack the pod ns1/client")
	}
	denied := slices.IndexFunc(c.Rules, func(r struct {
		UUID, Table, Name string
		Columns           []struct{ Name, Value string }
		Flows             map[string]int
	}) bool {
		return r.UUID == "7d063138-e0e0-4cae-875f-6a422ac8bc31"
	})
	if denied < 0 || c.Rules[denied].Table != "ACL" || c.Rules[denied].Flows["0"] == 0 ||
		!slices.Contains(c.Rules[denied].Columns, struct{ Name, Value string }{"match", "outport == @pg_ns1 && ip"}) {
		t.Errorf("the ACL that denies all is %+v", c.Rules[max(0, denied)])
	}
	if len(c.Absent) != 1 || c.Absent[0].Part != "Who reaches whom" || c.Absent[0].Next != "ovs-offline start" {
		t.Errorf("the page says that it lacks %+v", c.Absent)
	}
	if p.Failed() {
		t.Error("something could not be read")
	}
}

// TestFlowsOfTheFewestPacketsAreLeftOut lets a node's flows fit into less than they take: of each stage, those that
// matched the most packets stay, and the stages count all.
func TestFlowsOfTheFewestPacketsAreLeftOut(t *testing.T) {
	r := &reading{node: &Node{Flows: 400}, rules: newRuleIndex(), content: NodeFlows{Stages: make([]Stage, 2)}}
	for i := range 400 {
		packets := uint64(400 - i/2) // of each stage the most first, as Tree lists them
		r.content.Flows = append(r.content.Flows,
			[11]any{i % 2, 100, &packets, &packets, "", "", "", strings.Repeat("x", i%97), -1, "", ""})
	}
	slices.SortStableFunc(r.content.Flows, func(a, b [11]any) int { return a[0].(int) - b[0].(int) })
	const size = 1500
	data, err := r.fit(size)
	if err != nil || len(data) > size || data == "" {
		t.Fatalf("%d bytes, %v; %d are allowed", len(data), err, size)
	}
	least := map[int]uint64{}
	number := map[int]int{}
	for _, f := range r.content.Flows {
		least[f[0].(int)] = *f[2].(*uint64)
		number[f[0].(int)]++
	}
	if r.node.Shown != number[0]+number[1] || number[0] != number[1] || number[0] < 20 || number[0] == 200 {
		t.Errorf("%d flows are shown: %v by stage", r.node.Shown, number)
	}
	for stage, packets := range least {
		if want := uint64(400 - number[stage] + 1); packets != want {
			t.Errorf("of stage %d, the last flow matched %d packets, not %d", stage, packets, want)
		}
	}
}

func TestSizeOfManyNodes(t *testing.T) {
	for nodes, most := range map[int]int{1: 4 << 20, 10: 4 << 20, 12: 4 << 20, 100: 13 << 20, 500: 16 << 20,
		5000: 16 << 20} {
		if all := sizeOf(nodes) * nodes; all > most || all < most*2/3 {
			t.Errorf("the flows of %d nodes may take %d bytes", nodes, all)
		}
	}
}
