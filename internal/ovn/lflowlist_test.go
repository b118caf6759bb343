package ovn_test

import (
	"bytes"
	"strings"
	"testing"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/test/check/expect"
)

// listed is output of `ovn-sbctl lflow-list` of OVN 23.03, and of 24.03 with --uuid.
const listed = `Datapath: "neutron-190d2f3d" aka "net" (f91ea922-a2a0-4ebd-b3ff-cf69fa896972)  Pipeline: ingress
  table=0 (ls_in_check_port_sec), priority=100  , match=(eth.src[40]), action=(drop;)
  table=2 (ls_in_lookup_fdb   ), priority=0    , match=(1), action=(next;)
Datapath: "lr0" (7bce2da2-dfaa-4df4-9bc0-4f7b13d8c436)  Pipeline: egress
  uuid=0x0a1b2c3d, table=12(lr_out_snat        ), priority=65535, match=(ip && (ip4.src == 10.0.0.0/24)), action=(icmp4 { eth.dst <-> eth.src; output; }; /* drop */)
`

// TestListedLogicalFlows checks the columns of logical flows that lflow-list printed.
func TestListedLogicalFlows(t *testing.T) {
	var out bytes.Buffer
	flows, lost, err := ovn.LogicalFlowRows(&out,
		strings.NewReader("2026-11-27T00:00:00Z|00001|warn|slow\n"+listed+"  table=x\n"))
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, [2]int{flows, lost}, [2]int{3, 2})
	rows, err := ovsdb.Listing(&out)
	if err != nil {
		t.Fatal(err)
	}
	last := rows[2]
	expect.Equal(t, last.UUID[:8], "0a1b2c3d")
	for column, want := range map[string]string{"logical_datapath": "7bce2da2-dfaa-4df4-9bc0-4f7b13d8c436",
		"pipeline": "egress", "table_id": "12", "priority": "65535",
		"match": "ip && (ip4.src == 10.0.0.0/24)", "actions": "icmp4 { eth.dst <-> eth.src; output; }; /* drop */",
		"external_ids": `{stage-name="lr_out_snat"}`} {
		expect.Equal(t, last.Column(column), want, column)
	}
	if rows[0].UUID == rows[1].UUID || !ovsdb.IsUUID(rows[0].UUID) {
		t.Errorf("UUIDs %s and %s", rows[0].UUID, rows[1].UUID)
	}
}

// FuzzLogicalFlowRows checks that each logical flow that is counted can be read again.
func FuzzLogicalFlowRows(f *testing.F) {
	f.Add(listed)
	f.Add("Datapath: a (f91ea922-a2a0-4ebd-b3ff-cf69fa896972)  Pipeline: egress\n  table=0 (\x1b[31m), priority=1, match=(\"\x00\"), action=()\n")
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		flows, _, err := ovn.LogicalFlowRows(&out, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := ovsdb.Listing(&out)
		if err != nil || len(rows) != flows {
			t.Errorf("%d rows of %d flows: %v", len(rows), flows, err)
		}
	})
}
