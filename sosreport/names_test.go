package sosreport

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

const plugin = "sos_commands/openvswitch/"

// ran is a command as sos ran it, and its output.
type ran struct {
	command, file, output string
	truncated             bool
}

// manifestOf returns sos_reports/manifest.json for commands of the openvswitch plugin.
func manifestOf(t *testing.T, commands ...ran) member {
	t.Helper()
	type entry struct {
		Exec      string `json:"exec"`
		Filepath  string `json:"filepath"`
		Truncated bool   `json:"truncated"`
	}
	var list []entry
	for _, c := range commands {
		list = append(list, entry{"/usr/bin/" + c.command, plugin + c.file, c.truncated})
	}
	raw, err := json.Marshal(map[string]any{"version": "4.8.2", "components": map[string]any{
		"report": map[string]any{"plugins": map[string]any{"openvswitch": map[string]any{"commands": list}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return file("sos_reports/manifest.json", string(raw))
}

func outputs(commands ...ran) []member {
	var list []member
	for _, c := range commands {
		list = append(list, file(plugin+c.file, c.output))
	}
	return list
}

// TestMangledNames checks bridges whose names sos has to change; some of the changed
// names collide. The file names are the ones that sos 4.8.2 gave.
func TestMangledNames(t *testing.T) {
	commands := []ran{
		{"ovs-vsctl -t 5 list-br", "ovs-vsctl_-t_5_list-br",
			"br@odd\nbr@@odd\nbr:1\nbr-tail-\nbr-tail\nbrücke\nбр0\nbr.1\nbr0\n", false},
		{"ovs-ofctl dump-flows br@odd", "ovs-ofctl_dump-flows_br_odd", "1", false},
		{"ovs-ofctl dump-flows br@@odd", "ovs-ofctl_dump-flows_br_odd.1", "2", false},
		{"ovs-ofctl dump-flows br:1", "ovs-ofctl_dump-flows_br_1", "3", false},
		{"ovs-ofctl dump-flows br-tail-", "ovs-ofctl_dump-flows_br-tail", "4", false},
		{"ovs-ofctl dump-flows br-tail", "ovs-ofctl_dump-flows_br-tail.1", "5", false},
		{"ovs-ofctl dump-flows brücke", "ovs-ofctl_dump-flows_brücke", "6", false},
		{"ovs-ofctl dump-flows бр0", "ovs-ofctl_dump-flows_бр0", "7", false},
		{"ovs-ofctl dump-flows br.1", "ovs-ofctl_dump-flows_br.1", "8", false},
		{"ovs-ofctl dump-flows br0", "ovs-ofctl_dump-flows_br0", "9", false},
		{"ovs-ofctl -O OpenFlow15 dump-flows br@odd", "ovs-ofctl_-O_OpenFlow15_dump-flows_br_odd", "1", false},
		{"ovs-ofctl -O OpenFlow15 dump-flows br@@odd", "ovs-ofctl_-O_OpenFlow15_dump-flows_br_odd.1", "2", false},
		{"ovs-appctl dpctl/dump-flows -m system@ovs-system", "ovs-appctl_dpctl.dump-flows_-m_system_ovs-system", "dp", false},
		{"ovs-appctl ovs/route/show", "ovs-appctl_ovs.route.show", "routes", false},
	}
	check := func(what string, r *Report) {
		t.Helper()
		want := []string{"br@odd", "br@@odd", "br:1", "br-tail-", "br-tail", "brücke", "бр0", "br.1", "br0"}
		if !reflect.DeepEqual(r.Bridges, want) {
			t.Errorf("%s: bridges %q", what, r.Bridges)
		}
		for i, b := range want {
			if got := content(t, r, recording.Flows, b, ""); got != fmt.Sprint(i+1) {
				t.Errorf("%s: the flows of %s are %q", what, b, got)
			}
		}
		if a, b := content(t, r, recording.Flows, "br@odd", "OpenFlow15"),
			content(t, r, recording.Flows, "br@@odd", "OpenFlow15"); a != "1" || b != "2" {
			t.Errorf("%s: OpenFlow 1.5: %q, %q", what, a, b)
		}
		if got := content(t, r, workdir.RecordedDatapathFlows, "", ""); got != "dp" {
			t.Errorf("%s: datapath flows %q", what, got)
		}
		if got := content(t, r, workdir.RecordedRoutes, "", ""); got != "routes" {
			t.Errorf("%s: routes %q", what, got)
		}
	}
	members := outputs(commands...)
	check("without a manifest", openMembers(t, under(top, members...)...))
	r := openMembers(t, under(top, append(members, manifestOf(t, commands...))...)...)
	check("with a manifest", r)
	expect.Equal(t, r.SosVersion, "4.8.2", "sos")
	damaged := file("sos_reports/manifest.json", `{"components": {"report": [`)
	check("with a damaged manifest", openMembers(t, under(top, append(members, damaged)...)...))
}

// TestManifestTakesPrecedence checks file names that follow no rule, and a file that
// the manifest assigns to another bridge.
func TestManifestTakesPrecedence(t *testing.T) {
	commands := []ran{
		{"ovs-vsctl -t 5 list-br", "ovs-vsctl_-t_5_list-br", "br@odd\nbr@@odd\n", false},
		{"ovs-ofctl dump-flows br@odd", "some_other_name", "1", false},
		{"ovs-ofctl dump-flows br@@odd", "ovs-ofctl_dump-flows_br_odd", "2", false},
		// Because of the protocols, sos dumped only the second bridge in OpenFlow 1.5.
		{"ovs-ofctl -O OpenFlow15 dump-flows br@@odd", "ovs-ofctl_-O_OpenFlow15_dump-flows_br_odd", "2", true},
	}
	r := openMembers(t, under(top, append(outputs(commands...), manifestOf(t, commands...))...)...)
	for _, c := range []struct{ bridge, openflow, want string }{
		{"br@odd", "", "1"}, {"br@@odd", "", "2"}, {"br@odd", "OpenFlow15", ""}, {"br@@odd", "OpenFlow15", "2"},
	} {
		expect.Equal(t, content(t, r, recording.Flows, c.bridge, c.openflow), c.want, c.bridge, c.openflow)
	}
	if list := r.Outputs(recording.Flows, "br@@odd"); len(list) != 2 || !list[0].Truncated || list[1].Truncated {
		t.Errorf("outputs that the manifest marks as truncated: %+v", list)
	}
}

// TestSeveralDatapaths checks that the order is the same in every run.
func TestSeveralDatapaths(t *testing.T) {
	commands := []ran{
		{"ovs-vsctl -t 5 list-br", "ovs-vsctl_-t_5_list-br", "br0\n", false},
		{"ovs-appctl dpctl/show -s system@ovs-system", "ovs-appctl_dpctl.show_-s_system_ovs-system", "kernel", false},
		{"ovs-appctl dpctl/show -s netdev@ovs-netdev", "ovs-appctl_dpctl.show_-s_netdev_ovs-netdev", "user", false},
	}
	for range 20 {
		for _, members := range [][]member{outputs(commands...), append(outputs(commands...), manifestOf(t, commands...))} {
			if got := content(t, openMembers(t, under(top, members...)...), workdir.RecordedDatapathShow, "",
				""); got != "user" {
				t.Fatalf("the first is %q", got)
			}
		}
	}
}

// TestBridgesWithoutAList checks that the bridges are those of the flow dumps if the
// list is missing or an error message.
func TestBridgesWithoutAList(t *testing.T) {
	failed := ran{"ovs-vsctl -t 5 list-br", "ovs-vsctl_-t_5_list-br",
		"2026-01-02T03:04:05Z|00001|fatal_signal|WARN|terminating with signal 14 (Alarm clock)\n" +
			"ovs-vsctl: unix:/var/run/openvswitch/db.sock: database connection failed (No such file or directory)\n", false}
	dump := ran{"ovs-ofctl dump-flows br@x", "ovs-ofctl_dump-flows_br_x", "flows", false}
	r := openMembers(t, under(top, append(outputs(failed, dump), manifestOf(t, failed, dump))...)...)
	if !reflect.DeepEqual(r.Bridges, []string{"br@x"}) || content(t, r, recording.Flows, "br@x", "") != "flows" {
		t.Errorf("with a manifest: %q", r.Bridges)
	}
	r = openMembers(t, under(top, outputs(failed, dump)...)...)
	if !reflect.DeepEqual(r.Bridges, []string{"br_x"}) || content(t, r, recording.Flows, "br_x", "") != "flows" {
		t.Errorf("without: %q", r.Bridges)
	}
	r = openMembers(t, under(top, file("sos_commands/ovn_host/ovs-vsctl_list-br", "br-int\n"),
		file("sos_commands/ovn_host/ovs-ofctl_-O_OpenFlow13_dump-flows_br-int", "13"))...)
	if !reflect.DeepEqual(r.Bridges, []string{"br-int"}) ||
		content(t, r, recording.Flows, "br-int", "OpenFlow13") != "13" {
		t.Errorf("of ovn_host: %q", r.Bridges)
	}
}

// TestVersionsOfSos checks that the same data is found under the file names of several
// sos versions.
func TestVersionsOfSos(t *testing.T) {
	const said = "ovs-vsctl (Open vSwitch) 2.17.9\nDB Schema 8.3.0\n"
	for _, c := range []struct{ listBr, version string }{
		{"ovs-vsctl_list-br", "ovs-ofctl_-t_5_--version"},
		{"ovs-vsctl_-t_5_list-br", "ovs-ofctl_-t_5_--version"},
		{"ovs-vsctl_-t_5_list-br", "ovs-vsctl_-t_5_--version"},
	} {
		r := openMembers(t, under(top, file(plugin+c.listBr, "br0\n"), file(plugin+c.version, said))...)
		if !reflect.DeepEqual(r.Bridges, []string{"br0"}) || r.OVSVersion != "2.17.9" {
			t.Errorf("%+v: bridges %q, OVS %q", c, r.Bridges, r.OVSVersion)
		}
	}
}

func TestPackageVersions(t *testing.T) {
	for _, c := range []struct {
		members  []member
		ovs, ovn string
	}{
		{[]member{file("sos_commands/rpm/package-data",
			"openvswitch3.1-3.1.0-65.el9fdp.x86_64\tx\t1\novn23.06-central-23.06.1-112.el9fdp.x86_64\tx\novn23.06-23.06.1-112.el9fdp.x86_64\tx\n"),
			symlink("installed-rpms", "sos_commands/rpm/package-data")}, "3.1.0", "23.06.1"},
		{[]member{file("installed-rpms", "openvswitch2.15-2.15.0-99.el8fdp.x86_64   Mon\novn-2021-21.12.0-1.el8.x86_64  Mon\n")}, "2.15.0", "21.12.0"},
		{[]member{file("sos_commands/dpkg/dpkg_-l",
			"ii  openvswitch-switch   3.1.0-2+deb12u1  amd64  x\nii  ovn-common   23.03.1-1~deb12u2   amd64   x\n")}, "3.1.0",
			"23.03.1"},
		{[]member{file("sos_commands/rpm/package-data", "openvswitch-selinux-extra-policy-1.0-31.el9fdp.noarch\tx\n")}, "",
			""},
	} {
		r := openMembers(t, under(top, append(c.members, file(plugin+"ovs-vsctl_list-br", "br0\n"))...)...)
		if r.OVSVersion != c.ovs || r.OVNVersion != c.ovn {
			t.Errorf("%q: OVS %q, OVN %q", c.members[0].body, r.OVSVersion, r.OVNVersion)
		}
	}
}

func TestHost(t *testing.T) {
	any := file(plugin+"ovs-vsctl_list-br", "br0\n")
	for _, c := range []struct {
		top, want string
		members   []member
	}{
		{top, "node1", nil},
		{"sosreport-host0-obfuscated-2026-01-02-abcdefg/", "host0", nil},
		{"sosreport-a-b.c-01234567-2026-01-02-abcdefg/", "a-b.c-01234567", nil},
		{top, "n2", []member{file("etc/hostname", "n2\n")}},
		{top, "n2.example", []member{file("sos_commands/host/hostname", "n2.example\n"),
			symlink("hostname", "sos_commands/host/hostname"), file("etc/hostname", "other")}},
		{"x/", "", nil},
	} {
		if r := openMembers(t, under(c.top, append(c.members, any)...)...); r.Host != c.want {
			t.Errorf("%s %v: %q", c.top, c.members, r.Host)
		}
	}
}

func TestLinks(t *testing.T) {
	real := file("var/lib/openvswitch/conf.db", "the database")
	link := symlink("etc/openvswitch/conf.db", "../../var/lib/openvswitch/conf.db")
	cut := file("sos_strings/openvswitch/ovs-ofctl_dump-flows_br0.tailed", "the end")
	for _, c := range []struct {
		what     string
		members  []member
		origin   string // of the one database
		body     string
		cut      bool
		dangling int
	}{
		{"a link before its target", []member{link, real}, "var/lib/openvswitch/conf.db", "the database", false, 0},
		{"a link after its target", []member{real, link}, "var/lib/openvswitch/conf.db", "the database", false, 0},
		{"an absolute link", []member{symlink("etc/openvswitch/conf.db", "/var/lib/openvswitch/conf.db"), real},
			"var/lib/openvswitch/conf.db", "the database", false, 0},
		{"a link to a link", []member{link, symlink("var/lib/openvswitch/conf.db", "other.db"),
			file("var/lib/openvswitch/other.db", "x")}, "var/lib/openvswitch/other.db", "x", false, 0},
		{"a dangling link", []member{link}, "", "", false, 1},
		{"a link outside", []member{symlink("etc/openvswitch/conf.db", "../../../../../../../../etc/passwd")}, "", "", false,
			1},
		{"an absolute link to what the report lacks", []member{symlink("etc/openvswitch/conf.db", "/etc/passwd")}, "", "",
			false, 1},
		{"a loop", []member{symlink("etc/openvswitch/conf.db", "a.db"), symlink("etc/openvswitch/a.db", "conf.db"), real},
			"var/lib/openvswitch/conf.db", "the database", false, 2},
		{"a link to itself", []member{symlink("etc/openvswitch/conf.db", "conf.db"), real}, "var/lib/openvswitch/conf.db",
			"the database", false, 1},
		{"a link to a folder", []member{symlink("etc/openvswitch/conf.db", ".."), real}, "var/lib/openvswitch/conf.db",
			"the database", false, 1},
		{"a tailed database", []member{symlink("host/var/lib/ovn/etc/ovnsb_db.db",
			"../../../../../sos_strings/ovn_central/host.var.lib.ovn.etc.ovnsb_db.db.tailed"),
			file("sos_strings/ovn_central/host.var.lib.ovn.etc.ovnsb_db.db.tailed", "tail")},
			"sos_strings/ovn_central/host.var.lib.ovn.etc.ovnsb_db.db.tailed", "tail", true, 0},
		{"a hard link after its target", []member{real, hardlink("etc/openvswitch/conf.db", "var/lib/openvswitch/conf.db")},
			"var/lib/openvswitch/conf.db", "the database", false, 0},
		{"the same file twice", []member{file("etc/openvswitch/conf.db", "old"), file("etc/openvswitch/conf.db", "new")},
			"etc/openvswitch/conf.db", "new", false, 0},
		{"a link, then a file of its name", []member{link, file("etc/openvswitch/conf.db", "file")},
			"etc/openvswitch/conf.db", "file", false, 0},
		{"a file, then a link of its name", []member{file("etc/openvswitch/conf.db", "file"), link, real},
			"var/lib/openvswitch/conf.db", "the database", false, 0},
	} {
		for _, shape := range []string{"archive", "folder"} {
			members := under(top, append(c.members, file(plugin+"ovs-vsctl_list-br", "br0\n"))...)
			source := write(t, "r.tar", tarOf(t, members...))
			if shape == "folder" {
				if strings.Contains(c.what, "then") || strings.Contains(c.what, "twice") {
					continue // a folder cannot hold this member
				}
				source = t.TempDir()
				extract(t, tarOf(t, members...), source)
			}
			r := open(t, source)
			if c.origin == "" && len(r.Databases) == 0 && len(r.Dangling) == c.dangling {
				continue
			}
			// In a folder, hard links are like other files.
			if shape == "folder" && strings.Contains(c.what, "hard") {
				expect.Equal(t, len(r.Databases), 2, c.what, shape, r.Databases)
				continue
			}
			if len(r.Databases) != 1 || len(r.Dangling) != c.dangling {
				t.Errorf("%s, %s: %+v, dangling %q", c.what, shape, r.Databases, r.Dangling)
				continue
			}
			d := r.Databases[0]
			if d.Origin != c.origin || databaseText(t, d) != c.body || d.Truncated != c.cut {
				t.Errorf("%s, %s: %+v holds %q", c.what, shape, d, databaseText(t, d))
			}
		}
	}
	r := openMembers(t, under(top, file(plugin+"ovs-vsctl_list-br", "br0\n"),
		symlink(plugin+"ovs-ofctl_dump-flows_br0", "../../sos_strings/openvswitch/ovs-ofctl_dump-flows_br0.tailed"), cut)...)
	list := r.Outputs(recording.Flows, "br0")
	if len(list) != 1 || !list[0].Truncated || content(t, r, recording.Flows, "br0", "") != "the end" {
		t.Errorf("a tailed dump: %+v", list)
	}
}

// TestHostileMembers checks names that lead out of the tree, and members that are not
// files.
func TestHostileMembers(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "etc/openvswitch/conf.db")
	members := []member{
		file("../etc/openvswitch/conf.db", "up"),
		file("../../../../../../etc/openvswitch/a.db", "far up"),
		file("/etc/openvswitch/b.db", "absolute"),
		file(outside, "absolute"),
		file(top+"../../etc/openvswitch/c.db", "up from the middle"),
		{name: top + "etc/openvswitch/d.db", typ: '3'},
		{name: top + "etc/openvswitch/e.db", typ: '4'},
		{name: top + "etc/openvswitch/f.db", typ: '6'},
		{name: top + "etc/openvswitch/g.db", typ: '5'},
		hardlink(top+"etc/openvswitch/h.db", "../../etc/passwd"),
		hardlink(top+"etc/openvswitch/i.db", "/etc/passwd"),
		file(top+plugin+"ovs-vsctl_list-br", "../../x\n../br0\n-O\n\n/etc/passwd\n"),
		file(top+plugin+"ovs-ofctl_dump-flows_.._br0", "never"),
	}
	r := openMembers(t, members...)
	expect.Equal(t, len(r.Databases), 0, "taken", r.Databases)
	if _, err := os.Stat(outside); err == nil {
		t.Error("written outside")
	}
}

// TestDevicesInAFolder checks that devices and pipes in a folder are not opened:
// opening a FIFO would wait forever.
func TestDevicesInAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.TrimSuffix(top, "/"))
	extract(t, tarOf(t, file(plugin+"ovs-vsctl_list-br", "br0\n"), file("etc/openvswitch/x", "")), dir)
	mkfifo(t, filepath.Join(dir, "etc/openvswitch/conf.db"))
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "etc/openvswitch/zero.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(dir, "sos_commands/ovn_host")); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	expect.Equal(t, len(r.Databases), 0, r.Databases, r.Dangling)
	expect.Equal(t, len(r.Dangling), 1, r.Databases, r.Dangling)
}

// TestOpenWritesOnlyTheSpool checks that Open writes only to the spool, with any
// content of a report.
func TestOpenWritesOnlyTheSpool(t *testing.T) {
	tmp, spool, cwd := t.TempDir(), t.TempDir(), t.TempDir()
	source, err := filepath.Abs(realReports["worker"])
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	t.Chdir(cwd)
	if _, err := Open(t.Context(), source, spool, archive.Default(), nil); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{tmp, cwd} {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s holds %v", dir, entries)
		}
	}
}

// TestNetworkingOfEachSos reads the devices and routes of the kernel, whose commands sos
// changed in 3.6.
func TestNetworkingOfEachSos(t *testing.T) {
	for _, links := range []string{"ip_-d_address", "ip_address", "ip_-s_-d_link", "ip_-s_link"} {
		members := append(outputs(ran{"ovs-vsctl -t 5 list-br", "ovs-vsctl_-t_5_list-br", "br0\n", false}),
			file("sos_commands/networking/"+links, "links"), file("sos_commands/networking/ip_route_show_table_all", "routes"))
		r := openMembers(t, under(top, members...)...)
		expect.Equal(t, content(t, r, workdir.RecordedLinks, "", ""), "links", links)
		if got := content(t, r, workdir.RecordedKernelRoutes, "", ""); got != "routes" {
			t.Errorf("with %s: routes %q", links, got)
		}
	}
}
