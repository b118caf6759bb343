package whatif

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ovs-offline/desired/flowdiff"
	"ovs-offline/desired/scratch"
	"ovs-offline/internal/command"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/ovs"
)

// live is a running set of the lab.
type live struct {
	t     *testing.T
	dir   string
	nodes []string
}

// startLive starts the set openstack, which ends with the test.
func startLive(t *testing.T) *live {
	t.Helper()
	dir, err := os.MkdirTemp("", "set.") // the path of a socket holds at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	l := &live{t, filepath.Join(dir, "s"), []string{"compute1", "compute2", "gateway"}}
	lab := func(args ...string) error {
		_, err := command.Run(context.Background(), command.Command{Argv: append([]string{"../../scripts/lab/lab"}, args...), Group: true})
		return err
	}
	t.Cleanup(func() {
		if err := lab("set-down", l.dir); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	if err := lab("set-up", "openstack", l.dir); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *live) run(argv ...string) string {
	l.t.Helper()
	out, err := command.Run(l.t.Context(), command.Command{Argv: argv, Env: append(os.Environ(), "OVN_RUNDIR="+l.dir)})
	if err != nil {
		l.t.Fatal(err)
	}
	return string(out)
}

func (l *live) central(name string) string { return filepath.Join(l.dir, "central", "ovn", name) }

// nbctl changes the live deployment, and waits until its nodes have the flows.
func (l *live) nbctl(args ...string) {
	l.t.Helper()
	l.run(append([]string{"ovn-nbctl", "--db=unix:" + l.central("ovnnb_db.sock"), "--timeout=60", "--wait=hv"}, args...)...)
	for range 2 { // for ports that ovn-controllers bind, which northd answers
		l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), "--timeout=60", "--wait=hv", "sync")
	}
}

// collect copies the databases of the set, and returns the options to compute from them.
func (l *live) collect(dir *workdir.Dir) Options {
	l.t.Helper()
	folder := ovs.Dir(l.t)
	copied := func(from, to string) string {
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			l.t.Fatal(err)
		}
		if _, _, err := file.Standalone(l.t.Context(), from, to); err != nil {
			l.t.Fatal(err)
		}
		return to
	}
	o := Options{Dir: dir, Runtime: process.New(process.Options{Folders: dir.RuntimeFolders()}),
		NB: copied(l.central("ovnnb_db.db"), filepath.Join(folder, "nb.db")), SB: copied(l.central("ovnsb_db.db"), filepath.Join(folder, "sb.db"))}
	for _, node := range l.nodes {
		wd, err := workdir.Find(filepath.Join(folder, node))
		if err != nil {
			l.t.Fatal(err)
		}
		home := filepath.Join(l.dir, "nodes", node, "ovs")
		copied(filepath.Join(home, "conf.db"), wd.Database(workdir.OVS))
		for table, name := range map[string]string{"Interface": workdir.RecordedListInterface, "Port": workdir.RecordedListPort, "Bridge": workdir.RecordedListBridge} {
			path := wd.Recorded(name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				l.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(l.run("ovs-vsctl", "--db=unix:"+filepath.Join(home, "db.sock"), "list", table)), 0o600); err != nil {
				l.t.Fatal(err)
			}
		}
		o.Nodes = append(o.Nodes, Node{node, wd})
	}
	return o
}

// state returns what the switch of a live node has.
func (l *live) state(node string) flowdiff.State {
	l.t.Helper()
	dump := func(what string) *strings.Reader {
		return strings.NewReader(l.run("ovs-ofctl", "--no-names", "-O", "OpenFlow15", what, "unix:"+filepath.Join(l.dir, "nodes", node, "ovs", "br-int.mgmt")))
	}
	s, lost := flowdiff.Read(dump("dump-flows"), dump("dump-groups"), dump("dump-meters"))
	if len(lost) > 0 {
		l.t.Fatal(lost[0])
	}
	return s
}

// differences returns in what a state differs from a live node's. Cookies are left out:
// they are the beginnings of UUIDs, which the servers choose anew for new rows. So are the
// numbers of ECMP routes and of their members, and of new conntrack zones, which follow
// those UUIDs. zones are those that the node had.
func differences(computed, live flowdiff.State, zones map[string]bool) []string {
	d := flowdiff.Compare(computed, live)
	var found []string
	for _, c := range d.OnlyA {
		found = append(found, "predicted only: "+withoutCookies(c.A))
	}
	for _, c := range d.OnlyB {
		found = append(found, "live only: "+withoutCookies(c.B))
	}
	var predicted, lives, members []string
	for _, c := range d.Changed {
		a, b := withoutZones(withoutCookies(c.A), zones), withoutZones(withoutCookies(c.B), zones)
		switch {
		case !c.Actions, a == b:
		case ecmp.MatchString(a):
			predicted, lives = append(predicted, ecmp.ReplaceAllString(a, "")), append(lives, ecmp.ReplaceAllString(b, ""))
			members = append(members, "predicted "+a+"\n            live "+b)
		default:
			found = append(found, "predicted "+a+"\n            live "+b)
		}
	}
	slices.Sort(predicted)
	slices.Sort(lives)
	if !slices.Equal(predicted, lives) {
		found = append(found, members...)
	}
	return found
}

var (
	// ecmp matches the numbers of an ECMP route and of a member, in a match and in actions.
	ecmp = regexp.MustCompile(`reg8=0x[0-9a-f]+,|set_field:0x[0-9a-f]+/0xffff00000000->xreg4,group:[0-9]+`)
	zone = regexp.MustCompile(`set_field:(0x[0-9a-f]+)->reg1[123]\b`)
)

// withoutZones replaces the numbers of zones other than those that a node had.
func withoutZones(text string, had map[string]bool) string {
	return zone.ReplaceAllStringFunc(text, func(load string) string {
		if number := zone.FindStringSubmatch(load)[1]; !had[number] {
			return strings.Replace(load, number, "NEW", 1)
		}
		return load
	})
}

// zones returns the numbers of the conntrack zones of a live node.
func (l *live) zones(node string) map[string]bool {
	l.t.Helper()
	text := l.run("ovs-vsctl", "--db=unix:"+filepath.Join(l.dir, "nodes", node, "ovs", "db.sock"), "get", "Bridge", "br-int", "external_ids")
	found := map[string]bool{"0": true}
	for _, m := range regexp.MustCompile(`ct-zone-[^=]+="?([0-9]+)`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			l.t.Fatal(err)
		}
		found[fmt.Sprintf("%#x", n)] = true
	}
	if len(found) < 5 {
		l.t.Fatalf("%s: zones %v", node, found)
	}
	return found
}

// The rows of the set that the changes name.
const (
	blue = "neutron-e3c647f7-8126-4a93-8c43-b76ffa808cd7"
	vm1  = "bd9e8124-4e85-4ce9-8853-39a7c44a644a"
	vm2  = "59b79644-9135-466c-8ae9-cedc223b2034"
	vm4  = "daeff289-a111-4f57-8a1e-a8600cb3ef10"
)

// TestChangesDoWhatWasPredicted applies changes to a live deployment after their effect was
// computed from what was collected before all of them, and compares the flows of all nodes.
func TestChangesDoWhatWasPredicted(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovn-controller", "ovn-northd", "ovn-nbctl", "unshare")
	if isolated, why := process.New(process.Options{}).Isolated(t.Context()); !isolated {
		t.Skip(why)
	}
	l := startLive(t)
	folder, err := workdir.Find(ovs.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := scratch.Lock(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scratch.Release(dir) })
	s, err := Open(t.Context(), l.collect(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	zones := map[string]map[string]bool{}
	before := map[string][]string{} // what differs before any change: the lab removes flows
	for _, node := range l.nodes {
		zones[node] = l.zones(node)
		before[node] = differences(s.now.states[node], l.state(node), zones[node])
		t.Logf("%s: %q", node, before[node])
	}
	for _, c := range changes(l) {
		t.Run(strings.ReplaceAll(c.what, " ", "-"), func(t *testing.T) {
			began := time.Now()
			r, err := s.Apply(t.Context(), Change{c.args})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			l.t = t
			l.nbctl(c.args...)
			changed := 0
			for i, node := range l.nodes {
				found := differences(s.now.states[node], l.state(node), zones[node])
				wrong := slices.DeleteFunc(found, func(text string) bool { return slices.Contains(before[node], text) })
				for _, text := range wrong {
					t.Errorf("%s: %s", node, text)
				}
				if !r.Nodes[i].Equal() {
					changed++
				}
				t.Logf("%s: %s", node, r.Nodes[i].Summary())
			}
			t.Logf("%v", took)
			if changed == 0 && !c.nothing {
				t.Error("no change was predicted")
			}
		})
	}
}

// planned is a change of a live deployment.
type planned struct {
	what    string
	args    []string
	nothing bool // it changes no flow
}

func changes(l *live) []planned {
	row := func(table, condition string) string {
		return strings.TrimSpace(l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), "--bare", "--columns=_uuid", "find", table, condition))
	}
	dhcp := row("DHCP_Options", `cidr="192.168.10.0/24"`)
	router := strings.Fields(l.run("ovn-nbctl", "--db=unix:"+l.central("ovnnb_db.sock"), "--bare", "--columns=name", "find", "Logical_Router", "external_ids:neutron\\:router_name=main"))[0]
	return []planned{
		{what: "ACL of a switch", args: []string{"--log", "--severity=info", "--name=n1", "acl-add", blue, "from-lport", "900", "ip4 && tcp.dst == 9999", "drop"}},
		{what: "stateful ACL", args: []string{"acl-add", blue, "to-lport", "1200", fmt.Sprintf("outport == %q && ip4 && udp.dst == {53, 67}", vm1), "allow-related"}},
		{what: "ACL removed", args: []string{"acl-del", blue, "from-lport", "900", "ip4 && tcp.dst == 9999"}},
		{what: "port without a VIF", args: []string{"lsp-add", blue, "new1", "--", "lsp-set-addresses", "new1", "00:00:00:00:aa:01 192.168.10.77"}},
		{what: "port security", args: []string{"lsp-set-port-security", vm2, "fa:16:3e:10:00:06 192.168.10.6"}},
		{what: "port removed", args: []string{"lsp-del", "new1"}},
		{what: "port group", args: []string{"pg-add", "pg1", vm1, vm2}, nothing: true},
		{what: "ACL of a port group", args: []string{"--type=port-group", "acl-add", "pg1", "to-lport", "1300", "outport == @pg1 && ip4.src == 198.51.100.0/24", "reject"}},
		{what: "port group changed", args: []string{"pg-set-ports", "pg1", vm1, vm4}},
		{what: "address set", args: []string{"create", "Address_Set", "name=as1", "addresses=192.0.2.1,192.0.2.2,192.0.2.3"}, nothing: true},
		{what: "ACL with an address set", args: []string{"acl-add", "pg1", "to-lport", "1301", "outport == @pg1 && ip4.src == $as1 && tcp.dst == {80, 443}", "allow"}},
		{what: "address set changed", args: []string{"add", "Address_Set", "as1", "addresses", "192.0.2.9"}},
		{what: "load balancer", args: []string{"lb-add", "lb1", "192.168.10.200:80", "192.168.10.5:80,192.168.10.6:80", "--", "ls-lb-add", blue, "lb1"}},
		{what: "load balancer changed", args: []string{"set", "Load_Balancer", "lb1", `vips:"192.168.10.200:80"="192.168.10.7:80"`}},
		{what: "load balancer of a router", args: []string{"lr-lb-add", router, "lb1"}},
		{what: "load balancer removed", args: []string{"lb-del", "lb1"}},
		{what: "static route", args: []string{"lr-route-add", router, "10.99.0.0/16", "192.168.10.6"}},
		{what: "ECMP route", args: []string{"--ecmp", "lr-route-add", router, "10.99.0.0/16", "192.168.10.7"}},
		{what: "route removed", args: []string{"lr-route-del", router, "10.99.0.0/16"}},
		{what: "NAT", args: []string{"lr-nat-add", router, "dnat_and_snat", "172.24.4.77", "192.168.10.6"}},
		{what: "NAT removed", args: []string{"lr-nat-del", router, "dnat_and_snat", "172.24.4.77"}},
		{what: "router policy", args: []string{"lr-policy-add", router, "500", "ip4.src == 192.168.10.5 && ip4.dst == 203.0.113.9", "drop"}},
		{what: "DHCP options", args: []string{"dhcp-options-set-options", dhcp, "lease_time=600", "server_id=192.168.10.1", "server_mac=fa:16:3e:aa:00:01", "router=192.168.10.1"}},
		{what: "QoS", args: []string{"qos-add", blue, "from-lport", "100", fmt.Sprintf("inport == %q && ip4", vm1), "dscp=10", "rate=1000", "burst=100"}},
		{what: "router port with a switch", args: []string{"ls-add", "sw9", "--", "lrp-add", router, "lrp9", "00:00:00:00:bb:01", "10.9.0.1/24", "--",
			"lsp-add", "sw9", "sw9-r", "--", "lsp-set-type", "sw9-r", "router", "--", "lsp-set-addresses", "sw9-r", "router", "--", "lsp-set-options", "sw9-r", "router-port=lrp9"}},
		{what: "port disabled", args: []string{"lsp-set-enabled", vm4, "disabled"}},
		{what: "switch removed", args: []string{"ls-del", "sw9", "--", "lrp-del", "lrp9"}},
	}
}
