package flows

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/show"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/running"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestDatapathFlowsOfSetsAreCurrent replays the datapath flows of the lab's nodes, which
// real packets made: through conntrack, NAT, tunnels, floods and checks of lengths.
func TestDatapathFlowsOfSetsAreCurrent(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "ovn-northd", "ovn-controller", "ovn-nbctl", "unshare", "xz")
	for _, name := range []string{"openstack", "kubernetes-ic", "neutron-ovs"} {
		t.Run(name, func(t *testing.T) {
			s := sets.Recorded(t, "../../scripts/lab/lab", name)
			nodes := running.Of(t, s)
			var sources []Source
			recorded := 0
			for _, node := range s.Nodes {
				wd := nodes.Replicas[node].Workdir
				sources = append(sources, Source{node, wd})
				raw, err := os.ReadFile(wd.Recorded(workdir.RecordedDatapathFlows))
				if err != nil {
					t.Fatal(err)
				}
				recorded += strings.Count(string(raw), "ufid:")
			}
			clean(t, sources, recorded)
		})
	}
}

func clean(t *testing.T, sources []Source, recorded int) {
	t.Helper()
	r, err := Replay(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d flows of the datapath", recorded)
	if recorded == 0 || r.Current+r.Flapping != recorded || r.Stale+r.Untraced+r.Lost > 0 {
		t.Errorf("%d current, %d flapping, %d stale, %d untraced and %d lost of %d", r.Current, r.Flapping, r.Stale,
			r.Untraced, r.Lost, recorded)
	}
	for _, m := range r.Flows {
		if m.State == Flapping && isSpoofed(m) {
			t.Logf("flapping: %s\n%v", m.Match, m.Unwildcards)
			continue
		}
		if m.State != Current {
			t.Errorf("%s: %s\nrecorded %s\nnow      %s\n%s", m.State, m.Text, m.Actions, m.Now, m.Why)
		}
	}
}

// isSpoofed reports whether a flow flaps as on the switch of TestFlappingFlowIsNamedWithItsRule: the rules of
// port security and of the Open vSwitch agent against spoofed neighbour discovery are compared with every
// message of ICMPv6.
func isSpoofed(m Megaflow) bool {
	return slices.Equal(m.Lacking, []string{"nd_target"}) && strings.Contains(m.Text, "icmpv6(") &&
		!strings.Contains(m.Text, "icmpv6(type=135") && len(m.Unwildcards) > 0
}

// TestDatapathFlowsOfCapturesAreCurrent replays those of nodes with BFD, slow paths, and
// interfaces whose names begin like numbers.
func TestDatapathFlowsOfCapturesAreCurrent(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	for name, recorded := range map[string]int{"ovn-openstack-compute": 2, "ovn-kubernetes-worker": 5} {
		clean(t, []Source{{Dir: fidelity.Started(t,
			collected.Report(t, captures.Report(t, "captures/"+name)).Path()).Workdir}}, recorded)
	}
}

// TestStaleDatapathFlowsAreNamed records a live switch whose datapath flows are not
// revalidated any more, after ten of twenty OpenFlow flows were changed.
func TestStaleDatapathFlowsAreNamed(t *testing.T) {
	const all, changed = 20, 10
	live := ovs.Start(t, "--enable-dummy=override")
	live.Vsctl("add-br", "br0", "--", "set", "Bridge", "br0", "datapath_type=dummy", "fail_mode=secure",
		"--", "set", "Open_vSwitch", ".", "other_config:max-idle=600000")
	port := func(i int) string { return fmt.Sprintf("p%d", i) }
	rule := func(i, out int) string {
		return fmt.Sprintf("priority=10,in_port=%d,ip,nw_dst=10.0.0.%d,actions=mod_dl_src:02:00:00:00:00:%02x,output:%d", i,
			i, i, out)
	}
	for i := 1; i <= all; i++ {
		live.Vsctl("add-port", "br0", port(i), "--", "set", "Interface", port(i), "type=dummy",
			fmt.Sprintf("ofport_request=%d", i))
		live.Ofctl("add-flow", "br0", rule(i, i%all+1))
	}
	for i := 1; i <= all; i++ {
		packet := fmt.Sprintf("in_port(%d),eth(src=02:00:00:00:01:%02x,dst=02:00:00:00:02:%02x),eth_type(0x0800),ipv4(src=10.0.1.%d,dst=10.0.0.%d,proto=17,tos=0,ttl=64,frag=no),udp(src=1000,dst=2000)", i, i, i, i, i)
		for range 3 {
			live.Appctl("netdev-dummy/receive", port(i), packet)
		}
	}
	live.Appctl("revalidator/pause")
	var want []string
	for i := 1; i <= all; i += all / changed {
		want = append(want, port(i))
		live.Ofctl("mod-flows", "br0", rule(i, i%all+2-all*((i%all+1)/all)))
	}
	wd := byHand(t, live)
	live.Appctl("revalidator/resume")
	r, err := Replay(t.Context(), []Source{{Dir: fidelity.Started(t, wd.Path()).Workdir}})
	if err != nil {
		t.Fatal(err)
	}
	var stale []string
	for _, m := range r.Flows {
		if m.State == Stale {
			stale = append(stale, m.From)
			if m.Now == m.Actions || !strings.HasPrefix(m.Now, "set(eth(src=02:00:00:00:00:") || m.End != "br0 table 0" {
				t.Errorf("%+v", m)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(stale)
	t.Logf("stale: %v", stale)
	if len(want) != changed || !slices.Equal(stale, want) || r.Current != all-changed || r.Untraced+r.Lost > 0 {
		t.Errorf("stale: %v, want %v; %d current, %d untraced, %d lost", stale, want, r.Current, r.Untraced, r.Lost)
	}
}

// TestTimeBetweenFlowsAndTheirDatapathIsSaid checks the remark about dumps that a report took one
// after the other.
func TestTimeBetweenFlowsAndTheirDatapathIsSaid(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "xz")
	wd := collected.Report(t, captures.Report(t, "captures/ovn-openstack-compute"))
	manifest, err := wd.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 11, 21, 14, 2, 5, 0, time.UTC)
	for i, file := range manifest.Collections[0].Files {
		switch filepath.Base(file.Path) {
		case "br-int.flows.dump":
			manifest.Collections[0].Files[i].Recorded = began
		case workdir.RecordedDatapathFlows:
			manifest.Collections[0].Files[i].Recorded = began.Add(26 * time.Second)
		}
	}
	if err := workdir.WriteJSON(filepath.Join(wd.Path(), "manifest.json"), manifest); err != nil {
		t.Fatal(err)
	}
	started := fidelity.Started(t, wd.Path())
	r, err := Replay(t.Context(), []Source{{Dir: started.Workdir}})
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, r.Remarks, []string{"the flows of the datapath were recorded 26 s after the flows of br-int: what changed in between is among the stale ones"}, "the remarks")
	var text bytes.Buffer
	started.Report.Print(&show.Page{Out: &text, Err: io.Discard})
	if want := "Recorded on 2026-11-21 within 26 s (UTC): flows of br-int 14:02:05, datapath flows 14:02:31\n"; !strings.Contains(text.String(), want) {
		t.Errorf("the report has no %q:\n%s", want, text.String())
	}
}

// byHand records a live switch in a workdir, as a person would.
func byHand(t *testing.T, live *ovs.Switch) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(ovs.Dir(t), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	raw, err := os.ReadFile(filepath.Join(live.Dir, "conf.db"))
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, wd.Database(workdir.OVS), string(raw))
	files.Write(t, wd.DumpFile("br0", workdir.Flows), live.Ofctl("-O", "OpenFlow15", "dump-flows", "br0"))
	files.Write(t, wd.BridgeRecorded("br0", workdir.RecordedShow), live.Ofctl("show", "br0"))
	files.Write(t, wd.Recorded(workdir.RecordedDpifShow), live.Appctl("dpif/show"))
	files.Write(t, wd.Recorded(workdir.RecordedDatapathFlows), live.Appctl("dpctl/dump-flows", "-m", "dummy@ovs-dummy"))
	return wd
}
