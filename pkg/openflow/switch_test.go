package openflow

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// testSwitch is a real ovs-vswitchd with one bridge, br0, and its ports p1 and p2.
type testSwitch struct{ *ovs.Switch }

func startSwitch(t *testing.T) testSwitch {
	t.Helper()
	s := testSwitch{ovs.Start(t, "--enable-dummy=override", "--disable-system")}
	s.Vsctl(strings.Fields("add-br br0 -- set bridge br0 datapath_type=dummy fail_mode=secure protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15 " +
		"-- add-port br0 p1 -- set interface p1 type=dummy ofport_request=1 -- add-port br0 p2 -- set interface p2 type=dummy ofport_request=2")...)
	return s
}

func (s testSwitch) run(_ *testing.T, argv ...string) (string, error) { return s.Try(argv...) }

func (s testSwitch) must(t *testing.T, argv ...string) string {
	t.Helper()
	return s.Run(argv...)
}

// add adds a flow.
func (s testSwitch) add(t *testing.T, version, flow string) error {
	t.Helper()
	_, err := s.run(t, "ovs-ofctl", "-O", version, "add-flow", "br0", flow)
	return err
}

// addAll adds flows, in one bundle where the switch accepts that, and returns the
// errors of the flows that it rejects.
func (s testSwitch) addAll(t *testing.T, flows []string) map[string]error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flows")
	if err := os.WriteFile(path, []byte(strings.Join(flows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := map[string]error{}
	if _, err := s.run(t, "ovs-ofctl", "-O", "OpenFlow15", "--bundle", "add-flows", "br0", path); err == nil {
		return failed
	}
	for _, flow := range flows {
		if err := s.add(t, "OpenFlow15", flow); err != nil {
			failed[flow] = err
		}
	}
	return failed
}

// print returns what ovs-ofctl prints for the only flow of the switch.
func (s testSwitch) print(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "--no-stats", "dump-flows", "br0"))
}

func (s testSwitch) clear(t *testing.T) {
	t.Helper()
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "del-flows", "br0")
}

// flows reads the switch's flows with this package's own reader.
func (s testSwitch) flows(t *testing.T, version string) []string {
	t.Helper()
	flows, problems := allFlows(strings.NewReader(s.must(t, "ovs-ofctl", "-O", version, "dump-flows", "br0")))
	for _, p := range problems {
		t.Errorf("a dump of a real switch can't be read: %v", p)
	}
	return texts(flows)
}

// version returns the version of Open vSwitch, such as "3.1.0".
func (s testSwitch) version(t *testing.T) string {
	t.Helper()
	words := strings.Fields(s.must(t, "ovs-ofctl", "--version"))
	if len(words) < 4 {
		t.Fatal(words)
	}
	return words[3]
}

// TestMetersRoundTrip adds meters from their own dump, including those with names.
func TestMetersRoundTrip(t *testing.T) {
	s := startSwitch(t)
	added := []string{
		"meter=1 kbps bands=type=drop rate=1",
		"meter=2 pktps burst stats bands=type=drop rate=100 burst_size=5",
		"meter=controller pktps bands=type=drop rate=100",
		"meter=slowpath kbps bands=type=drop rate=7",
	}
	for _, text := range added {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-meter", "br0", text)
	}
	read := func() map[uint32]string {
		meters, problems := Meters(strings.NewReader(s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "dump-meters", "br0")))
		expect.Equal(t, problems, nil)
		byID := map[uint32]string{}
		for _, m := range meters {
			byID[m.ID] = m.Text
		}
		return byID
	}
	first := read()
	if len(first) != len(added) || first[0xfffffffe] == "" || first[0xfffffffd] == "" {
		t.Fatalf("read: %v", first)
	}
	ages := MeterAges(strings.NewReader(s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "meter-stats", "br0")))
	if len(ages) != len(added) {
		t.Errorf("ages of %v", ages)
	}
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "del-meters", "br0")
	for _, name := range []string{"controller", "slowpath"} {
		s.run(t, "ovs-ofctl", "-O", "OpenFlow15", "del-meter", "br0",
			"meter="+name) // del-meters leaves these in some versions
	}
	for _, text := range first {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-meter", "br0", text)
	}
	if again := read(); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("%v became %v", first, again)
	}
}

// TestGroupsRoundTrip adds groups from their own dump.
func TestGroupsRoundTrip(t *testing.T) {
	s := startSwitch(t)
	for _, text := range []string{
		"group_id=1,type=all", "group_id=2,type=indirect,bucket=actions=output:1",
		"group_id=3,type=select,selection_method=hash,fields(ip_src,ip_dst),bucket=bucket_id:7,weight:100,actions=output:1,bucket=bucket_id:9,weight:50,actions=ct(commit,zone=5,nat(dst=10.0.0.1:80),exec(set_field:0x2/0x2->ct_mark)),output:2",
		"group_id=4,type=select,selection_method=dp_hash,selection_method_param=5,bucket=output:1,bucket=output:2",
		"group_id=5,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:2,actions=output:2",
		"group_id=6,type=select,selection_method=hash,fields(ip_src=255.255.255.0,tcp_dst),bucket=output:1",
		"group_id=4294967040,type=all,bucket=set_field:26->ip_dscp,output:1",
	} {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-group", "br0", text)
	}
	dump := s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "dump-groups", "br0")
	groups, problems := Groups(strings.NewReader(dump))
	if len(groups) != 7 || len(problems) > 0 {
		t.Fatalf("%v %v\n%s", groups, problems, dump)
	}
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "del-groups", "br0")
	var all strings.Builder
	for _, g := range groups {
		text, _ := Rewrite(g.Text)
		all.WriteString(text + "\n")
	}
	path := filepath.Join(t.TempDir(), "groups")
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "--bundle", "add-groups", "br0", path)
	again, _ := Groups(strings.NewReader(s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "dump-groups", "br0")))
	byID := func(list []Entry) map[uint32]string {
		m := map[uint32]string{}
		for _, e := range list {
			m[e.ID] = e.Text
		}
		return m
	}
	if fmt.Sprint(byID(again)) != fmt.Sprint(byID(groups)) {
		t.Errorf("%v\nbecame\n%v", groups, again)
	}
}

// TestTLVMapRoundTrip includes class 0, which ovs-ofctl prints as "0".
func TestTLVMapRoundTrip(t *testing.T) {
	s := startSwitch(t)
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-tlv-map", "br0",
		"{class=0xffff,type=0,len=4}->tun_metadata0,{class=0,type=0x80,len=124}->tun_metadata63,{class=0x102,type=0xff,len=8}->tun_metadata9")
	read := func() []Entry {
		list, problems := TLVMap(strings.NewReader(s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "dump-tlv-map", "br0")))
		if len(list) != 3 || len(problems) > 0 {
			t.Fatalf("%v %v", list, problems)
		}
		return list
	}
	first := read()
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "del-tlv-map", "br0")
	for _, e := range first {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-tlv-map", "br0", e.Text)
	}
	if again := read(); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("%v became %v", first, again)
	}
}

// TestShowReadsEveryVersion reads ovs-ofctl show as each OpenFlow version prints it.
func TestShowReadsEveryVersion(t *testing.T) {
	s := startSwitch(t)
	s.must(t, "ovs-vsctl", "add-port", "br0", "a(1): b", "--", "set", "interface", "a(1): b", "type=dummy",
		"ofport_request=9")
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "mod-port", "br0", "9", "no-forward")
	for _, version := range []string{"OpenFlow10", "OpenFlow13", "OpenFlow15"} {
		d := Show(strings.NewReader(s.must(t, "ovs-ofctl", "-O", version, "show", "br0")))
		names := map[int]string{}
		for _, p := range d.Ports {
			names[p.Number] = p.Name
			if p.Number == 9 && fmt.Sprint(p.Config) != "[NO_FWD]" {
				t.Errorf("%s: %+v", version, p)
			}
		}
		if len(d.DatapathID) != 16 || names[1] != "p1" || names[2] != "p2" || names[9] != "a(1): b" ||
			names[PortLocal] != "br0" || len(names) != 4 {
			t.Errorf("%s: %+v", version, d)
		}
	}
}
