package openflow

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const vswitchSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// ovs is a real ovs-vswitchd whose datapath and ports are dummies, with one bridge.
type ovs struct{ dir string }

// startSwitch starts one for a test, or skips it where Open vSwitch is not
// installed. It ends with the test.
func startSwitch(t *testing.T) *ovs {
	t.Helper()
	for _, tool := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	if _, err := os.Stat(vswitchSchema); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "sw") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &ovs{dir}
	s.must(t, "ovsdb-tool", "create", dir+"/conf.db", vswitchSchema)
	s.daemon(t, "ovsdb-server", dir+"/conf.db", "--remote=punix:"+dir+"/db.sock", "--unixctl="+dir+"/d.ctl", "-vconsole:off", "-vsyslog:off")
	waitFor(t, dir+"/db.sock")
	s.must(t, "ovs-vsctl", "--no-wait", "init")
	s.daemon(t, "ovs-vswitchd", "unix:"+dir+"/db.sock", "--enable-dummy=override", "--disable-system", "--unixctl="+dir+"/v.ctl", "-vconsole:off", "-vsyslog:off")
	s.must(t, strings.Fields("ovs-vsctl -t 20 add-br br0 -- set bridge br0 datapath_type=dummy fail_mode=secure protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15 "+
		"-- add-port br0 p1 -- set interface p1 type=dummy ofport_request=1 -- add-port br0 p2 -- set interface p2 type=dummy ofport_request=2")...)
	waitFor(t, dir+"/br0.mgmt")
	return s
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for range 2000 {
		// A socket exists before a program listens on it.
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no program listens on %s", path)
}

func (s *ovs) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_DBDIR="+s.dir)
}

func (s *ovs) daemon(t *testing.T, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", argv[0], err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

func (s *ovs) run(t *testing.T, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = s.env()
	if argv[0] == "ovs-vsctl" {
		cmd.Env = append(cmd.Env, "OVS_DB=unix:"+s.dir+"/db.sock")
		cmd.Args = append([]string{argv[0], "--db=unix:" + s.dir + "/db.sock"}, argv[1:]...)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return string(out), err
}

func (s *ovs) must(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := s.run(t, argv...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return out
}

// add adds a flow or says why it can't be.
func (s *ovs) add(t *testing.T, version, flow string) error {
	t.Helper()
	_, err := s.run(t, "ovs-ofctl", "-O", version, "add-flow", "br0", flow)
	return err
}

// addAll adds flows, all at once where that goes, and says which can't be added.
func (s *ovs) addAll(t *testing.T, flows []string) map[string]error {
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

// print is what ovs-ofctl itself prints of the one flow of the switch.
func (s *ovs) print(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "--no-stats", "dump-flows", "br0"))
}

func (s *ovs) clear(t *testing.T) {
	t.Helper()
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "del-flows", "br0")
}

// flows reads back what the switch has, by this package's own reader.
func (s *ovs) flows(t *testing.T, version string) []string {
	t.Helper()
	flows, problems := allFlows(strings.NewReader(s.must(t, "ovs-ofctl", "-O", version, "dump-flows", "br0")))
	for _, p := range problems {
		t.Errorf("a dump of the switch itself can't be read: %v", p)
	}
	return texts(flows)
}

// version is the switch's, "3.1.0".
func (s *ovs) version(t *testing.T) string {
	t.Helper()
	words := strings.Fields(s.must(t, "ovs-ofctl", "--version"))
	if len(words) < 4 {
		t.Fatal(words)
	}
	return words[3]
}

// TestMetersOfARealSwitch adds meters again from their dump, those with names too.
func TestMetersOfARealSwitch(t *testing.T) {
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
		if len(problems) > 0 {
			t.Errorf("%v", problems)
		}
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
		s.run(t, "ovs-ofctl", "-O", "OpenFlow15", "del-meter", "br0", "meter="+name) // del-meters leaves these in some versions
	}
	for _, text := range first {
		s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-meter", "br0", text)
	}
	if again := read(); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("%v became %v", first, again)
	}
}

// TestGroupsOfARealSwitch adds groups again from their dump.
func TestGroupsOfARealSwitch(t *testing.T) {
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

// TestTLVMapOfARealSwitch maps class 0 too, which ovs-ofctl prints as "0".
func TestTLVMapOfARealSwitch(t *testing.T) {
	s := startSwitch(t)
	s.must(t, "ovs-ofctl", "-O", "OpenFlow15", "add-tlv-map", "br0", "{class=0xffff,type=0,len=4}->tun_metadata0,{class=0,type=0x80,len=124}->tun_metadata63,{class=0x102,type=0xff,len=8}->tun_metadata9")
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

func TestShowOfARealSwitch(t *testing.T) {
	s := startSwitch(t)
	s.must(t, "ovs-vsctl", "add-port", "br0", "a(1): b", "--", "set", "interface", "a(1): b", "type=dummy", "ofport_request=9")
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
		if len(d.DatapathID) != 16 || names[1] != "p1" || names[2] != "p2" || names[9] != "a(1): b" || names[PortLocal] != "br0" || len(names) != 4 {
			t.Errorf("%s: %+v", version, d)
		}
	}
}
