package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
)

// smallNode starts a live node that answers quickly, for tests that collect it
// many times: real daemons, one bridge with the given flows, a group, a meter and
// a TLV mapping, and OVN databases with one row each. It ends with the test.
func smallNode(t *testing.T, flows string) *lab {
	t.Helper()
	l := &lab{dir: ovs.Dir(t)}
	for _, folder := range []string{"ovs", "ovn"} {
		if err := os.Mkdir(filepath.Join(l.dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(l.dir, "flows")
	if err := os.WriteFile(file, []byte(flows), 0o600); err != nil {
		t.Fatal(err)
	}
	s := ovs.StartIn(t, filepath.Join(l.dir, "ovs"))
	s.Vsctl("add-br", "br-int", "--", "set", "Bridge", "br-int", "fail_mode=secure", "--", "add-port", "br-int", "pod1",
		"--", "add-port", "br-int", "pod2")
	for _, args := range [][]string{
		{"add-meter", "br-int", "meter=1,kbps,band=type=drop,rate=100"},
		{"add-group", "br-int", "group_id=1,type=select,bucket=output:1,bucket=output:2"},
		{"add-tlv-map", "br-int", "{class=0x102,type=0x80,len=4}->tun_metadata0"},
		{"add-flows", "br-int", file},
	} {
		s.Ofctl(append([]string{"-O", "OpenFlow15"}, args...)...)
	}
	serveOVN(t, filepath.Join(l.dir, "ovn"))
	return l
}

// serveOVN serves OVN databases that hold one logical switch and one chassis.
func serveOVN(t *testing.T, dir string) {
	t.Helper()
	args := []string{"--unixctl=" + filepath.Join(dir, "ovsdb-server.ctl")}
	for db, schema := range map[string]string{"nb": ovs.NBSchema, "sb": ovs.SBSchema} {
		file := filepath.Join(dir, "ovn"+db+"_db.db")
		ovs.Run(t, "ovsdb-tool", "create", file, schema)
		args = append(args, file, "--remote=punix:"+filepath.Join(dir, "ovn"+db+"_db.sock"))
	}
	s := ovs.ServeIn(t, dir, args...)
	s.Run("ovn-nbctl", "--timeout=30", "--db=unix:"+filepath.Join(dir, "ovnnb_db.sock"), "ls-add", "net1")
	s.Run("ovn-sbctl", "--timeout=30", "--db=unix:"+filepath.Join(dir, "ovnsb_db.sock"), "chassis-add", "node1", "geneve",
		"127.0.0.2")
}

// someFlows returns n flows, each with the given number of actions (60 bytes each)
// and some 60 bytes more.
func someFlows(n, actions int) string {
	one := strings.Repeat(",set_field:2001:db8:1111:2222:3333:4444:5555:6666->ipv6_src", actions)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "table=%d,priority=%d,ipv6,in_port=1,ipv6_dst=fd00::%x,actions=output:2%s\n", i%8, i%100+1, i+1, one)
	}
	return b.String()
}
