package logicalflows

import (
	"bytes"
	"strings"
	"testing"
)

const (
	flowID  = "10f2b57a-0d29-4417-9973-b2dee763a0fa"
	groupID = "20f2b57a-0d29-4417-9973-b2dee763a0fb"
)

// TestMarkerChangesOnlyTextsAndGroups writes what an ovsdb-server sends, cut at each place.
func TestMarkerChangesOnlyTextsAndGroups(t *testing.T) {
	const mark = " //ovs-offline:" + flowID
	for name, c := range map[string]struct {
		in, want string
		flows    int
	}{
		"a reply to monitor_cond_since": {
			`{"error":null,"id":4,"result":[false,"x",{"Logical_Flow":{"` + flowID +
				`":{"initial":{"actions":"next;","external_ids":["map",[["match","x"]]],"match":"a == \"b\\\""}}}}]}`,
			`{"error":null,"id":4,"result":[false,"x",{"Logical_Flow":{"` + flowID + `":{"initial":{"actions":"next;` + mark +
				`","external_ids":["map",[["match","x"]]],"match":"a == \"b\\\"` + mark + `"}}}}]}`, 1,
		},
		"a reply to monitor": {
			`{"id":4,"result":{"Logical_Flow":{"` + flowID + `":{"new":{"match":"","table_id":3}}}}}`,
			`{"id":4,"result":{"Logical_Flow":{"` + flowID + `":{"new":{"match":"` + mark + `","table_id":3}}}}}`, 1,
		},
		"the datapaths of a group": {
			`{"result":{"Logical_DP_Group":{"` + groupID +
				`":{"initial":{"datapaths":["set",[["uuid","a"],["uuid","b"],["uuid","c"]]],"x":["set",[1,2]]}}}}}`,
			`{"result":{"Logical_DP_Group":{"` + groupID +
				`":{"initial":{"datapaths":["set",[["uuid","a"]]],"x":["set",[1,2]]}}}}}`, 0,
		},
		"a group of one or no datapath": {
			`{"result":{"Logical_DP_Group":{"` + groupID + `":{"initial":{"datapaths":["uuid","a"]}},"` + flowID +
				`":{"initial":{"datapaths":["set",[]]}}}}}`, "", 0,
		},
		"other tables": {
			`{"result":{"ACL":{"` + flowID + `":{"initial":{"match":"x","datapaths":["set",[["uuid","a"],["uuid","b"]]]}}}}}{"id":5,"result":["Logical_Flow",{}]}`, "", 0,
		},
		"a schema": {`{"result":{"tables":{"Logical_Flow":{"columns":{"match":{"type":"string"},"actions":{"type":"string"}}}}}}`, "", 0},
		"no JSON":  {`]]}}",:"a":[[{`, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.in
			}
			for size := 1; size <= len(c.in); size++ {
				var out bytes.Buffer
				m := newMarker(&out)
				for text := c.in; text != ""; text = text[min(size, len(text)):] {
					if _, err := m.Write([]byte(text[:min(size, len(text))])); err != nil {
						t.Fatal(err)
					}
				}
				if out.String() != c.want || m.flows != c.flows {
					t.Fatalf("in pieces of %d: %d flows\n%s\nwant %d\n%s", size, m.flows, &out, c.flows, c.want)
				}
			}
		})
	}
}

// BenchmarkMarker measures the part of a start that grows with the SB database.
func BenchmarkMarker(b *testing.B) {
	row := `"` + flowID + `":{"initial":{"actions":"reg0[15] = check_in_port_sec(); next;","external_ids":["map",[["source","northd.c:9365"],["stage-name","ls_in_check_port_sec"]]],"match":"` + strings.Repeat("ip4.src == 192.0.2.1 && ", 5) + `","pipeline":"ingress","priority":50}},`
	text := []byte(`{"result":{"Logical_Flow":{` + strings.Repeat(row, 100))
	m := newMarker(&bytes.Buffer{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		*m = *newMarker(discard{})
		_, _ = m.Write(text)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
