package compare_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/compare"
	"ovs-offline/workdir"
)

// reported is what a version of sos records of a node, other than captures of the lab.
type reported struct {
	version  string   // of OpenFlow
	options  []string // of dump-flows
	ovn      bool     // the OVN databases
	noMeters bool
}

// captureAs writes the workdirs of all nodes as a version of sos records them.
func (l *lab) captureAs(r reported) string {
	l.tb.Helper()
	folder := l.capture()
	for name, s := range l.nodes {
		wd, err := workdir.Find(filepath.Join(folder, name))
		if err != nil {
			l.tb.Fatal(err)
		}
		if !r.ovn {
			l.remove(wd.Database(workdir.NB), wd.Database(workdir.SB))
		}
		for _, bridge := range strings.Fields(s.Vsctl("list-br")) {
			l.write(wd.DumpFile(bridge, workdir.Flows),
				s.Ofctl(append([]string{"-O", r.version}, append(r.options, "dump-flows", bridge)...)...))
			l.write(wd.DumpFile(bridge, workdir.Groups), s.Ofctl("-O", r.version, "dump-groups", bridge))
			if r.noMeters {
				l.remove(wd.DumpFile(bridge, workdir.Meters))
			}
		}
	}
	return folder
}

func (l *lab) remove(paths ...string) {
	l.tb.Helper()
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			l.tb.Fatal(err)
		}
	}
}

// TestReportsOfTwoVersionsOfSosNameOnlyWhatChanged compares reports as old versions of sos
// write them (without OVN databases, without meters, in OpenFlow 1.0 or 1.3, with names) with
// one of a new version: first without a change, then after each of two flows changed.
func TestReportsOfTwoVersionsOfSosNameOnlyWhatChanged(t *testing.T) {
	l := newLab(t)
	l.nb(`meter-add logs drop 10 pktps 5
		set Meter logs fair=false
		acl-add blue to-lport 1100 "ip4.src == 10.0.7.7" drop
		-- --log --meter=logs --name=logged acl-add blue to-lport 1101 "ip4.src == 10.0.7.8" drop`)
	l.settle()
	one := l.nodes["compute1"]
	one.Ofctl("-O", "OpenFlow15", "add-flow", "br-ex",
		"priority=5,tcp,actions=push_vlan:0x8100,set_field:4101->vlan_vid,set_field:10.0.0.1->ip_src,set_field:0x204/0xf0f->reg0,output:1")
	reports := map[string]reported{
		"OpenFlow 1.0":                              {version: "OpenFlow10", ovn: true},
		"OpenFlow 1.3":                              {version: "OpenFlow13", ovn: true},
		"OpenFlow 1.5, with names":                  {version: "OpenFlow15", options: []string{"--names"}, ovn: true},
		"OpenFlow 1.3 without databases and meters": {version: "OpenFlow13", noMeters: true},
		"OpenFlow 1.0 without databases and meters": {version: "OpenFlow10", noMeters: true},
	}
	folders := map[string]string{}
	for name, r := range reports {
		folders[name] = l.captureAs(r)
	}
	same := l.capture()
	one.Ofctl("-O", "OpenFlow15", "mod-flows", "br-ex",
		"priority=5,tcp,actions=push_vlan:0x8100,set_field:4101->vlan_vid,set_field:10.0.0.1->ip_src,set_field:0x205/0xf0f->reg0,output:1")
	one.Ofctl("-O", "OpenFlow15", "--strict", "del-flows", "br-int", "table=0,priority=100,in_port=tap-vm1")
	changed := l.capture()
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			c := compared(t, folder, same)
			if show(t, c); !c.Same {
				t.Errorf("%d findings where nothing changed", len(c.Findings))
			}
			c = compared(t, folder, changed)
			if show(t, c); len(c.Findings) != 2 || !slices.ContainsFunc(c.Findings, func(f compare.Finding) bool {
				return f.Change == compare.Changed && strings.Contains(f.Name, "br-ex") &&
					strings.Contains(f.Line(), "0x204/0xf0f->reg0") && strings.Contains(f.Line(), "0x205/0xf0f->reg0")
			}) || !slices.ContainsFunc(c.Findings, func(f compare.Finding) bool {
				return f.Change == compare.Gone && strings.Contains(f.Name, "br-int") &&
					strings.Contains(f.Line(), "in_port=tap-vm1")
			}) {
				t.Errorf("%d findings, want the changed flow of br-ex and the removed one of br-int", len(c.Findings))
			}
		})
	}
}
