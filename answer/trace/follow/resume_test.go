package follow_test

import (
	"regexp"
	"strings"
	"testing"

	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/replica"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/trace"
)

var recirculation = regexp.MustCompile(`recirc\(0x[0-9a-f]+\)|recirc_id=\d+|pid=\d+`)

// TestResumedPassesAreThoseThatTheSwitchPrints has ovs-vswitchd follow the packets of the
// captures over recirculations by itself, and asks for each further pass as the tracer
// does.
func TestResumedPassesAreThoseThatTheSwitchPrints(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	reports := captures.Reports(t)
	resumed := 0
	for _, report := range reports {
		n, err := fidelity.Replay(t.Context(), report, ovs.Dir(t), replica.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close(t.Context())
		h := reopen(t, "n", n.Workdir)
		captures.Packets(t, func(content []byte) {
			packets, err := trace.ReadPackets(strings.NewReader(string(content)))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range packets {
				text, err := h.Ask(t.Context(), append([]string{"ofproto/trace", p.Bridge, p.Flow}, p.Options...)...)
				if err != nil {
					continue // a packet of another node
				}
				passes, err := pass.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range passes[1:] {
					resumed++
					again := want.Flow.WithoutPipeline()
					again.Delete("in_port")
					for _, name := range []string{"ct_state", "ct_zone", "ct_mark", "ct_label", "recirc_id"} {
						if value := want.Flow.Get(name); value != "" {
							again.Prepend(name, value)
						}
					}
					text, err := h.Ask(t.Context(), "ofproto/trace", p.Bridge, again.Input())
					if err != nil {
						t.Errorf("%s: %v", again.Input(), err)
						continue
					}
					have, err := pass.Parse(text)
					if err != nil {
						t.Fatal(err)
					}
					expect.Equal(t, recirculation.ReplaceAllString(have[0].ActionsText, ""),
						recirculation.ReplaceAllString(want.ActionsText, ""), again.Input())
				}
			}
		})
	}
	if resumed < 50 {
		t.Errorf("only %d passes were resumed", resumed)
	}
}
