package sosgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// supply describes what a collection holds for a bridge.
type supply struct {
	flows  string // the highest OpenFlow version of its flow dumps, "" for none
	exact  bool   // with bridge/dump-flows, every flow is complete
	groups string
	meters bool
	tlv    bool
}

// checkBridges compares each bridge of the replica with the live one, and with the
// counts in the report.
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

// flows checks that the replica has no extra flows, and that the report counts the
// flows that are missing or have other actions.
func (c bridgeCheck) flows(t *testing.T) {
	t.Helper()
	live, have := flowsByMatch(c.truth(t, "flows")), flowsByMatch(c.dump(t, "dump-flows", "--no-stats"))
	counts := c.counts(workdir.Flows)
	if c.has.flows == "" {
		live = map[string]string{}
	}
	missing, other, extra := compare(live, have)
	if len(extra) > 0 {
		t.Errorf("%s: %d extra flows: %.600q", c.bridge, len(extra), extra)
	}
	if len(missing) > counts.Rejected+c.unusable() {
		t.Errorf("%s: %d flows are missing, %+v: %.600q", c.bridge, len(missing), counts, missing)
	}
	if len(other) > 0 && (c.has.exact || !c.reportsIncomplete()) {
		t.Errorf("%s: %d flows have other actions (dump in %s, reported: %v): %.900q", c.bridge, len(other), c.has.flows,
			c.reportsIncomplete(), other)
	}
	if got := counts.Restored + counts.Different; got != len(have) {
		t.Errorf("%s: the report counts %d flows, the replica has %d: %+v", c.bridge, got, len(have), counts)
	}
	if counts.Different > 0 && c.r.started.code != 3 {
		t.Errorf("%s: %d flows differ when read back, exit code %d", c.bridge, counts.Different, c.r.started.code)
	}
}

// unusable returns the number of lines that the collection could not use.
func (c bridgeCheck) unusable() int {
	total := 0
	for _, m := range regexp.MustCompile(`([0-9]+) lines? can't be used`).FindAllStringSubmatch(strings.Join(c.r.report.Remarks, "\n"), -1) {
		var k int
		fmt.Sscan(m[1], &k)
		total += k
	}
	return total
}

// reportsIncomplete reports whether the report says that the bridge's dumps are in an
// OpenFlow version that cannot express every flow.
func (c bridgeCheck) reportsIncomplete() bool {
	texts := append(slices.Clone(c.r.report.Remarks), c.r.report.Lost...)
	for _, step := range c.r.report.Steps {
		texts = append(texts, step.Details...)
	}
	for _, remark := range texts {
		if strings.Contains(remark, c.bridge) &&
			(strings.Contains(remark, "OpenFlow 1.") || strings.Contains(remark, "OpenFlow1")) {
			return true
		}
	}
	return false
}

// entries compares groups, meters or TLV mappings with the live ones. Without a dump,
// the replica must have exactly one reported placeholder for each that flows use.
func (c bridgeCheck) entries(t *testing.T, dump workdir.Dump, verb string, has bool) {
	t.Helper()
	if c.version < "OpenFlow13" && dump == workdir.Meters {
		return
	}
	live, have := entriesOf(dump, c.truth(t, string(dump))), entriesOf(dump, c.dump(t, verb))
	counts := c.counts(dump)
	if has {
		missing, other, extra := compare(live, have)
		if len(missing)+len(extra) > counts.Rejected || len(other) > 0 &&
			!(dump == workdir.Groups && c.has.groups < "OpenFlow15" && c.reportsIncomplete()) {
			t.Errorf("%s %s: missing %.300q, different %.300q, extra %.300q: %+v", c.bridge, dump, missing, other, extra, counts)
		}
		if counts.Restored != len(have) || counts.Placeholders > 0 {
			t.Errorf("%s %s: the replica has %d: %+v", c.bridge, dump, len(have), counts)
		}
		return
	}
	for id := range have {
		if live[id] == "" {
			t.Errorf("%s %s: the live bridge did not have %s", c.bridge, dump, id)
		}
	}
	if counts.Restored > 0 || counts.Placeholders != len(have) {
		t.Errorf("%s %s: not collected, and the replica has %d: %+v", c.bridge, dump, len(have), counts)
	}
	if k := c.placeholders(dump); k != len(have) {
		t.Errorf("%s %s: %d placeholders, %d of them in the report", c.bridge, dump, len(have), k)
	}
}

func (c bridgeCheck) placeholders(dump workdir.Dump) (k int) {
	for _, p := range c.r.report.Placeholders {
		if p.Bridge == c.bridge && p.Dump == dump && p.Reason != "" {
			k++
		}
	}
	return k
}

// compare compares the values of equal keys.
func compare(want, have map[string]string) (missing, other, extra []string) {
	for key, text := range want {
		switch got, there := have[key]; {
		case !there:
			missing = append(missing, text)
		case got != text:
			other = append(other, text+" became "+got)
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

func flowsByMatch(dump string) map[string]string {
	flows := map[string]string{}
	for f, problem := range openflow.Flows(strings.NewReader(dump)) {
		if problem == nil {
			flows[fmt.Sprint(f.Criteria())] = strings.ReplaceAll(f.Text, "dec_ttl()", "dec_ttl")
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
