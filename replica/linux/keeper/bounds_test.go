//go:build linux

package keeper

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/report"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
)

// beyond is how many lines more than are read the report of TestOnlyTheFirstAreRead has.
const beyond = 1000

// TestOnlyTheFirstAreRead reads more sets, connections and rules than are restored of a namespace: those beyond the
// bound are counted and rejected, and a remark says so.
func TestOnlyTheFirstAreRead(t *testing.T) {
	written := func(lines int, begin, line, end string) string {
		path := filepath.Join(t.TempDir(), "recorded")
		files.Write(t, path, begin+strings.Repeat(line+"\n", lines)+end)
		return path
	}
	for name, c := range map[string]struct {
		most int
		part report.Part
		read func(t *testing.T, s *space) (kept int)
	}{
		"sets": {maxSetLines, report.Sets, func(t *testing.T, s *space) int {
			list, err := s.readSets(written(maxSetLines+beyond, "", "add all 10.0.0.1", ""))
			expect.Equal(t, err, nil, "the error")
			return len(list)
		}},
		"connections": {maxConnections, report.Connections, func(_ *testing.T, s *space) int {
			s.recorded.Conntrack = written(maxConnections+beyond, "",
				"ipv4 2 udp 17 29 src=10.0.0.1 dst=8.8.8.8 sport=1 dport=53 src=8.8.8.8 dst=10.0.0.1 sport=53 dport=1 mark=0", "")
			s.readConnections()
			return len(s.flows.recorded)
		}},
		"nft": {maxFilterRules, report.FilterRules, func(t *testing.T, s *space) int {
			set, err := readRuleset(strings.NewReader("table inet many {\n\tchain forward {\n" +
				strings.Repeat("\t\tip saddr 10.0.0.1 drop\n", maxFilterRules+beyond) + "\t}\n}\n"))
			expect.Equal(t, err, nil, "the error")
			s.countRuleset(set)
			return set.rules
		}},
		"rules": {maxFilterRules, report.FilterRules, func(t *testing.T, s *space) int {
			all, err := s.readSaved(written(maxFilterRules+beyond, "*filter\n:FORWARD ACCEPT [0:0]\n",
				"-A FORWARD -s 10.0.0.1/32 -j DROP", "COMMIT\n"))
			expect.Equal(t, err, nil, "the error")
			return all.rules
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &space{kernel: &kernel{all: true}, report: report.NewNamespace(""), flows: &connections{}}
			expect.Equal(t, c.read(t, s), c.most, "how many are kept")
			counts := s.report.Counts[c.part]
			expect.Equal(t, counts.Recorded, c.most+beyond, "how many are counted")
			expect.Equal(t, counts.Rejected, beyond, "how many are rejected")
			if said := strings.Join(s.report.Remarks, "\n"); !strings.Contains(said, fmt.Sprintf("only the first %d", c.most)) {
				t.Errorf("remarks: %q", said)
			}
		})
	}
}
