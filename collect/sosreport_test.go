package collect

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ovs-offline/sosreport"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/workdir"
)

// TestWorkdirOfARealReport checks that every file has its documented path and an entry
// in the manifest, and that its content is the report's byte for byte.
func TestWorkdirOfARealReport(t *testing.T) {
	for source, want := range map[string][]string{
		compute: {"db/ovs/conf.db", "db/ovn_nb/ovnnb_db.db", "db/ovn_sb/ovnsb_db.db",
			"restore_flows/br-int.flows.dump", "restore_flows/br-int.groups.dump", "restore_flows/br-int.meters.dump",
			"restore_flows/br-int.tlv.dump",
			"recorded/bfd.show", "recorded/ovs.route.show", "recorded/tnl.arp.show", "recorded/dpctl.dump-flows",
			"recorded/dpctl.dump-conntrack", "recorded/dpctl.show",
			"recorded/list-interface", "recorded/list-bridge", "recorded/list-open_vswitch", "recorded/ofproto.list-tunnels",
			"recorded/bridges/br-int/fdb.show", "recorded/bridges/br-int/dpif.show-dp-features", "recorded/bridges/br-int/show",
			"recorded/bridges/br-int/bridge.dump-flows", "recorded/bridges/br-int/mdb.show",
			"recorded/bridges/br-int/flows.OpenFlow14"},
		worker: {"restore_flows/br-int.flows.dump", "restore_flows/breth0.flows.dump", "restore_flows/breth0.meters.dump",
			"recorded/bridges/breth0/fdb.show",
			"recorded/bridges/br-int/meter-stats"},
	} {
		wd := newWorkdir(t)
		take(t, wd, source, both, Options{})
		m, err := wd.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]workdir.File{}
		for _, c := range m.Collections {
			abs, _ := filepath.Abs(source)
			if c.Source.Kind != "sos report" || c.Source.Name != abs || c.Host == "" || c.Collected.IsZero() {
				t.Errorf("%s: %+v", c.Kind, c.Source)
			}
			for _, f := range c.Files {
				if _, twice := known[f.Path]; twice {
					t.Errorf("%s twice", f.Path)
				}
				known[f.Path] = f
			}
		}
		for _, p := range want {
			if _, there := known[p]; !there {
				t.Errorf("%s: no %s", source, p)
			}
		}
		inArchive := members(t, source)
		for rel := range tree(t, wd.Path()) {
			info, err := os.Lstat(filepath.Join(wd.Path(), rel))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", rel, info.Mode())
			}
			if info.IsDir() || rel == "manifest.json" || rel == ".lock" {
				continue
			}
			f, ok := known[rel]
			if !ok {
				t.Errorf("the manifest does not know %s", rel)
				continue
			}
			raw := files.Read(t, filepath.Join(wd.Path(), rel))
			if f.Size != int64(len(raw)) || f.SHA256 != hash([]byte(raw)) {
				t.Errorf("%s: size or sum: %+v", rel, f)
			}
			if inArchive[f.Origin] != raw {
				t.Errorf("%s is not what the report has at %s", rel, f.Origin)
			}
			if strings.HasPrefix(rel, "restore_flows/") &&
				(f.OpenFlow != "OpenFlow15" || !strings.Contains(f.Origin, "OpenFlow15") || f.Bridge == "") {
				t.Errorf("%s: %+v", rel, f)
			}
			delete(known, rel)
		}
		if len(known) > 0 {
			t.Errorf("the manifest lists missing files: %v", known)
		}
	}
}

// members returns the files of a real archive, which it reads with tar.
func members(t *testing.T, source string) map[string]string {
	t.Helper()
	dir := captures.Unpack(t, source, "--strip-components=1")
	content := map[string]string{}
	for rel, what := range tree(t, dir) {
		if strings.HasPrefix(what, "-") {
			content[rel] = files.Read(t, filepath.Join(dir, rel))
		}
	}
	return content
}

// TestBestDumpIsRestored checks which of several dumps is restored, and the remark
// about it.
func TestBestDumpIsRestored(t *testing.T) {
	const (
		of10 = "ovs-ofctl_dump-flows_br0"
		of13 = "ovs-ofctl_-O_OpenFlow13_dump-flows_br0"
		of14 = "ovs-ofctl_-O_OpenFlow14_dump-flows_br0"
		of15 = "ovs-ofctl_-O_OpenFlow15_dump-flows_br0"
	)
	decodeError := flows("OF1.5", 2) + " ***decode error: OFPBMC_BAD_FIELD***\n00000000  06 13 00 58 00 00 00 02-00 01 00 00 00 00 00 00 |...X............|\n"
	tailed := func(name, body string) []member {
		real := "sos_strings/openvswitch/" + name + ".tailed"
		return []member{{name: plugin + name, target: "../../" + real}, {name: real, body: body}}
	}
	plain := func(name, body string) []member { return []member{{name: plugin + name, body: body}} }
	headless := strings.SplitAfterN(flows("OF1.5", 9), "\n", 2)[1]
	cutStart := "ytes=0, priority=1,ip actions=drop\n" + headless
	cutBetween := strings.SplitAfterN(headless, "\n", 2)[1]
	for _, c := range []struct {
		what    string
		dumps   [][]member
		version string // "" for no flows at all
		entries int
		remark  string // "" for none
	}{
		{"all are good", [][]member{plain(of10, flows("", 3)), plain(of14, flows("OF1.4", 3)),
			plain(of15, flows("OF1.5", 3))}, "OpenFlow15", 3, ""},
		{"no 1.5", [][]member{plain(of10, flows("", 3)), plain(of13, flows("OF1.3", 3)), plain(of14, flows("OF1.4", 3))},
			"OpenFlow14", 3, ""},
		{"a decode error in 1.5", [][]member{plain(of14, flows("OF1.4", 3)), plain(of15, decodeError)}, "OpenFlow14", 3, ""},
		{"a decode error in both", [][]member{plain(of14, strings.Replace(decodeError, "OF1.5", "OF1.4", 1)),
			plain(of15, decodeError)}, "OpenFlow15", 2, "can't be used"},
		{"only the one without -O", [][]member{plain(of10, flows("", 3))}, "OpenFlow10", 3, "OpenFlow 1.0"},
		{"an error text in 1.5", [][]member{plain(of14, flows("OF1.4", 3)),
			plain(of15, "ovs-ofctl: br0: failed to connect to socket (Connection refused)\n")}, "OpenFlow14", 3, ""},
		{"no version in common", [][]member{plain(of13, flows("OF1.3", 3)),
			plain(of15, "2026-01-02T03:04:05Z|00001|vconn|WARN|unix:/run/openvswitch/br0.mgmt: version negotiation failed (we support version 0x06, peer supports version 0x04)\novs-ofctl: br0: failed to connect to socket (Protocol error)\n")}, "OpenFlow13", 3, ""},
		{"a warning above a good dump", [][]member{plain(of15,
			"2026-01-02T03:04:05Z|00001|ofp_util|WARN|something\n"+flows("OF1.5", 3))}, "OpenFlow15", 3, ""},
		{"a good dump of no flows", [][]member{plain(of10, flows("", 0)), plain(of15, flows("OF1.5", 0))}, "OpenFlow15", 0,
			""},
		{"1.5 timed out before it printed anything", [][]member{plain(of14, flows("OF1.4", 3)), plain(of15, "")},
			"OpenFlow14", 3, ""},
		{"1.5 was killed within a line", [][]member{plain(of14, flows("OF1.4", 3)),
			plain(of15, strings.TrimSuffix(flows("OF1.5", 3), "y=1 actions=drop\n"))}, "OpenFlow14", 3, ""},
		{"1.5 was tailed", [][]member{plain(of14, flows("OF1.4", 9)), tailed(of15, cutStart)}, "OpenFlow14", 9, ""},
		{"1.5 has a bad line and 1.4 a fraction",
			[][]member{plain(of14, flows("OF1.4", 3)), plain(of15, flows("OF1.5", 30)+"junk\n")}, "OpenFlow15", 30,
			"can't be used"},
		{"all were tailed", [][]member{tailed(of14, cutStart), tailed(of15, cutStart)}, "OpenFlow15", 9, "cut by sos"},
		{"cut in place as sos before 4.2 did", [][]member{plain(of14, flows("OF1.4", 9)), plain(of15, cutStart)},
			"OpenFlow14", 9, ""},
		{"cut in place between two lines", [][]member{plain(of14, flows("OF1.4", 9)), plain(of15, cutBetween)}, "OpenFlow14",
			9, ""},
		{"all were cut in place between two lines", [][]member{plain(of14, cutBetween), plain(of15, cutBetween)},
			"OpenFlow15", 8, "beginning was cut off"},
		{"without a header as --names prints it", [][]member{plain(of10, flows("", 9)), plain(of15, headless)}, "OpenFlow15",
			9, "--names"},
		{"a fake bridge", [][]member{plain(of10, "ovs-ofctl: br0 is not a bridge or a socket\n")}, "", 0, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			wd := newWorkdir(t)
			all := []member{{name: listBr, body: "br0\n"}, {name: "etc/openvswitch/conf.db", body: database("Open_vSwitch", 1)}}
			for _, d := range c.dumps {
				all = append(all, d...)
			}
			got := take(t, wd, report(t, all...), both, Options{})[workdir.OVS]
			best := wd.DumpFile("br0", workdir.Flows)
			if c.version == "" {
				if _, err := os.Stat(best); err == nil || len(got.Bridges) != 0 {
					t.Errorf("taken: %s, bridges %q", files.Read(t, best), got.Bridges)
				}
				if !strings.Contains(strings.Join(got.Remarks, "\n"), `"br0"`) {
					t.Errorf("it has no remark: %q", got.Remarks)
				}
				return
			}
			i := slices.IndexFunc(got.Files, func(f workdir.File) bool { return f.Path == "restore_flows/br0.flows.dump" })
			if i < 0 {
				t.Fatalf("no flows: %+v", got.Files)
			}
			f := got.Files[i]
			if f.OpenFlow != c.version {
				t.Errorf("%s was taken", f.OpenFlow)
			}
			if n := strings.Count(files.Read(t, best), "actions="); n < c.entries || c.entries == 0 && n > 0 {
				t.Errorf("it has %d flows", n)
			}
			if said := strings.Join(f.Remarks, "\n"); !strings.Contains(said, c.remark) || (c.remark == "") != (said == "") {
				t.Errorf("remarks %q", f.Remarks)
			}
		})
	}
}

func TestGroupsMetersTLV(t *testing.T) {
	wd := newWorkdir(t)
	take(t, wd, report(t, member{name: listBr, body: "br0\n"},
		member{name: plugin + "ovs-ofctl_dump-flows_br0", body: flows("", 1)},
		member{name: plugin + "ovs-ofctl_-O_OpenFlow15_dump-groups_br0",
			body: "OFPST_GROUP_DESC reply (OF1.5) (xid=0x2):\n group_id=1,type=all\n"},
		member{name: plugin + "ovs-ofctl_dump-groups_br0", body: "NXST_GROUP_DESC reply (xid=0x2):\n group_id=1,type=all\n"},
		member{name: plugin + "ovs-ofctl_-O_OpenFlow13_dump-meters_br0",
			body: "OFPST_METER_CONFIG reply (OF1.3) (xid=0x2):\nmeter=1 kbps bands=\ntype=drop rate=1\n"},
		member{name: plugin + "ovs-ofctl_-O_OpenFlow10_dump-meters_br0",
			body: "ovs-ofctl: none of the usable flow formats (OpenFlow13) is among the allowed flow formats (OpenFlow10)\n"},
		member{name: plugin + "ovs-ofctl_-O_OpenFlow13_dump-tlv-map_br0",
			body: "NXT_TLV_TABLE_REPLY (OF1.3) (xid=0x2):\n max option space=256 max fields=64\n allocated option space=4\n\n mapping table:\n  class  type  length  match field\n ------  ----  ------  --------------\n 0x102  0x80       4  tun_metadata0\n"},
	), both, Options{})
	for dump, want := range map[workdir.Dump]string{workdir.Groups: "(OF1.5)", workdir.Meters: "rate=1",
		workdir.TLV: "tun_metadata0"} {
		if got := files.Read(t, wd.DumpFile("br0", dump)); !strings.Contains(got, want) {
			t.Errorf("%s: %q", dump, got)
		}
	}
	if got := files.Read(t, wd.OtherDump("br0", workdir.Groups, "OpenFlow10")); !strings.Contains(got, "NXST") {
		t.Errorf("the other groups: %q", got)
	}
}

// TestEscapedBridgeNames checks that bridges with similar or unusual names get files of
// their own, inside the workdir.
func TestEscapedBridgeNames(t *testing.T) {
	wd := newWorkdir(t)
	got := take(t, wd, report(t, member{name: listBr, body: "br@odd\nbr@@odd\n../../../evil\n"},
		member{name: plugin + "ovs-ofctl_dump-flows_br_odd", body: flows("", 1)},
		member{name: plugin + "ovs-ofctl_dump-flows_br_odd.1", body: flows("", 2)},
		member{name: plugin + "ovs-ofctl_dump-flows_.........evil", body: flows("", 3)},
	), both, Options{})[workdir.OVS]
	if !reflect.DeepEqual(got.Bridges, []string{"br@odd", "br@@odd", "../../../evil"}) {
		t.Errorf("bridges %q", got.Bridges)
	}
	for bridge, n := range map[string]int{"br@odd": 1, "br@@odd": 2, "../../../evil": 3} {
		path := wd.DumpFile(bridge, workdir.Flows)
		expect.Equal(t, filepath.Dir(path), wd.RestoreFlows(), bridge, path)
		expect.Equal(t, strings.Count(files.Read(t, path), "actions="), n, bridge, path)
	}
}

// TestOneFileUnderTwoNames collects a report with hard links between equal dumps, as
// after a deduplication.
func TestOneFileUnderTwoNames(t *testing.T) {
	wd := newWorkdir(t)
	take(t, wd, report(t, member{name: listBr, body: "br0\nbr1\n"},
		member{name: plugin + "ovs-ofctl_dump-flows_br0", body: flows("", 1)},
		member{name: plugin + "ovs-ofctl_dump-flows_br1", target: plugin + "ovs-ofctl_dump-flows_br0", hard: true},
		member{name: plugin + "ovs-ofctl_-O_OpenFlow13_dump-flows_br1", target: "ovs-ofctl_dump-flows_br1"},
	), both, Options{})
	for _, b := range []string{"br0", "br1"} {
		expect.Equal(t, files.Read(t, wd.DumpFile(b, workdir.Flows)), flows("", 1), b)
	}
}

// TestBridgesWithoutAListOfThem collects reports that have neither list-br nor list bridge nor
// conf.db: ovs-vsctl show names the bridges, or else the names of the dumps do.
func TestBridgesWithoutAListOfThem(t *testing.T) {
	shown := member{name: plugin + "ovs-vsctl_-t_5_show",
		body: "4b6b0d73-b824-4d6b-9ec7-584b4706f5c9\n    Bridge br0\n        Port br0\n            Interface br0\n    ovs_version: \"3.1.0\"\n"}
	dump := member{name: plugin + "ovs-ofctl_-O_OpenFlow13_dump-flows_br0", body: flows("", 2)}
	for name, members := range map[string][]member{"ovs-vsctl show": {shown, dump}, "the names of dumps": {dump}} {
		wd := newWorkdir(t)
		got := take(t, wd, report(t, members...), both, Options{})[workdir.OVS]
		expect.Equal(t, got.Bridges, []string{"br0"}, name)
		expect.Equal(t, strings.Count(files.Read(t, wd.DumpFile("br0", workdir.Flows)), "actions="), 2, name)
	}
}

func TestDatabases(t *testing.T) {
	bridge := member{name: listBr, body: "br0\n"}
	dump := member{name: plugin + "ovs-ofctl_dump-flows_br0", body: flows("", 1)}
	t.Run("none", func(t *testing.T) {
		wd := newWorkdir(t)
		got := take(t, wd, report(t, bridge, dump), both, Options{})
		if ovs := got[workdir.OVS]; len(got) != 1 || !strings.Contains(strings.Join(ovs.Remarks, " "), "no conf.db") ||
			len(ovs.Lost) > 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("behind a link that dangles", func(t *testing.T) {
		wd := newWorkdir(t)
		got := take(t, wd, report(t, bridge, dump,
			member{name: "etc/openvswitch/conf.db", target: "../../var/lib/openvswitch/conf.db"}), both, Options{})[workdir.OVS]
		if !strings.Contains(strings.Join(got.Lost, " "), "etc/openvswitch/conf.db") {
			t.Errorf("lost %q", got.Lost)
		}
	})
	t.Run("tailed", func(t *testing.T) {
		wd := newWorkdir(t)
		whole := database("Open_vSwitch", 200)
		got := take(t, wd, report(t, bridge, dump,
			member{name: "etc/openvswitch/conf.db", target: "../../sos_strings/openvswitch/etc.openvswitch.conf.db.tailed"},
			member{name: "sos_strings/openvswitch/etc.openvswitch.conf.db.tailed", body: whole[len(whole)/2+7:]}), both,
			Options{})[workdir.OVS]
		if _, err := os.Stat(wd.Database(workdir.OVS)); err == nil {
			t.Error("taken, though no server can serve it")
		}
		if !strings.Contains(strings.Join(got.Lost, " "), "--all-logs") {
			t.Errorf("lost %q", got.Lost)
		}
	})
	t.Run("under other names", func(t *testing.T) {
		wd := newWorkdir(t)
		take(t, wd, report(t, bridge, dump, member{name: "etc/openvswitch/ovnnb.db", body: database("Open_vSwitch", 1)},
			member{name: "var/lib/ovn/conf.db", body: database("OVN_Northbound", 1)},
			member{name: "etc/openvswitch/vtep.db", body: database("hardware_vtep", 1)}), both, Options{})
		if files.Read(t, wd.Database(workdir.OVS)) != database("Open_vSwitch", 1) ||
			files.Read(t, wd.Database(workdir.NB)) != database("OVN_Northbound", 1) {
			t.Error("taken by name, not by content")
		}
	})
	t.Run("two of a kind", func(t *testing.T) {
		wd := newWorkdir(t)
		got := take(t, wd, report(t, member{name: "var/lib/ovn/etc/ovnsb_db.db", body: database("OVN_Southbound", 1)},
			member{name: "var/lib/ovn-ic/etc/ovnsb_db.db", body: database("OVN_Southbound", 9)}), both, Options{})[workdir.SB]
		if files.Read(t, wd.Database(workdir.SB)) != database("OVN_Southbound", 9) {
			t.Error("not the larger one")
		}
		if !strings.Contains(strings.Join(got.Files[0].Remarks, " "), "var/lib/ovn/etc/ovnsb_db.db") {
			t.Errorf("remarks %q", got.Files[0].Remarks)
		}
	})
}

// failures returns sources from which nothing can be collected, by their problem.
func failures(t *testing.T) map[string]string {
	whole, err := os.ReadFile(compute)
	if err != nil {
		t.Fatal(err)
	}
	save := func(name string, raw []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	return map[string]string{
		"missing":        filepath.Join(t.TempDir(), "missing"),
		"empty":          save("empty", nil),
		"no archive":     save("text", []byte("hello\n")),
		"cut in the mid": save("cut.tar.xz", whole[:len(whole)/2]),
		"cut at the end": save("end.tar.xz", whole[:len(whole)-5]),
		"damaged":        save("flipped.tar.xz", flipped),
		"empty folder":   t.TempDir(),
		"without OVS":    report(t, member{name: "etc/hostname", body: "n\n"}),
		"only errors": report(t, member{name: listBr, body: "br0\n"},
			member{name: plugin + "ovs-ofctl_dump-flows_br0", body: "ovs-ofctl: no\n"}),
		"no database": report(t, member{name: "var/lib/ovn/etc/ovnsb_db.db", body: "garbage\n"}),
	}
}

// TestFailureChangesNothing checks that after any failure the earlier collection is
// unchanged, byte for byte, and nothing else is left.
func TestFailureChangesNothing(t *testing.T) {
	sources := failures(t)
	first := flowsReport(t, 3)
	for what, source := range sources {
		for _, selected := range []Select{{OVS: true}, {OVN: true}, both} {
			wd := newWorkdir(t)
			empty := tree(t, wd.Path())
			if _, err := collectReport(wd, source, selected, Options{}); err == nil || strings.Contains(err.Error(), "\n") ||
				!strings.Contains(err.Error(), source) {
				t.Errorf("%s, %+v: %v", what, selected, err)
			}
			if got := tree(t, wd.Path()); !reflect.DeepEqual(got, empty) {
				t.Errorf("%s, %+v: an empty workdir now has %v", what, selected, got)
			}
			take(t, wd, first, both, Options{})
			before := tree(t, wd.Path())
			if _, err := collectReport(wd, source, selected, Options{Force: true}); err == nil {
				t.Errorf("%s, %+v: no error", what, selected)
			}
			if got := tree(t, wd.Path()); !reflect.DeepEqual(got, before) {
				t.Errorf("%s, %+v: what was collected before has changed:\n%v\n%v", what, selected, before, got)
			}
		}
	}
	wd := newWorkdir(t)
	take(t, wd, first, both, Options{})
	before := tree(t, wd.Path())
	ctx, cancel := context.WithCancel(context.Background())
	_, _, err := Collect(ctx, wd, SosReport{Path: worker, Progress: func(read, total int64) {
		if read > total/2 {
			cancel()
		}
	}}, Options{Force: true})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if got := tree(t, wd.Path()); !reflect.DeepEqual(got, before) {
		t.Error("an interruption has changed what was collected")
	}
}

func TestErrorsNameTheCause(t *testing.T) {
	sources := failures(t)
	for _, c := range []struct {
		source   string
		selected Select
		want     error
		words    string
	}{
		{sources["empty"], both, sosreport.ErrNotArchive, "empty"},
		{sources["no archive"], both, sosreport.ErrNotArchive, "not an sos report"},
		{sources["empty folder"], both, sosreport.ErrEmpty, "nothing of an sos report"},
		{sources["without OVS"], Select{OVS: true}, ErrNothing, "openvswitch plugin"},
		{sources["cut at the end"], both, nil, "cut off"},
		{sources["missing"], both, os.ErrNotExist, "no such file"},
		{report(t, member{name: "etc/openvswitch/conf.db", body: database("Open_vSwitch", 1)}), Select{OVN: true}, ErrNothing,
			"It has an OVS database"},
		{report(t, member{name: "var/lib/ovn/ovnsb_db.db", body: database("OVN_Southbound", 1)}), Select{OVS: true},
			ErrNothing, "It has an OVN SB database"},
		{sources["no database"], Select{OVN: true}, ErrNothing, "var/lib/ovn/etc/ovnsb_db.db"},
	} {
		_, err := collectReport(newWorkdir(t), c.source, c.selected, Options{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", path.Base(c.source), err)
		}
	}
}

// TestDataIsReplacedOnlyWithForce checks that data of the same kind is replaced only
// with --force, and then completely.
func TestDataIsReplacedOnlyWithForce(t *testing.T) {
	wd := newWorkdir(t)
	first := report(t, member{name: listBr, body: "br0\nold\n"},
		member{name: plugin + "ovs-ofctl_dump-flows_br0", body: flows("", 1)},
		member{name: plugin + "ovs-ofctl_dump-flows_old", body: flows("", 1)},
		member{name: plugin + "ovs-appctl_lacp.show", body: "old"})
	take(t, wd, first, Select{OVS: true}, Options{})
	before := tree(t, wd.Path())
	second := flowsReport(t, 5)
	for _, selected := range []Select{{OVS: true}, both} {
		_, err := collectReport(wd, second, selected, Options{})
		if !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), first) ||
			!strings.Contains(err.Error(), "--force") {
			t.Errorf("%+v: %v", selected, err)
		}
		if got := tree(t, wd.Path()); !reflect.DeepEqual(got, before) {
			t.Error("refused, and changed")
		}
	}
	take(t, wd, second, Select{OVS: true}, Options{Force: true})
	fresh := newWorkdir(t)
	take(t, fresh, second, Select{OVS: true}, Options{})
	got, want := tree(t, wd.Path()), tree(t, fresh.Path())
	for _, names := range []map[string]string{got, want} {
		delete(names, "manifest.json") // it holds the time
		delete(names, ".lock")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("replaced is not as collected afresh:\n%v\n%v", got, want)
	}
}

// TestSelectedDataIsReplacedAlone takes OVS from a compute node's report, and OVN from
// a controller's.
func TestSelectedDataIsReplacedAlone(t *testing.T) {
	below := func(names map[string]string, folders ...string) map[string]string {
		out := map[string]string{}
		for name, what := range names {
			for _, f := range folders {
				if strings.HasPrefix(name, f) {
					out[name] = what
				}
			}
		}
		return out
	}
	ovs := []string{"db/ovs", "restore_flows", "recorded"}
	ovn := []string{"db/ovn_nb", "db/ovn_sb"}
	wd := newWorkdir(t)
	take(t, wd, compute, Select{OVS: true}, Options{})
	all := tree(t, wd.Path())
	if n := len(below(all, ovn...)); n != 0 {
		t.Errorf("the OVS selected made %d things of OVN", n)
	}
	take(t, wd, worker, Select{OVN: true}, Options{})
	if !reflect.DeepEqual(below(tree(t, wd.Path()), ovs...), below(all, ovs...)) {
		t.Error("the OVN selected has touched the OVS selected")
	}
	m, err := wd.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := m.Collection(workdir.OVS), m.Collection(workdir.NB), m.Collection(workdir.SB); a == nil || b == nil ||
		c == nil || a.Host != "compute1" || b.Host != "ovn-worker" || c.Host != "ovn-worker" {
		t.Errorf("manifest: %+v", m.Collections)
	}
	all = tree(t, wd.Path())
	take(t, wd, worker, Select{OVS: true}, Options{Force: true})
	if !reflect.DeepEqual(below(tree(t, wd.Path()), ovn...), below(all, ovn...)) {
		t.Error("the OVS selected has touched the OVN selected")
	}
	if _, err := collectReport(wd, compute, Select{OVN: true}, Options{}); !errors.Is(err, ErrOccupied) {
		t.Errorf("OVN data replaced unasked: %v", err)
	}
}

// TestReportWritesOnlyTheWorkdir compares everything that could be written to.
func TestReportWritesOnlyTheWorkdir(t *testing.T) {
	source, err := filepath.Abs(compute)
	if err != nil {
		t.Fatal(err)
	}
	dir := captures.Unpack(t, source)
	tmp, cwd, home := t.TempDir(), t.TempDir(), t.TempDir()
	wd := newWorkdir(t)
	t.Setenv("TMPDIR", tmp)
	t.Setenv("HOME", home)
	t.Chdir(cwd)
	before := []map[string]string{tree(t, dir), tree(t, filepath.Dir(source))}
	for _, from := range []string{source, dir} {
		take(t, wd, from, both, Options{Force: true})
	}
	for _, empty := range []string{tmp, cwd, home} {
		if got := tree(t, empty); len(got) != 1 {
			t.Errorf("%v", got)
		}
	}
	if after := []map[string]string{tree(t, dir), tree(t, filepath.Dir(source))}; !reflect.DeepEqual(before, after) {
		t.Error("the source has changed")
	}
	for name := range tree(t, wd.Path()) {
		if strings.HasPrefix(name, ".incoming") {
			t.Errorf("left behind: %s", name)
		}
	}
}
