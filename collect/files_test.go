package collect

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// tableDatabase returns a database file of one table with one row.
func tableDatabase(name, table, columns, row string) string {
	return record(fmt.Sprintf(`{"name":%q,"version":"1.0.0","tables":{%q:{"columns":{%s}}}}`, name, table, columns)) +
		record(fmt.Sprintf(`{%q:{"11111111-2222-3333-4444-555555555555":{%s}}}`, table, row))
}

const stringMap = `{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}`

// zone returns the database of one node of an interconnect cluster, or for node "" that
// of a whole cluster.
func zone(name, node string) string {
	table := map[string]string{"OVN_Northbound": "NB_Global", "OVN_Southbound": "SB_Global"}[name]
	return tableDatabase(name, table, `"options":`+stringMap, fmt.Sprintf(`"options":["map",[["name",%q]]]`, node))
}

func conf(host string) string {
	return tableDatabase("Open_vSwitch", "Open_vSwitch", `"external_ids":`+stringMap,
		fmt.Sprintf(`"external_ids":["map",[["hostname",%q]]]`, host))
}

const flowText = "NXST_FLOW reply (xid=0x4):\n cookie=0x1, duration=1.2s, table=0, n_packets=0, n_bytes=0, priority=1 actions=drop\n"

// reportFiles returns the files of an sos report, by their paths below its top folder.
func reportFiles(host string) map[string]string {
	top := "sosreport-" + host + "-2026-01-02-abcdefg/"
	return map[string]string{top + "sos_commands/openvswitch/ovs-vsctl_-t_5_list-br": "br-int\n",
		top + "sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int": flowText, top + "etc/openvswitch/conf.db": conf(host)}
}

func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600,
			Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func takeFiles(t *testing.T, opts Options, paths ...string) (map[string]Written, *Found, string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wd")
	wd, err := workdir.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	list, found, err := Collect(context.Background(), wd, Files{Paths: paths}, opts)
	byName := map[string]Written{}
	for _, w := range list {
		byName[w.Name] = w
	}
	return byName, found, dir, err
}

func (w Written) kinds() string {
	var kinds []string
	for _, c := range w.Collections {
		kinds = append(kinds, string(c.Kind))
	}
	return strings.Join(kinds, " ")
}

// TestClusterInputsBecomeItsNodes checks that the reports of two nodes and the
// must-gather of their cluster, in one folder, become two nodes with their databases.
func TestClusterInputsBecomeItsNodes(t *testing.T) {
	store := packed(t, map[string]string{
		"ovnk_database_store/ovnkube-node-aaaaa_nbdb": zone("OVN_Northbound", "n1"),
		"ovnk_database_store/ovnkube-node-aaaaa_sbdb": zone("OVN_Southbound", "n1"),
		"ovnk_database_store/ovnkube-node-bbbbb_nbdb": zone("OVN_Northbound", "n2.example.org"),
		"ovnk_database_store/ovnkube-node-bbbbb_sbdb": zone("OVN_Southbound", "n2.example.org"),
		"ovnk_database_store/ovnkube-node-ccccc_nbdb": zone("OVN_Northbound", "n3"),
	})
	dir := folder(t, map[string]string{"a.tar.gz": packed(t, reportFiles("n1")), "b.tar.gz": packed(t, reportFiles("n2")),
		"mg.tar.gz": packed(t, map[string]string{"mg/quay/version": "openshift/must-gather\n4.14.1\n",
			"mg/quay/network_logs/ovnk_database_store.tar.gz": store})})
	got, found, parent, err := takeFiles(t, Options{}, dir)
	if err != nil || len(found.Lost) > 0 {
		t.Fatal(err, found)
	}
	for name, kinds := range map[string]string{"n1": "ovs ovn_nb ovn_sb", "n2": "ovs ovn_nb ovn_sb", "n3": "ovn_nb"} {
		if got[name].kinds() != kinds || got[name].Path != filepath.Join(parent, name) {
			t.Errorf("%s: %q in %s", name, got[name].kinds(), got[name].Path)
		}
	}
	for _, c := range got["n1"].Collections {
		if want := map[workdir.Kind]string{workdir.OVS: "sos report", workdir.NB: "must-gather",
			workdir.SB: "must-gather"}[c.Kind]; c.Source.Kind != want {
			t.Errorf("%s comes from %+v", c.Kind, c.Source)
		}
	}
	got, _, _, err = takeFiles(t, Options{Nodes: []string{"n2"}}, dir)
	if err != nil || len(got) != 1 || got["n2"].kinds() != "ovs ovn_nb ovn_sb" {
		t.Errorf("--node n2: %v %v", got, err)
	}
	if _, _, _, err := takeFiles(t, Options{Nodes: []string{"n9"}}, dir); !errors.Is(err, ErrNothing) ||
		!strings.Contains(err.Error(), "n1, n2, n3") {
		t.Errorf("--node n9: %v", err)
	}
}

// TestLogsOfClientsBelongToTheNodeOfTheirPod collects logs of clients of libovsdb: from
// must-gather's archive of them, where pods name their nodes, or only their databases do; and
// from an sos report, which has the end of one.
func TestLogsOfClientsBelongToTheNodeOfTheirPod(t *testing.T) {
	pod := "---\nkind: Pod\nmetadata:\n  name: ovnkube-node-aaaaa\nspec:\n  nodeName: n1\n"
	log := func(pod, name string) string {
		return "ovnk_extras_store/" + pod + "/ovnkube-controller/" + name
	}
	dir := folder(t, map[string]string{"mg.tar.gz": packed(t, map[string]string{
		"mg/quay/version": "openshift/must-gather\n4.14.1\n",
		"mg/quay/namespaces/openshift-ovn-kubernetes/pods/ovnkube-node-aaaaa/ovnkube-node-aaaaa.yaml": pod,
		"mg/quay/network_logs/ovnk_database_store.tar.gz": packed(t, map[string]string{
			"ovnk_database_store/ovnkube-node-aaaaa_nbdb": zone("OVN_Northbound", "n1"),
			"ovnk_database_store/ovnkube-node-bbbbb_nbdb": zone("OVN_Northbound", "n2")}),
		"mg/quay/network_logs/ovnk_extras_store.tar.gz": packed(t, map[string]string{
			log("ovnkube-node-aaaaa", "libovsdb.log"):                            "of n1",
			log("ovnkube-node-aaaaa", "libovsdb-2026-11-22T14-57-26.215.log.gz"): "older, of n1",
			log("ovnkube-node-bbbbb", "libovsdb.log"):                            "of n2"}),
	}), "b/n3/sos_commands/host/hostname": "n3\n", "b/n3/var/lib/ovn-ic/etc/ovnnb_db.db": zone("OVN_Northbound", "n3"),
		"b/n3/sos_commands/openvswitch/x": "", "b/n3/var/lib/ovn-ic/etc/libovsdb.log": "of n3"})
	got, _, _, err := takeFiles(t, Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"n1": "older, of n1; of n1", "n2": "of n2", "n3": "of n3"} {
		wd, err := workdir.Find(got[name].Path)
		if err != nil {
			t.Fatalf("%s: %v (%v)", name, err, got)
		}
		paths, err := wd.ClientLogs()
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(text))
		}
		expect.Equal(t, strings.Join(texts, "; "), want, name)
	}
}

// TestTwoReportsOfOneNodeStayApart checks that two reports of one node stay apart,
// because they were made at different times, and are named for their archives.
func TestTwoReportsOfOneNodeStayApart(t *testing.T) {
	dir := folder(t, map[string]string{"a.tar.gz": packed(t, reportFiles("n1")),
		"b/c.tar.gz": packed(t, reportFiles("n1"))})
	got, _, _, err := takeFiles(t, Options{}, dir)
	if err != nil || len(got) != 2 || got["n1-a"].kinds() != "ovs" || got["n1-c"].kinds() != "ovs" {
		t.Errorf("%v %v", got, err)
	}
}

// TestFailureOfOneNodeInstallsNone checks that no node is installed if one of them can't be.
func TestFailureOfOneNodeInstallsNone(t *testing.T) {
	dir := folder(t, map[string]string{"a.tar.gz": packed(t, reportFiles("n1")), "b.tar.gz": packed(t, reportFiles("n2"))})
	parent := folder(t, map[string]string{"n2/db": "a file, where a folder has to be"})
	if err := os.Chmod(parent, 0o700); err != nil { // regardless of the umask
		t.Fatal(err)
	}
	wd, err := workdir.Lock(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer wd.Unlock()
	_, _, err = Collect(t.Context(), wd, Files{Paths: []string{dir}}, Options{})
	if want := filepath.Join(parent, "n2/db") + " is a file"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
	if below, err := workdir.Below(parent); err != nil || len(below) > 0 {
		t.Errorf("got the workdirs %q (%v), want none", below, err)
	}
}

// TestFilesAreDetectedByContent checks that files of any name together become one node.
func TestFilesAreDetectedByContent(t *testing.T) {
	dir := folder(t, map[string]string{"one": conf("n1"), "two.txt": zone("OVN_Northbound", ""),
		"three": string(files.Gzip(t, []byte(zone("OVN_Southbound", "")))), "dump-flows_br-int.txt": flowText,
		"readme": "hello\n"})
	got, found, _, err := takeFiles(t, Options{}, dir)
	if err != nil || len(found.Lost) > 0 || len(got) != 1 || got["n1"].kinds() != "ovs ovn_nb ovn_sb" && len(got) != 1 {
		t.Fatalf("%v %v %v", got, found, err)
	}
	for _, w := range got {
		if w.kinds() != "ovs ovn_nb ovn_sb" || !slices.Equal(w.Collections[0].Bridges, []string{"br-int"}) {
			t.Errorf("%+v", w)
		}
	}
}

// TestUnreadableFilesAreNamed checks that an unreadable file is named, and that nothing
// else is lost.
func TestUnreadableFilesAreNamed(t *testing.T) {
	whole := packed(t, reportFiles("n1"))
	rest := zone("OVN_Southbound", "")
	for what, c := range map[string]struct {
		name, body, words string
	}{
		"a cut archive":        {"b.tar.gz", whole[:len(whole)/2], "b.tar.gz"},
		"an encrypted archive": {"secured-b.tar.xz.gpg", "\x8c\x0d\x04\x09\x03\x08rest", "decrypt it first"},
		"a tailed database":    {"conf.db", `5"],["map",[["a","b"]]]` + rest[40:60], "--all-logs"},
	} {
		got, found, _, err := takeFiles(t, Options{}, folder(t, map[string]string{"a.tar.gz": whole, c.name: c.body}))
		if err != nil || got["n1"].kinds() != "ovs" || !strings.Contains(strings.Join(found.Lost, "\n"), c.words) {
			t.Errorf("%s beside a report: %v %+v %v", what, got, found, err)
		}
		_, _, wd, err := takeFiles(t, Options{}, filepath.Join(folder(t, map[string]string{c.name: c.body}), c.name))
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s alone: %v", what, err)
		}
		if entries, _ := os.ReadDir(wd); len(entries) > 1 {
			t.Errorf("%s alone leaves %v", what, entries)
		}
	}
	for what, beside := range map[string]map[string]string{"alone": {}, "beside a report": {"a.tar.gz": whole}} {
		beside["ovnsb_db.db"] = `5"],["map",[["a","b"]]]` + rest[40:60]
		got, _, _, err := takeFiles(t, Options{}, folder(t, beside))
		if err != nil || len(got) != 1 {
			t.Fatalf("a tailed OVN database %s: %v %v", what, got, err)
		}
		for _, node := range got {
			if lost := fmt.Sprint(node.Collections); !strings.Contains(node.kinds(), "ovn_sb") ||
				!strings.Contains(lost, "ovnsb_db.db: the beginning of the database is missing") {
				t.Errorf("a tailed OVN database %s: %s", what, lost)
			}
		}
	}
	dir := folder(t, map[string]string{"a.tar.gz": whole, "a.tar.gz.sha256": strings.Repeat("0", 64) + "\n"})
	if got, _, _, err := takeFiles(t, Options{}, filepath.Join(dir, "a.tar.gz")); err != nil ||
		got["n1"].kinds() != "ovs" {
		t.Errorf("beside another checksum: %v %v", got, err)
	}
	if _, _, _, err := takeFiles(t, Options{}, folder(t, map[string]string{"x": "hello"})); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
}

// TestOwnerIsReadOnce checks that the owner of a database is read once, because a
// database of gigabytes takes a minute to read.
func TestOwnerIsReadOnce(t *testing.T) {
	dir := folder(t, map[string]string{"conf.db": conf("n1")})
	r := &filesReader{ctx: t.Context()}
	db := recording.Database{File: archive.File{Spooled: filepath.Join(dir, "conf.db")}}
	for range 2 {
		if owner := r.owner(&db); owner.host != "n1" {
			t.Errorf("%+v", owner)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSaveScriptIsReadAndNeverRun checks that the script of ovs-save provides the
// bridges and versions, is kept for its TLV maps, and is never run.
func TestSaveScriptIsReadAndNeverRun(t *testing.T) {
	canary := filepath.Join(t.TempDir(), "run")
	script := "touch " + canary + "\novs-ofctl -O OpenFlow14 add-tlv-map br0 '{class=0x102,type=0x80,len=4}->tun_metadata0'\n" +
		"ovs-ofctl -O OpenFlow14 --bundle replace-flows br0 \"/tmp/x/br0.flows.dump\"\n" +
		"ovs-ofctl -O OpenFlow13 add-flows br1 - << EOF\npriority=1 actions=drop\nEOF\n"
	got, _, _, err := takeFiles(t, Options{},
		folder(t, map[string]string{"restore.sh": script, "br0.flows.dump": "priority=7 actions=drop\n"}))
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	versions := map[string]string{}
	for _, w := range got {
		for _, f := range w.Collections[0].Files {
			versions[f.Path] = f.OpenFlow
		}
		raw, err := os.ReadFile(filepath.Join(w.Path, "restore_flows", "br1.flows.dump"))
		if err != nil || string(raw) != "priority=1 actions=drop\n" {
			t.Errorf("%q %v", raw, err)
		}
	}
	for path, version := range map[string]string{"restore_flows/br0.flows.dump": "OpenFlow14",
		"restore_flows/br1.flows.dump": "OpenFlow13", "restore_flows/do_restore.sh": ""} {
		if got, there := versions[path]; !there || got != version {
			t.Errorf("%s: %q of %v", path, got, versions)
		}
	}
	if _, err := os.Stat(canary); err == nil {
		t.Error("the script was run")
	}
}

func TestBridgeOfAName(t *testing.T) {
	for name, want := range map[string]string{
		"dump-flows_br-int.txt": "br-int", "ovs-ofctl_-O_OpenFlow13_dump-flows_br-ex": "br-ex", "br0.flows.dump": "br0",
		"br-int/flows.txt": "br-int", "br-int-flows.txt": "br-int", "flows.txt": "", "br-int.OpenFlow14.log": "br-int",
		// Numbers, dates and hosts before or after the command.
		"09_ovs-ofctl_dump-flows_br-int.txt": "br-int", "09-ovs-ofctl-dump-flows-br-int.txt": "br-int",
		"9. ovs-ofctl dump-flows br-tenant_a.txt":                 "br-tenant_a",
		"2024-01-15_ovs-ofctl_dump-flows_s1.txt":                  "s1",
		"20240115T103000Z-ovs-ofctl.dump-flows.vmbr0.log":         "vmbr0",
		"ovs-ofctl_dump-flows_br-tun_2024-01-15_10-30-00.txt":     "br-tun",
		"ovs-ofctl_dump-flows_br0-1705314600.txt":                 "br0",
		"compute-1.example.com_ovs-ofctl_dump-flows_br-ex.txt":    "br-ex",
		"overcloud-novacompute-0-ovs-ofctl-dump-flows-br-lan.txt": "br-lan",
		"03_compute-1_br0_flows_before.txt":                       "br0",
		"ovs-ofctl_dump-flows_br-int_node1.txt":                   "br-int",
		"10_ovs_ofctl_dump_flows_br_int.txt":                      "br-int",
		"09_br-int.flows.dump":                                    "br-int", "case/br0/01.txt": "br0",
		"ovs-br0_flows.txt": "ovs-br0", "br-ex-2_flows.txt": "br-ex-2", "br_int-flows.txt": "br_int",
		// Names without a bridge.
		"09_ovs-ofctl_dump-flows.txt": "", "01_flows.txt": "", "flows_2024-01-15.txt": "", "node1_flows.txt": "",
		"2024-01-15/compute-0.example.com-flows.txt": "", "dump-flows_before.txt": "", "flows-br0_br1.txt": "br0_br1",
		"flows_foo_dump-flows_bar.txt": "",
	} {
		expect.Equal(t, bridgeOf(name), want, name)
	}
}

// TestFilesOfNumberedCommandsAreRead checks that the outputs of commands are found, and each with its bridge, where
// their files have numbers, dates, hosts and other separators.
func TestFilesOfNumberedCommandsAreRead(t *testing.T) {
	got, found, _, err := takeFiles(t, Options{}, folder(t, map[string]string{
		"01_ovs-vsctl_show.txt":                                    "no output\n",
		"2024-01-15_ovs-appctl_dpif.show.txt":                      "system@ovs-system: hit:0 missed:0\n",
		"03_br0.stp.show.txt":                                      "---- br0 ----\n",
		"node1-ovs-appctl_fdb.show_br-ex.txt":                      " port  VLAN  MAC                Age\n",
		"09_ovs-ofctl_dump-flows_br-int.txt":                       flowText,
		"10-ovs-ofctl-dump-flows-br-ex.txt":                        flowText,
		"2024-01-15_10-30_node1_ovs-ofctl_dump-flows_br0.txt":      flowText,
		"ovs-ofctl_dump-flows_vmbr0_20240115.txt":                  flowText,
		"ovs-ofctl.dump-flows.br-tun.2024-01-15T10:30:00Z.log":     flowText,
		"20240115103000 ovs-ofctl -O OpenFlow13 dump-flows s1.txt": flowText,
	}))
	if err != nil || len(got) != 1 {
		t.Fatal(got, found, err)
	}
	for _, node := range got {
		var paths []string
		for _, file := range node.Collections[0].Files {
			paths = append(paths, file.Path)
		}
		slices.Sort(paths)
		expect.Equal(t, paths, []string{"recorded/bridges/br-ex/fdb.show", "recorded/bridges/br0/stp.show",
			"recorded/dpif.show", "recorded/ovs-vsctl.show", "restore_flows/br-ex.flows.dump",
			"restore_flows/br-int.flows.dump", "restore_flows/br-tun.flows.dump", "restore_flows/br0.flows.dump",
			"restore_flows/s1.flows.dump", "restore_flows/vmbr0.flows.dump"})
	}
}

// TestRecordedFilesAddedByHand checks that files with the names of recorded commands
// are collected, both from a plain folder and from one with the layout of a workdir.
func TestRecordedFilesAddedByHand(t *testing.T) {
	const tree = "---- br0 ----\nBridge ID:\n  stp-priority  32768\n"
	for what, files := range map[string]map[string]string{
		"beside a dump": {"br0.flows.dump": flowText, "br0.stp.show": tree, "br0/rstp.show": tree,
			"dpif.show.txt": "system@ovs-system: hit:0 missed:0\n"},
		"a workdir": {"restore_flows/br0.flows.dump": flowText, "recorded/bridges/br0/stp.show": tree,
			"recorded/bridges/br0/rstp.show": tree,
			"recorded/dpif.show":             "system@ovs-system: hit:0 missed:0\n"},
	} {
		got, found, _, err := takeFiles(t, Options{}, folder(t, files))
		if err != nil || len(got) != 1 || !slices.Contains(found.Inputs[0].Kinds, "3 recorded outputs") {
			t.Fatalf("%s: %v %+v %v", what, got, found, err)
		}
		for _, w := range got {
			for _, path := range []string{"recorded/bridges/br0/stp.show", "recorded/bridges/br0/rstp.show",
				"recorded/dpif.show", "restore_flows/br0.flows.dump"} {
				if !slices.ContainsFunc(w.Collections[0].Files, func(f workdir.File) bool { return f.Path == path }) {
					t.Errorf("%s: no %s in %+v", what, path, w.Collections[0].Files)
				}
			}
		}
	}
}

// pod is the YAML of a pod as a must-gather has it.
func pod(name, node string) string {
	return "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name +
		"\n  namespace: openshift-ovn-kubernetes\nspec:\n  nodeName: " + node +
		"\n  containers:\n  - name: kube-rbac-proxy\n    image: quay.io/proxy\n  - name: ovn-controller\n    image: quay.io/ovn@sha256:" + node + "\n  - name: z\n    image: quay.io/z\n"
}

// TestPodsOfAMustGatherNameItsNodes checks that each of six nodes keeps its own
// databases, although they are equal and do not name the node.
func TestPodsOfAMustGatherNameItsNodes(t *testing.T) {
	files := map[string]string{"mg/version": "openshift/must-gather\n4.14.1\n",
		"mg/timestamp": "2026-01-02 10:00:00.5 +0000 UTC m=+0.1\n2026-01-02 10:04:00.5 +0000 UTC m=+240\n"}
	for i := range 6 {
		name := fmt.Sprintf("ovnkube-node-%cxxxx", 'a'+i)
		files["mg/namespaces/openshift-ovn-kubernetes/pods/"+name+"/"+name+".yaml"] = pod(name, fmt.Sprintf("worker-%d", i))
		files["mg/network_logs/ovnk_database_store/"+name+"_nbdb"] = zone("OVN_Northbound", "")
		files["mg/network_logs/ovnk_database_store/"+name+"_sbdb"] = zone("OVN_Southbound", "")
	}
	dir := folder(t, files)
	got, found, _, err := takeFiles(t, Options{}, dir)
	if err != nil || len(got) != 6 {
		t.Fatal(got, err)
	}
	for i := range 6 {
		w := got[fmt.Sprintf("worker-%d", i)]
		expect.Equal(t, w.kinds(), "ovn_nb ovn_sb", "worker-", i, w)
		for _, c := range w.Collections {
			if want := fmt.Sprintf("quay.io/ovn@sha256:worker-%d", i); c.Image != want {
				t.Errorf("worker-%d: image %q", i, c.Image)
			}
			for _, f := range c.Files {
				if len(f.Remarks) > 0 || !strings.Contains(f.Origin, fmt.Sprintf("ovnkube-node-%cxxxx", 'a'+i)) {
					t.Errorf("worker-%d: %+v", i, f)
				}
			}
		}
	}
	want := []string{"the OVN NB databases of worker-0, worker-1, worker-2, worker-3, worker-4, worker-5 are equal",
		"the OVN SB databases of worker-0, worker-1, worker-2, worker-3, worker-4, worker-5 are equal"}
	slices.Sort(found.Remarks)
	expect.Equal(t, found.Remarks, want)
	// Without the pods' YAML, the pods name the databases.
	if err := os.RemoveAll(filepath.Join(dir, "mg/namespaces")); err != nil {
		t.Fatal(err)
	}
	if got, _, _, err = takeFiles(t, Options{}, dir); err != nil || len(got) != 6 ||
		got["ovnkube-node-cxxxx"].kinds() != "ovn_nb ovn_sb" {
		t.Errorf("without pods: %v %v", got, err)
	}
}

// TestTwoMustGathersOfOneClusterStayApart checks that the nodes of two must-gathers are
// named for their days.
func TestTwoMustGathersOfOneClusterStayApart(t *testing.T) {
	files := map[string]string{}
	for _, day := range []string{"2026-01-02", "2026-01-05"} {
		files[day+".tar.gz"] = packed(t, map[string]string{"mg/version": "openshift/must-gather\n4.14.1\n",
			"mg/timestamp": day + " 10:00:00.5 +0000 UTC m=+0.1\n",
			"mg/network_logs/ovnkube-node-aaaaa_conf.db":     conf("n1"),
			"mg/network_logs/n1_ovs_ofctl_dump_flows_br_int": flowText})
	}
	dir := folder(t, files)
	for _, paths := range [][]string{{dir},
		{filepath.Join(dir, "2026-01-02.tar.gz"), filepath.Join(dir, "2026-01-05.tar.gz")}} {
		got, _, _, err := takeFiles(t, Options{}, paths...)
		if err != nil || len(got) != 2 || got["n1-2026-01-02"].kinds() != "ovs" || got["n1-2026-01-05"].kinds() != "ovs" {
			t.Errorf("%v: %v %v", paths, got, err)
		}
		if got, _, _, err := takeFiles(t, Options{Nodes: []string{"n1"}}, paths...); err != nil || len(got) != 2 {
			t.Errorf("%v: --node with the host's name: %v %v", paths, got, err)
		}
	}
}

// TestEqualLooseDatabasesAreOne checks that copies of a database are one remark.
func TestEqualLooseDatabasesAreOne(t *testing.T) {
	files := map[string]string{}
	for i := range 6 {
		files[fmt.Sprintf("copy-%d/ovnnb_db.db", i)] = zone("OVN_Northbound", "")
	}
	got, found, _, err := takeFiles(t, Options{}, folder(t, files))
	if err != nil || len(got) != 1 || len(found.Remarks) != 1 ||
		!strings.HasPrefix(found.Remarks[0], "6 files are the same OVN NB database") {
		t.Errorf("%v %q %v", got, found.Remarks, err)
	}
}

// TestLabelIsNotPartOfTheName checks that the OVS database names the node of a report
// that has only the name of its archive, in which a label follows the node's name.
func TestLabelIsNotPartOfTheName(t *testing.T) {
	for folderName, c := range map[string]struct{ hostname, want string }{
		"sosreport-cmp-1-cmp-1-2026-11-21-dbxezaf":     {"cmp-1", "cmp-1"},
		"sosreport-cmp-1-case-2026-11-21-dbxezaf":      {"cmp-1.example.org", "cmp-1.example.org"},
		"sosreport-cmp-1-a-0123456-2026-11-21-dbxezaf": {"cmp-1", "cmp-1"},
		"sosreport-cmp-1.0123456-20261121234301":       {"cmp-1", "cmp-1"},
		"sosreport-cmp-1-2026-11-21-dbxezaf":           {"cmp", "cmp"},
		"sosreport-cmp-10-2026-11-21-dbxezaf":          {"cmp-1", "cmp-10"},
	} {
		files := map[string]string{}
		for name, body := range reportFiles(c.hostname) {
			_, rel, _ := strings.Cut(name, "/")
			files[folderName+"/"+rel] = body
		}
		archive := filepath.Join(folder(t, map[string]string{"x.tar.gz": packed(t, files)}), "x.tar.gz")
		got, _, _, err := takeFiles(t, Options{}, archive)
		if err != nil || got[c.want].Collections == nil {
			t.Errorf("collect: %s of %s: %v %v", folderName, c.hostname, got, err)
		}
		list, err := collectReport(newWorkdir(t), archive, both, Options{})
		if err != nil || list[0].Host != c.want {
			t.Errorf("collect-sos: %s of %s: %v %v", folderName, c.hostname, list, err)
		}
	}
}

// TestOtherDatabasesAreNamed checks databases that no replica serves: alone they are nothing to
// collect, and beside a node's data each is named.
func TestOtherDatabasesAreNamed(t *testing.T) {
	ic := tableDatabase("OVN_IC_Northbound", "IC_NB_Global", `"options":`+stringMap, `"options":["map",[]]`)
	const why = `it is the database "OVN_IC_Northbound" of ovn-ic, which connects zones`
	alone := folder(t, map[string]string{"ovn_ic_nb_db.db": ic})
	if _, _, _, err := takeFiles(t, Options{}, alone); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("alone: %v", err)
	}
	files := reportFiles("n1")
	files["sosreport-n1-2026-01-02-abcdefg/var/lib/ovn/ovn_ic_nb_db.db"] = ic
	written, found, _, err := takeFiles(t, Options{},
		folder(t, map[string]string{"a.tar.gz": packed(t, files), "ovn_ic_nb_db.db": ic}))
	if err != nil {
		t.Fatal(err)
	}
	remarks := found.Remarks
	for _, collection := range written["n1"].Collections {
		remarks = append(remarks, collection.Remarks...)
	}
	if n := strings.Count(strings.Join(remarks, "\n"), why); n != 2 {
		t.Errorf("%d remarks name it: %q", n, remarks)
	}
}
