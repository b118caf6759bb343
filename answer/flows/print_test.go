package flows

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

// TestFlowsFitATerminal prints flows as on a terminal of 80 columns.
func TestFlowsFitATerminal(t *testing.T) {
	var text bytes.Buffer
	out := bufio.NewWriter(&text)
	p := flowText{out: out, width: 80}
	packets := uint64(123456789)
	f := Flow{Bridge: "br-int", Packets: &packets, Table: 16, Stage: "ls_in_acl", Priority: 2002, Datapath: "switch blue",
		InPort: "p-vm1",
		Match:  "icmp6,reg0=0x100/0x100,ipv6_src=" + strings.Repeat("fe80:", 30) + "1,nw_ttl=255,icmp_type=135",
		For:    "NetworkPolicy web/allow-from-anywhere (ACL priority 1001, allow-related)"}
	for range 2 {
		if err := p.flow(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	joined := strings.Join(strings.Fields(text.String()), "")
	for _, part := range []string{strings.Repeat("fe80:", 30) + "1", "NetworkPolicyweb/allow-from-anywhere"} {
		if strings.Count(joined, part) != 2 {
			t.Errorf("%q is lost in:\n%s", part, text.String())
		}
	}
}
