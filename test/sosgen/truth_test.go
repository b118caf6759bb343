package sosgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// supply is what a shape holds of a bridge.
type supply struct {
	flows  string // the best OpenFlow version of its dumps, "" for none
	exact  bool   // with bridge/dump-flows beside it nothing of a flow is missing
	groups string
	meters bool
	tlv    bool
}

// checkBridges compares each bridge of the replica with the live node's, and
// what the report says of it with what is there.
func checkBridges(t *testing.T, n *Node, r *replica, of func(Bridge) supply) {
	t.Helper()
	for _, b := range n.Bridges {
		if b.Fake {
			continue
		}
		c := bridgeCheck{n: n, r: r, bridge: b.Name, version: "OpenFlow15", has: of(b)}
		if k := len(b.Protocols); k > 0 {
			c.version = b.Protocols[k-1]
		}
		c.flows(t)
		c.entries(t, workdir.Groups, "dump-groups", c.has.groups != "")
		c.entries(t, workdir.Meters, "dump-meters", c.has.meters)
		c.entries(t, workdir.TLV, "dump-tlv-map", c.has.tlv)
	}
}

type bridgeCheck struct {
	n               *Node
	r               *replica
	bridge, version string
	has             supply
}

func (c bridgeCheck) counts(dump workdir.Dump) report.Counts {
	for _, b := range c.r.report.Bridges {
		if b.Name == c.bridge && b.Counts[dump] != nil {
			return *b.Counts[dump]
		}
	}
	return report.Counts{}
}

func (c bridgeCheck) truth(t *testing.T, what string) string {
	t.Helper()
	text, err := c.n.Truth(c.bridge, what)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c bridgeCheck) dump(t *testing.T, words ...string) string {
	t.Helper()
	return c.r.tool(t, "ovs-ofctl", append(append([]string{"-O", c.version}, words...), c.bridge)...)
}

// flows: none is there that the live bridge had not; those that are missing or
// do something else are told.
func (c bridgeCheck) flows(t *testing.T) {
	t.Helper()
	live, have := flowsByPlace(c.truth(t, "flows")), flowsByPlace(c.dump(t, "dump-flows", "--no-stats"))
	counts := c.counts(workdir.Flows)
	if c.has.flows == "" {
		live = map[string]string{}
	}
	missing, other, extra := compare(live, have)
	if len(extra) > 0 {
		t.Errorf("%s: %d flows that the live bridge had not: %.600q", c.bridge, len(extra), extra)
	}
	if len(missing) > counts.Rejected+c.told() {
		t.Errorf("%s: %d flows are missing, %+v: %.600q", c.bridge, len(missing), counts, missing)
	}
	if len(other) > 0 && (c.has.exact || !c.admits()) {
		t.Errorf("%s: %d flows do something else (%s dump, told: %v): %.900q", c.bridge, len(other), c.has.flows, c.admits(), other)
	}
	if got := counts.Restored + counts.Different; got != len(have) {
		t.Errorf("%s: the report counts %d flows, the replica has %d: %+v", c.bridge, got, len(have), counts)
	}
	if counts.Different > 0 && c.r.started.code != 3 {
		t.Errorf("%s: %d flows read back otherwise, exit %d", c.bridge, counts.Different, c.r.started.code)
	}
}

// told counts the lines that the collection says it could not use.
func (c bridgeCheck) told() int {
	total := 0
	for _, m := range regexp.MustCompile(`([0-9]+) lines can't be used`).FindAllStringSubmatch(strings.Join(c.r.report.Remarks, "\n"), -1) {
		var k int
		fmt.Sscan(m[1], &k)
		total += k
	}
	return total
}

// admits tells whether somebody says that this bridge's flows may not be whole.
func (c bridgeCheck) admits() bool {
	said := append(slices.Clone(c.r.report.Remarks), c.r.report.Lost...)
	for _, step := range c.r.report.Steps {
		said = append(said, step.Details...)
	}
	for _, remark := range said {
		if strings.Contains(remark, c.bridge) && (strings.Contains(remark, "OpenFlow 1.") || strings.Contains(remark, "OpenFlow1")) {
			return true
		}
	}
	return false
}

// entries: with a dump, those of the live bridge; without, placeholders for
// what flows name, told one by one, and nothing else.
func (c bridgeCheck) entries(t *testing.T, dump workdir.Dump, verb string, has bool) {
	t.Helper()
	if c.version < "OpenFlow13" && dump == workdir.Meters {
		return
	}
	live, have := entriesOf(dump, c.truth(t, string(dump))), entriesOf(dump, c.dump(t, verb))
	counts := c.counts(dump)
	if has {
		missing, other, extra := compare(live, have)
		if len(missing)+len(extra) > counts.Rejected || len(other) > 0 && !(dump == workdir.Groups && c.has.groups < "OpenFlow15" && c.admits()) {
			t.Errorf("%s %s: missing %.300q, otherwise %.300q, too many %.300q: %+v", c.bridge, dump, missing, other, extra, counts)
		}
		if counts.Restored != len(have) || counts.Placeholders > 0 {
			t.Errorf("%s %s: %d there: %+v", c.bridge, dump, len(have), counts)
		}
		return
	}
	for id := range have {
		if live[id] == "" {
			t.Errorf("%s %s: %s is there and was not on the live bridge", c.bridge, dump, id)
		}
	}
	if counts.Restored > 0 || counts.Placeholders != len(have) {
		t.Errorf("%s %s: nobody collected them, %d there: %+v", c.bridge, dump, len(have), counts)
	}
	if k := c.placeheld(dump); k != len(have) {
		t.Errorf("%s %s: %d placeholders, %d of them named", c.bridge, dump, len(have), k)
	}
}

func (c bridgeCheck) placeheld(dump workdir.Dump) (k int) {
	for _, p := range c.r.report.Placeholders {
		if p.Bridge == c.bridge && p.Dump == dump && p.Reason != "" {
			k++
		}
	}
	return k
}

// compare matches two lists by their keys.
func compare(want, have map[string]string) (missing, other, extra []string) {
	for key, text := range want {
		switch got, there := have[key]; {
		case !there:
			missing = append(missing, text)
		case got != text:
			other = append(other, text+" IS "+got)
		}
	}
	for key, text := range have {
		if _, there := want[key]; !there {
			extra = append(extra, text)
		}
	}
	slices.Sort(missing)
	slices.Sort(other)
	slices.Sort(extra)
	return missing, other, extra
}

func flowsByPlace(dump string) map[string]string {
	flows := map[string]string{}
	for f, problem := range openflow.Flows(strings.NewReader(dump)) {
		if problem == nil {
			flows[f.Criteria()] = strings.ReplaceAll(f.Text, "dec_ttl()", "dec_ttl")
		}
	}
	return flows
}

func entriesOf(dump workdir.Dump, text string) map[string]string {
	var list []openflow.Entry
	r := strings.NewReader(text)
	switch dump {
	case workdir.Groups:
		list, _ = openflow.Groups(r)
	case workdir.Meters:
		list, _ = openflow.Meters(r)
	case workdir.TLV:
		list, _ = openflow.TLVMap(r)
	}
	byID := map[string]string{}
	for _, e := range list {
		id := fmt.Sprint(e.ID)
		if dump == workdir.TLV {
			_, id, _ = strings.Cut(e.Text, "->")
		}
		byID[id] = e.Text
	}
	return byID
}
