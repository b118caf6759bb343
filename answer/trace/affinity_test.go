package trace

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// clients is a live node with a Service of session affinity for each family and protocol on
// the switch of client, with one that has one backend, and with one on the router of client2.
type clients struct {
	*ovs.Switch
	central *ovs.Central
}

func startClients(t *testing.T) clients {
	t.Helper()
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovn-nbctl", "ovs-vswitchd")
	c := clients{ovs.Start(t), ovs.StartCentral(t)}
	c.central.Northd()
	c.Vsctl("add-br", "br-int", "--", "set", "Bridge", "br-int", "datapath_type=system")
	c.Join(c.central, "node")
	var nb []string
	add := func(line string) { nb = append(nb, append([]string{"--"}, strings.Fields(line)...)...) }
	add("lr-add lr0 -- lr-add lr1 -- set Logical_Router lr1 options:chassis=node")
	for i := range 4 {
		add(fmt.Sprintf("lrp-add lr%d rp%d 00:00:00:00:ff:0%d 10.0.%d.1/24 fd00:%d::1/64", i/2, i, i, i, i))
		add(fmt.Sprintf("ls-add sw%d -- lsp-add sw%d to%d -- lsp-set-type to%d router -- lsp-set-addresses to%d router -- lsp-set-options to%d router-port=rp%d", i, i, i, i, i, i, i))
	}
	for _, p := range []struct {
		name            string
		network, number int
	}{{"client", 0, 10}, {"b1", 1, 11}, {"b2", 1, 12}, {"client2", 2, 10}, {"b3", 3, 11}} {
		add(fmt.Sprintf("lsp-add sw%d %s", p.network, p.name))
		nb = append(nb, "--", "lsp-set-addresses", p.name,
			fmt.Sprintf("00:00:00:00:0%d:%d 10.0.%d.%d fd00:%d::%d", p.network, p.number, p.network, p.number, p.network,
				p.number))
		c.Vsctl("add-port", "br-int", p.name, "--", "set", "Interface", p.name, "external_ids:iface-id="+p.name)
	}
	for name, line := range map[string]string{
		"tcp": "10.96.0.10:80 10.0.1.11:8080,10.0.1.12:8080 tcp", "udp": "10.96.0.10:53 10.0.1.11:8053,10.0.1.12:8053 udp",
		"tcp6": "[fd00:96::10]:80 [fd00:1::11]:8080,[fd00:1::12]:8080 tcp",
		"udp6": "[fd00:96::10]:53 [fd00:1::11]:8053,[fd00:1::12]:8053 udp",
		"one":  "10.96.0.11:80 10.0.1.11:8080 tcp", "own": "10.96.0.12:80 10.0.0.10:8080 tcp",
		"routed": "10.96.0.20:80 10.0.3.11:8080 tcp",
	} {
		add("lb-add " + name + " " + line)
		add("set Load_Balancer " + name + " options:affinity_timeout=600")
		if name == "routed" {
			add("lr-lb-add lr1 routed")
		} else {
			add("ls-lb-add sw0 " + name)
		}
	}
	c.central.Nbctl(append([]string{"--wait=hv"}, nb[1:]...)...)
	return c
}

// captured starts a replica of the node as it is now, and returns a session on it.
func (c clients) captured(t *testing.T) *Session {
	t.Helper()
	return captured(t, c.Switch, map[string]string{c.central.NB: "db/ovn_nb/ovnnb_db.db",
		c.central.SB: "db/ovn_sb/ovnsb_db.db"}, nil)
}

// captured starts a replica of a switch as it is now, with further files of the workdir, and
// texts, and returns a session on it.
func captured(t *testing.T, live *ovs.Switch, copies, texts map[string]string) *Session {
	t.Helper()
	dir := ovs.Dir(t)
	write := func(path, text string) { files.Write(t, filepath.Join(dir, path), text) }
	write("db/ovs/conf.db", files.Read(t, filepath.Join(live.Dir, "conf.db")))
	for from, to := range copies {
		write(to, files.Read(t, from))
	}
	for path, text := range texts {
		write(path, text)
	}
	for bridge := range strings.FieldsSeq(live.Vsctl("list-br")) {
		for _, dump := range []string{"flows", "groups"} {
			write("restore_flows/"+bridge+"."+dump+".dump", live.Ofctl("-O", "OpenFlow15", "dump-"+dump, bridge))
		}
	}
	return adopted(t, dir)
}

// adopted starts a replica of a workdir, and returns a session on it.
func adopted(t *testing.T, dir string) *Session {
	t.Helper()
	fidelity.Started(t, dir)
	wd, err := workdir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenSet(t.Context(), snapshot.Of(wd), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var sentFrames = regexp.MustCompile(`tx pkts=(\d+)`)

// received returns how many frames came out at the ports.
func (c clients) received(t *testing.T, ports ...string) int {
	t.Helper()
	sum := 0
	for _, port := range ports {
		m := sentFrames.FindStringSubmatch(c.Ofctl("dump-ports", "br-int", port))
		if m == nil {
			t.Fatalf("port %s has no counters", port)
		}
		n, _ := strconv.Atoi(m[1])
		sum += n
	}
	return sum
}

// arrives puts a first packet of client into the live switch, and reports whether one of the
// backends receives it. Pings to the router follow it, one after the other: once the second is
// answered, all that came before the first has come out.
func (c clients) arrives(t *testing.T, protocol, vip string, sport int) bool {
	t.Helper()
	send := func(format string, values ...any) {
		c.Appctl("netdev-dummy/receive", "client",
			"in_port(1),eth(src=00:00:00:00:00:10,dst=00:00:00:00:ff:00),"+fmt.Sprintf(format, values...))
	}
	before := c.received(t, "b1", "b2")
	kind, number, dport, flags := "eth_type(0x0800),ipv4(src=10.0.0.10,dst=%s,proto=%d,tos=0,ttl=64,frag=no)", 6, 80,
		",tcp_flags(syn)"
	if strings.Contains(vip, ":") {
		kind = "eth_type(0x86dd),ipv6(src=fd00:0::10,dst=%s,label=0,proto=%d,tclass=0,hlimit=64,frag=no)"
	}
	if protocol == "udp" {
		number, dport, flags = 17, 53, ""
	}
	send(kind+",%s(src=%d,dst=%d)%s", vip, number, protocol, sport, dport, flags)
	for range 2 {
		answered := c.received(t, "client")
		send("eth_type(0x0800),ipv4(src=10.0.0.10,dst=10.0.0.1,proto=1,tos=0,ttl=64,frag=no),icmp(type=8,code=0)")
		ovs.Await(t, "an answer of the router to a ping", func() bool { return c.received(t, "client") > answered })
	}
	return c.received(t, "b1", "b2") > before
}

// TestServiceWithSessionAffinityIsReachable sends first packets of a client to services with
// session affinity through a live switch. A packet that creates a session is dropped, and so
// are further packets from the same port, because the datapath is in userspace; packets from
// other ports arrive. A replica that was made before gives the same answers; a replica that
// was made after them has the recorded session.
func TestServiceWithSessionAffinityIsReachable(t *testing.T) {
	c := startClients(t)
	before := c.captured(t)
	services := []struct{ vip, protocol string }{{"10.96.0.10", "tcp"}, {"10.96.0.10", "udp"}, {"fd00:96::10", "tcp"},
		{"fd00:96::10", "udp"}, {"10.96.0.11", "tcp"}}
	for _, s := range services {
		if c.arrives(t, s.protocol, s.vip, 41000) {
			t.Errorf("%s %s: the first packet arrives", s.protocol, s.vip)
		}
		port := 41001
		for !c.arrives(t, s.protocol, s.vip, port) { // until datapath flows of before the session end
			if port++; port == 43000 {
				t.Fatalf("%s %s: no packet from another port arrives", s.protocol, s.vip)
			}
		}
		if c.arrives(t, s.protocol, s.vip, 41000) {
			t.Errorf("%s %s: a packet from the first port arrives", s.protocol, s.vip)
		}
	}
	after := c.captured(t)
	for _, s := range services {
		backends := 2
		if s.vip == "10.96.0.11" {
			backends = 1
		}
		for _, userspace := range []bool{true, false} {
			for _, n := range before.nodes {
				n.Conntrack.Userspace = userspace
			}
			remark := "is dropped, while table 21 of br-int learns its session: this is about the packet as it is sent again"
			if userspace {
				remark = "this is about one that follows from another source port"
			}
			a := askService(t, before, "client", s.vip, s.protocol)
			if !arrivesAt(a, backends) || len(a.Remarks) != backends && len(a.Remarks) != 1 ||
				!strings.Contains(a.Remarks[0], remark) {
				t.Errorf("%s %s, userspace %v:\n%s", s.protocol, s.vip, userspace, text(a))
			}
		}
		if a := askService(t, after, "client", s.vip, s.protocol); !arrivesAt(a, 1) || len(a.Remarks) > 0 {
			t.Errorf("%s %s, after the session began:\n%s", s.protocol, s.vip, text(a))
		}
	}
	for _, n := range before.nodes {
		n.trust.Synthesised = true
	}
	if a := askService(t, before, "client", "10.96.0.11", "tcp"); !strings.Contains(strings.Join(a.Remarks, ""),
		"which clients have a session is not known of a synthesised switch") {
		t.Errorf("of a synthesised switch:\n%s", text(a))
	}
	for from, vip := range map[string]string{"client2": "10.96.0.20", "client": "10.96.0.12"} {
		if a := askService(t, before, from, vip, "tcp"); !arrivesAt(a, 1) || len(a.Remarks) != 1 {
			t.Errorf("%s to %s:\n%s", from, vip, text(a))
		}
	}
}

func askService(t *testing.T, s *Session, from, vip, protocol string) *answer.Answer {
	t.Helper()
	port := map[string]uint16{"tcp": 80, "udp": 53}[protocol]
	a, err := s.Ask(t.Context(), Between{From: from, To: vip, Question: names.Question{Protocol: protocol, DstPort: port}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestServiceWithSessionAffinityOnTheKernel has what two clients on a real kernel observed, one
// after the other (testdata/affinity/record.sh): a first TCP connection opens with the second
// SYN, the first UDP datagram is lost and the next one from the same port is answered; later
// connections are served at once, by the same backend.
func TestServiceWithSessionAffinityOnTheKernel(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "tar", "xz")
	folder := captures.Unpack(t, "testdata/affinity/node.tar.xz")
	backends := map[string]string{} // by protocol and address, of the first client
	observed := strings.Split(strings.TrimSpace(files.Read(t, filepath.Join(folder, "clients"))), "\n")
	for i, line := range observed {
		words := strings.Fields(line) // tcp VIP from PORT opens after 1.10 s at BACKEND, udp VIP from PORT datagram 1 is lost
		service, first := words[0]+" "+words[1], words[3] != "41001" && words[3] != "41011"
		seconds, _ := strconv.ParseFloat(words[6], 64)
		switch last := words[len(words)-1]; {
		case words[0] == "tcp" && first != (seconds >= 1), words[0] == "udp" &&
			(first && words[5] == "1") != (last == "lost"):
			t.Errorf("the kernel did not do what is said of it: %s", line)
		case last != "lost" && i < len(observed)/2:
			if backends[service] != "" && backends[service] != last {
				t.Errorf("%s: served by %s too", line, backends[service])
			}
			backends[service] = last
		}
	}
	before, after := adopted(t, filepath.Join(folder, "before")), adopted(t, filepath.Join(folder, "after"))
	expect.Equal(t, len(backends), 5, "services", backends)
	for service, backend := range backends {
		protocol, vip, _ := strings.Cut(service, " ")
		count := 2
		if vip == "10.96.0.11" {
			count = 1
		}
		for _, q := range []struct {
			session *Session
			from    string
		}{{before, "client"}, {after, "other"}} {
			if a := askService(t, q.session, q.from, vip, protocol); !arrivesAt(a, count) ||
				!strings.HasSuffix(strings.Join(a.Remarks, " "), "this is about the packet as it is sent again") {
				t.Errorf("a first packet of %s to %s:\n%s", q.from, service, text(a))
			}
		}
		if a := askService(t, after, "client", vip, protocol); !arrivesAt(a, 1) || len(a.Remarks) > 0 ||
			a.Outcomes[0].Port != backend {
			t.Errorf("client to %s, which %s serves:\n%s", service, backend, text(a))
		}
	}
}

// arrivesAt reports whether a packet arrives at each of a number of ports, and a reply to it.
func arrivesAt(a *answer.Answer, ports int) bool {
	var found []string
	for _, o := range a.Outcomes {
		if o.Destination && !slices.Contains(found, o.Port) {
			found = append(found, o.Port)
		}
	}
	return a.Verdict == answer.Reachable && len(found) == ports && a.Return != nil && a.Return.Verdict == answer.Reachable
}
