package lab_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/fault"
	"ovs-offline/replica"
	"ovs-offline/replica/choose"
	"ovs-offline/replica/lab"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// build carries out the commands of a text in a new workdir.
func build(t *testing.T, text string) (*workdir.Dir, *workdir.Built) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "unshare")
	if isolated, why := process.New(process.Options{}).Isolated(t.Context()); !isolated {
		t.Skip(why)
	}
	wd, err := workdir.Lock(filepath.Join(ovs.Dir(t), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	built, err := lab.Build(t.Context(), wd, ticket.ReadTyped(text), options())
	if err != nil {
		t.Fatalf("%v: %+v", err, built)
	}
	if _, err := os.Stat(filepath.Join(wd.Path(), ".scratch")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a scratch folder is left: %v", err)
	}
	return wd, built
}

func options() lab.Options {
	return lab.Options{Name: "ticket.md", Runtime: choose.Process, Version: "test", Progress: func(string) {}}
}

// start starts a replica of a workdir until the test ends, and returns what asks its ovs-vswitchd.
func start(t *testing.T, wd *workdir.Dir) func(argv ...string) string {
	t.Helper()
	rt := process.New(process.Options{Folders: wd.RuntimeFolders()})
	if _, err := replica.Start(t.Context(), wd, rt, replica.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(context.WithoutCancel(t.Context()), wd, rt); err != nil {
			t.Error(err)
		}
	})
	return func(argv ...string) string { return tool(t, rt, wd, argv...) }
}

func tool(t *testing.T, rt runtime.Runtime, wd *workdir.Dir, argv ...string) string {
	t.Helper()
	out, err := rt.Tool(t.Context(), wd.VarRun(workdir.OVS), nil, argv...)
	if err != nil {
		t.Error(err)
	}
	return string(out)
}

// TestTracesAreThoseOfASwitchMadeByHand checks that ofproto/trace says in the replica of a lab what it says in an
// ovs-vswitchd on which somebody has run the commands of the text.
func TestTracesAreThoseOfASwitchMadeByHand(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		byHand [][]string
		flows  []string
	}{
		"a guide": {
			"First make a bridge with `fail_mode=secure`:\n\n```\n$ sudo ovs-vsctl --may-exist add-br br0 -- set bridge br0 fail-mode=secure\n" +
				"$ sudo ovs-vsctl add-port br0 p1 -- set interface p1 type=internal ofport_request=11 && sudo ovs-vsctl add-port br0 p2 \\\n    -- set interface p2 ofport_request=12\n" +
				"$ ovs-ofctl add-flow br0 \"table=0,priority=10,in_port=11,actions=resubmit(,1)\"\n" +
				"$ ovs-ofctl add-flows br0 - <<EOF\n# a comment\ntable=1,ip,nw_dst=10.0.0.0/24 actions=set_field:5->reg1,dec_ttl,output:12\ntable=1,priority=1 actions=drop\nEOF\n```\n\n" +
				"Then `ovs-ofctl dump-flows br0` prints 3 flows, and I ran ovs-vsctl del-br br0 in the end.\n",
			[][]string{
				{"ovs-vsctl", "add-br", "br0", "--", "set", "bridge", "br0", "fail-mode=secure"},
				{"ovs-vsctl", "add-port", "br0", "p1", "--", "set", "interface", "p1", "ofport_request=11"},
				{"ovs-vsctl", "add-port", "br0", "p2", "--", "set", "interface", "p2", "ofport_request=12"},
				{"ovs-ofctl", "add-flow", "br0", "table=0,priority=10,in_port=11,actions=resubmit(,1)"},
				{"ovs-ofctl", "add-flow", "br0", "table=1,ip,nw_dst=10.0.0.0/24 actions=set_field:5->reg1,dec_ttl,output:12"},
				{"ovs-ofctl", "add-flow", "br0", "table=1,priority=1 actions=drop"},
			},
			[]string{"br0 in_port=11,ip,nw_dst=10.0.0.9,nw_ttl=64", "br0 in_port=11,ip,nw_dst=10.0.1.9", "br0 in_port=12,arp"},
		},
		"root's prompts, groups and patch ports": {
			"[root@n1 ~]# ovs-vsctl add-br br-a\n[root@n1 ~]# ovs-vsctl add-br br-b\n[root@n1 ~]# ovs-vsctl add-port br-a pa -- set interface pa type=patch options:peer=pb\n" +
				"[root@n1 ~]# ovs-vsctl add-port br-b pb -- set interface pb type=patch 'options={peer=pa}'\n[root@n1 ~]# ovs-vsctl add-port br-a x tag=7\n[root@n1 ~]# ovs-vsctl add-port br-b y\n" +
				"[root@n1 ~]# ovs-vsctl add-port br-b v0 tag=9 -- set interface v0 type=dpdkvhostuserclient options:vhost-server-path=/tmp/v0\n" +
				"[root@n1 ~]# ovs-ofctl -O OpenFlow13 add-group br-b 'group_id=4,type=all,bucket=output:y,bucket=set_field:99->tun_id,output:v0'\n" +
				"[root@n1 ~]# ovs-ofctl -O OpenFlow13 add-flow br-b in_port=pb,actions=group:4\n[root@n1 ~]# ovs-ofctl dump-flows br-b\n cookie=0x0, duration=1s, table=0, n_packets=0, n_bytes=0, priority=0 actions=NORMAL\n",
			[][]string{
				{"ovs-vsctl", "add-br", "br-a"}, {"ovs-vsctl", "add-br", "br-b"},
				{"ovs-vsctl", "add-port", "br-a", "pa", "--", "set", "interface", "pa", "type=patch", "options:peer=pb"},
				{"ovs-vsctl", "add-port", "br-b", "pb", "--", "set", "interface", "pb", "type=patch", "options:peer=pa"},
				{"ovs-vsctl", "add-port", "br-a", "x", "tag=7"}, {"ovs-vsctl", "add-port", "br-b", "y"},
				{"ovs-vsctl", "add-port", "br-b", "v0", "tag=9"},
				{"ovs-ofctl", "-O", "OpenFlow13", "add-group", "br-b",
					"group_id=4,type=all,bucket=output:y,bucket=set_field:99->tun_id,output:v0"},
				{"ovs-ofctl", "-O", "OpenFlow13", "add-flow", "br-b", "in_port=pb,actions=group:4"},
			},
			[]string{"br-a in_port=x,dl_src=00:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff,arp", "br-b in_port=y,icmp"},
		},
		"what comes later counts": {
			"#!/bin/sh\nset -e\novs-vsctl add-br br0\novs-vsctl add-port br0 a\novs-vsctl add-port br0 b\novs-vsctl add-port br0 c\n" +
				"ovs-ofctl add-flow br0 in_port=a,actions=b\n# ovs-ofctl add-flow br0 in_port=a,priority=65000,actions=drop\novs-ofctl add-flow br0 in_port=a,tcp,actions=c\n" +
				"ovs-ofctl --strict mod-flows br0 in_port=a,tcp,actions=IN_PORT\novs-ofctl del-flows br0 udp\novs-vsctl del-port br0 c\novs-ofctl mod-port br0 b down\n" +
				"ovs-ofctl -O OpenFlow13 add-meter br0 meter=1,kbps,band=type=drop,rate=100\novs-ofctl -O OpenFlow13 add-flow br0 in_port=b,actions=meter:1,a\n",
			[][]string{
				{"ovs-vsctl", "add-br", "br0"}, {"ovs-vsctl", "add-port", "br0", "a"}, {"ovs-vsctl", "add-port", "br0", "b"},
				{"ovs-vsctl", "add-port", "br0", "c"},
				{"ovs-ofctl", "add-flow", "br0", "in_port=a,actions=b"},
				{"ovs-ofctl", "add-flow", "br0", "in_port=a,tcp,actions=c"},
				{"ovs-ofctl", "--strict", "mod-flows", "br0", "in_port=a,tcp,actions=IN_PORT"},
				{"ovs-ofctl", "del-flows", "br0", "udp"},
				{"ovs-vsctl", "del-port", "br0", "c"}, {"ovs-ofctl", "mod-port", "br0", "b", "down"},
				{"ovs-ofctl", "-O", "OpenFlow13", "add-meter", "br0", "meter=1,kbps,band=type=drop,rate=100"},
				{"ovs-ofctl", "-O", "OpenFlow13", "add-flow", "br0", "in_port=b,actions=meter:1,a"},
			},
			[]string{"br0 in_port=a,tcp", "br0 in_port=a,icmp", "br0 in_port=b,udp", "br0 in_port=LOCAL,arp"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wd, built := build(t, c.text)
			if len(built.Refused)+len(built.Failed) > 0 {
				t.Errorf("refused %v, failed %v", built.Refused, built.Failed)
			}
			ask := start(t, wd)
			s := ovs.Start(t)
			for _, argv := range c.byHand {
				s.Run(argv...)
			}
			for _, flow := range c.flows {
				bridge, flow, _ := strings.Cut(flow, " ")
				expect.Equal(t, plain(ask("ovs-appctl", "-t", "ovs-vswitchd", "ofproto/trace", bridge, flow)),
					plain(s.Appctl("ofproto/trace", bridge, flow)), flow)
			}
		})
	}
}

// plain returns a trace without the numbers that each datapath chooses for its ports.
func plain(trace string) string {
	lines := strings.Split(trace, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "Datapath actions: ") {
			lines[i] = datapathPort.ReplaceAllString(line, "PORT")
		}
	}
	return strings.Join(lines, "\n")
}

var datapathPort = regexp.MustCompile(`\b\d+\b`)

// TestFailedCommandsAreNamed checks that a tool's message is there for each command that failed, and that the others
// count.
func TestFailedCommandsAreNamed(t *testing.T) {
	wd, built := build(t, "ovs-vsctl add-br br0\novs-vsctl add-br br0\novs-ofctl add-flow br1 actions=drop\novs-ofctl add-flow br0 foo=1,actions=drop\novs-ofctl add-flow br0 actions=drop\novs-vsctl emer-reset\n"+
		"ovs-vsctl add-port br0 d0 -- set interface d0 type=dpdk options:dpdk-devargs=0000:01:00.0\n")
	expect.Equal(t, built.CarriedOut, 3, "commands carried out")
	var failed []string
	for _, f := range built.Failed {
		failed = append(failed, strings.Repeat(".", f.Line)+" "+f.Reason)
	}
	text := strings.Join(failed, "\n")
	for _, want := range []string{".. ovs-vsctl: cannot create a bridge named br0 because a bridge named br0 already exists", "... there is no bridge br1", ".... ovs-ofctl: foo"} {
		if !strings.Contains(text, want[:len(want)-len("foo")]) {
			t.Errorf("failed:\n%s\nwant %q", text, want)
		}
	}
	if len(built.Refused) != 1 || built.Refused[0].Line != 6 {
		t.Errorf("refused %v, want line 6", built.Refused)
	}
	manifest, err := wd.Manifest()
	if err != nil || manifest.Built() == nil || manifest.Built().Complete() {
		t.Errorf("the manifest has %+v, %v", manifest, err)
	}
	ask := start(t, wd)
	expect.Equal(t, strings.Contains(ask("ovs-ofctl", "dump-flows", "br0"), "actions=drop"), true, "the flow is there")
	recorded := tool(t, process.New(process.Options{Folders: wd.RuntimeFolders()}), wd, "ovs-vsctl",
		"--db=unix:"+wd.RecordedSocket(), "get", "Interface", "d0", "type", "options")
	expect.Equal(t, recorded, "dpdk\n{dpdk-devargs=\"0000:01:00.0\"}\n", "the recorded interface")

	if _, err := lab.Build(t.Context(), wd, ticket.ReadTyped("ovs-vsctl add-br br1"),
		options()); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "empty") {
		t.Errorf("a workdir with data: %v", err)
	}
}

// TestNothingToCarryOut checks texts without a command for a lab: nothing is installed.
func TestNothingToCarryOut(t *testing.T) {
	wd, err := workdir.Lock(filepath.Join(ovs.Dir(t), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	for _, text := range []string{"", "no command", "ovs-vsctl show\novs-ofctl dump-flows br0\n", "ovs-appctl exit\n",
		strings.Repeat("\x00\xff`$(", 1000)} {
		if _, err := lab.Build(t.Context(), wd, ticket.ReadTyped(text), options()); !errors.Is(err, lab.ErrNothing) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if entries, err := os.ReadDir(wd.Path()); err != nil || len(entries) > 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
