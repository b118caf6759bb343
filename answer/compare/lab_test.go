package compare_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/compare"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/lines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// lab is a deployment of OVN with two chassis, as real daemons.
type lab struct {
	tb      testing.TB
	central *ovs.Central
	nodes   map[string]*ovs.Switch
}

// newLab starts a lab with two switches, a router, ports on both nodes, and a row in most
// tables of the northbound database.
func newLab(tb testing.TB) *lab {
	tb.Helper()
	ovs.Need(tb, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd", "ovsdb-tool", "ovs-ofctl")
	l := &lab{tb: tb, central: ovs.StartCentral(tb), nodes: map[string]*ovs.Switch{}}
	l.central.Northd()
	for i, name := range []string{"compute1", "compute2"} {
		s := ovs.Start(tb)
		l.nodes[name] = s
		s.Vsctl("set", "Open_vSwitch", ".", "external_ids:system-id="+name+"-id", "external_ids:hostname="+name,
			"external_ids:ovn-remote="+l.central.Remote,
			"external_ids:ovn-encap-type=geneve", fmt.Sprintf("external_ids:ovn-encap-ip=192.168.0.%d", i+1),
			"external_ids:ovn-bridge-mappings=public:br-ex",
			"--", "add-br", "br-ex", "--", "set", "Bridge", "br-ex", "fail_mode=standalone", "--", "add-port", "br-ex", "eth1")
		s.Controller()
	}
	l.nb(logical)
	l.plug("compute1", "vm1", "vm2")
	l.plug("compute2", "vm3", "vm4", "vm7", "vm8")
	l.settle("vm1", "vm2", "vm3", "vm4", "vm7", "vm8")
	return l
}

// logical is the network of the lab, as a command of ovn-nbctl on each line.
const logical = `
ls-add blue -- ls-add green -- ls-add public
lsp-add blue vm1 -- lsp-set-addresses vm1 "02:00:00:00:00:01 10.0.1.1" -- lsp-set-port-security vm1 "02:00:00:00:00:01 10.0.1.1"
lsp-add blue vm2 -- lsp-set-addresses vm2 "02:00:00:00:00:02 10.0.1.2"
lsp-add blue vm3 -- lsp-set-addresses vm3 "02:00:00:00:00:03 10.0.1.3"
lsp-add green vm4 -- lsp-set-addresses vm4 "02:00:00:00:00:04 10.0.2.4"
lsp-add green vm5 -- lsp-set-addresses vm5 "02:00:00:00:00:05 10.0.2.5"
lsp-add green vm7 -- lsp-set-addresses vm7 "02:00:00:00:00:07 10.0.2.7" -- lsp-add green vm8 -- lsp-set-addresses vm8 "02:00:00:00:00:08 10.0.2.8"
lr-add main
lrp-add main main-blue 02:00:00:00:01:01 10.0.1.254/24 -- lsp-add blue blue-main -- lsp-set-type blue-main router -- lsp-set-addresses blue-main router -- lsp-set-options blue-main router-port=main-blue
lrp-add main main-green 02:00:00:00:01:02 10.0.2.254/24 -- lsp-add green green-main -- lsp-set-type green-main router -- lsp-set-addresses green-main router -- lsp-set-options green-main router-port=main-green
lrp-add main main-public 02:00:00:00:01:03 172.16.0.254/24 -- lsp-add public public-main -- lsp-set-type public-main router -- lsp-set-addresses public-main router -- lsp-set-options public-main router-port=main-public
lrp-set-gateway-chassis main-public compute1-id 20 -- lrp-set-gateway-chassis main-public compute2-id 10
lsp-add public provnet -- lsp-set-type provnet localnet -- lsp-set-addresses provnet unknown -- lsp-set-options provnet network_name=public
lr-nat-add main snat 172.16.0.254 10.0.1.0/24 -- lr-nat-add main dnat_and_snat 172.16.0.11 10.0.1.1 -- lr-nat-add main dnat_and_snat 172.16.0.12 10.0.1.2
lr-route-add main 10.99.0.0/16 172.16.0.1 -- lr-route-add main 10.98.0.0/16 172.16.0.1
lr-policy-add main 100 "ip4.src == 10.0.1.7" drop -- lr-policy-add main 101 "ip4.src == 10.0.1.8" drop
pg-add web vm1 vm3 -- pg-add db vm2 vm4
acl-add web to-lport 1001 "outport == @web && tcp.dst == 80" allow-related -- acl-add web to-lport 1002 "outport == @web && tcp.dst == 22" drop
acl-add db to-lport 1001 "outport == @db && ip4.src == $clients" allow-related
acl-add db to-lport 1003 "outport == @db && ip4.src == $admins && tcp.dst == {5432, 5433}" allow-related
create Address_Set name=clients addresses=10.0.1.1,10.0.1.3
create Address_Set name=admins addresses=10.9.0.1,10.9.0.2
lb-add service 10.0.1.100:80 10.0.1.1:8080,10.0.1.3:8080 -- ls-lb-add blue service -- lb-add idle 10.0.1.101:80 10.0.1.2:8080 -- ls-lb-add blue idle -- lb-add moved 10.0.1.103:80 10.0.1.2:8080 -- ls-lb-add blue moved
qos-add blue to-lport 100 "outport == \"vm1\"" rate=1000 burst=100 -- qos-add blue to-lport 101 "outport == \"vm2\"" dscp=10
create DHCP_Options cidr=10.0.1.0/24 options={server_id=10.0.1.254,server_mac=\"02:00:00:00:01:01\",lease_time=3600}
create DNS records={vm1=10.0.1.1}
meter-add slow drop 100 kbps 10 -- meter-add fast drop 900 kbps 10
`

// nb runs ovn-nbctl, once for each line.
func (l *lab) nb(commands string) {
	l.tb.Helper()
	for line := range strings.Lines(commands) {
		if line = strings.TrimSpace(line); line != "" {
			l.central.Nbctl(lines.Words(line)...)
		}
	}
}

// plug adds the interfaces of logical ports to a node.
func (l *lab) plug(node string, ports ...string) {
	l.tb.Helper()
	for _, port := range ports {
		l.nodes[node].Vsctl("add-port", "br-int", "tap-"+port, "--", "set", "Interface", "tap-"+port,
			"external_ids:iface-id="+port)
	}
}

// settle returns when ovn-controller has written the flows of all nodes. Ports that are
// plugged come up only after their flows were written.
func (l *lab) settle(up ...string) {
	l.tb.Helper()
	for _, port := range up {
		l.central.Nbctl("wait-until", "Logical_Switch_Port", port, "up=true")
	}
	l.central.Nbctl("--wait=hv", "sync")
	l.central.Nbctl("--wait=hv", "sync")
}

// capture writes the workdirs of all nodes, as a collection does, and returns their folder.
func (l *lab) capture() string {
	l.tb.Helper()
	folder := l.tb.TempDir()
	for name, s := range l.nodes {
		wd, err := workdir.Find(filepath.Join(folder, name))
		if err != nil {
			l.tb.Fatal(err)
		}
		l.copyFile(filepath.Join(s.Dir, "conf.db"), wd.Database(workdir.OVS))
		if l.central != nil {
			l.copyFile(l.central.NB, wd.Database(workdir.NB))
			l.copyFile(l.central.SB, wd.Database(workdir.SB))
		}
		for _, table := range []string{"Interface", "Controller"} {
			l.write(wd.Recorded(workdir.RecordedList(table)), s.Vsctl("list", table))
		}
		for _, bridge := range strings.Fields(s.Vsctl("list-br")) {
			for dump, command := range map[workdir.Dump]string{workdir.Flows: "dump-flows", workdir.Groups: "dump-groups",
				workdir.Meters: "dump-meters"} {
				l.write(wd.DumpFile(bridge, dump), s.Ofctl("-O", "OpenFlow15", command, bridge))
			}
		}
	}
	return folder
}

func (l *lab) copyFile(src, dst string) {
	l.tb.Helper()
	text, err := os.ReadFile(src)
	if err != nil {
		l.tb.Fatal(err)
	}
	l.write(dst, string(text))
}

func (l *lab) write(path, text string) {
	l.tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.tb.Fatal(err)
	}
}

// compared compares two captures.
func compared(tb testing.TB, older, newer string) *compare.Comparison {
	tb.Helper()
	var sides []*compare.Side
	for _, folder := range []string{older, newer} {
		s, err := snapshot.Open(folder, nil)
		if err != nil || s == nil {
			tb.Fatal(s, err)
		}
		side, err := compare.OfSet(tb.Context(), filepath.Base(folder), s)
		if err != nil {
			tb.Fatal(err)
		}
		defer side.Close()
		sides = append(sides, side)
	}
	c, err := compare.Compare(tb.Context(), sides[0], sides[1])
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// show prints a comparison into the log of a test.
func show(tb testing.TB, c *compare.Comparison) {
	tb.Helper()
	for _, f := range c.Findings {
		flows := ""
		if f.Flows != nil {
			flows = " [flows: " + f.Flows.String() + "]"
		}
		tb.Logf("%s: %s%s", f.Kind, f.Line(), flows)
		for _, follows := range f.Follows {
			tb.Logf("    %s", follows)
		}
	}
	for _, text := range slices.Concat(c.Missing, c.Remarks) {
		tb.Log("remark: ", text)
	}
}

func TestTwoCapturesWithoutAChange(t *testing.T) {
	l := newLab(t)
	c := compared(t, l.capture(), l.capture())
	if show(t, c); !c.Same || len(c.Missing) > 0 {
		t.Error("not the same")
	}
}
