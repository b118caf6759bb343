package tables

import (
	"context"
	"io"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/oracle/captures"
)

// textSwitch is a switch whose bridge/dump-flows prints a text.
type textSwitch struct {
	Switch
	text string
}

func (s textSwitch) BridgeFlows(_ context.Context, _ string, w io.Writer) error {
	_, err := io.WriteString(w, s.text)
	return err
}

// FuzzHidden reads any text as bridge/dump-flows.
func FuzzHidden(f *testing.F) {
	captures.Captured(f, "*bridge.dump-flows*", 2048, func(content []byte) { f.Add(string(content)) })
	f.Add("duration=1s, n_packets=0, n_bytes=0, priority=180008,tcp,nw_dst=192.0.2.66,tp_dst=6653,actions=NORMAL\n")
	f.Add("table_id=254, duration=1s, n_packets=0, n_bytes=0, priority=99999999999999999999,actions=drop\npriority=")
	f.Fuzz(func(t *testing.T, text string) {
		hidden, err := hiddenOf(t.Context(), textSwitch{text: text}, "br0")
		if err != nil {
			t.Error(err)
		}
		for _, flow := range hidden.list {
			if flow.priority <= maxPriority {
				t.Errorf("%+v is not hidden", flow)
			}
		}
	})
}

// TestHasLoad checks that a load inside learn() does not count.
func TestHasLoad(t *testing.T) {
	for text, want := range map[string]bool{
		"ip actions=load:0x1->NXM_NX_REG0[]":                                             true,
		"ip actions=clone(load:0x1->NXM_NX_REG0[])":                                      true,
		"ip actions=set_field:0x1->reg0":                                                 false,
		"ip actions=learn(table=3,load:1->NXM_NX_REG0[7])":                               false,
		"ip actions=learn(table=3,load:1->NXM_NX_REG0[7]),load:2->NXM_NX_REG1[]":         true,
		"ip actions=learn(table=3,output:NXM_OF_IN_PORT[]),learn(load:1->NXM_NX_REG0[7]": false,
	} {
		expect.Equal(t, hasLoad(text), want, text)
	}
}
