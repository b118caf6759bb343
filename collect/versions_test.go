package collect

import (
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// TestPrintedDatabaseNamesTheVersion checks the version of Open vSwitch of a node without
// conf.db, in the output of the tools themselves.
func TestPrintedDatabaseNamesTheVersion(t *testing.T) {
	ovs.Need(t, "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovsdb-client")
	conf := filepath.Join(t.TempDir(), "conf.db")
	ovs.Run(t, "ovsdb-tool", "create", conf, ovs.Schema)
	s := ovs.Serve(t, conf)
	vsctl := func(args ...string) string {
		return s.Run(append([]string{"ovs-vsctl", "--no-wait", "--db=" + s.Remote}, args...)...)
	}
	vsctl("init")
	version := func(command, text string) string {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n := &recording.Recording{All: []recording.Output{{File: archive.File{Spooled: path},
			Command: recording.Name(command)}}}
		p, err := judge(t.Context(), Named{Name: "node", Recording: n}, false)
		if err != nil {
			t.Fatal(err)
		}
		return p.Versions.OVS
	}
	list, dump := workdir.RecordedList("Open_vSwitch"), workdir.RecordedDatabaseDump
	if got := version(list, vsctl("list", "Open_vSwitch")); got != "" {
		t.Errorf("none is set: %q", got)
	}
	vsctl("set", "Open_vSwitch", ".", "ovs_version=2.17.9")
	for command, text := range map[string]string{list: vsctl("list", "Open_vSwitch"),
		dump: s.Run("ovsdb-client", "-f", "list", "dump", s.Remote, "Open_vSwitch")} {
		expect.Equal(t, version(command, text), "2.17.9", command)
	}
}

// TestCollectionsNameTheVersions checks the versions in the manifest of a real node, and
// of its databases alone.
func TestCollectionsNameTheVersions(t *testing.T) {
	wd := newWorkdir(t)
	list, err := collectReport(wd, compute, both, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		want := map[workdir.Kind]string{workdir.OVS: "3.1.0"}[c.Kind]
		if c.OVSVersion != want || c.OVNVersion != "23.03.1" {
			t.Errorf("%s: OVS %q, OVN %q", c.Kind, c.OVSVersion, c.OVNVersion)
		}
	}
	alone := newWorkdir(t)
	for _, k := range workdir.Kinds() {
		c := takeDatabase(t, alone, k, wd.Database(k), false)
		want := map[workdir.Kind][2]string{workdir.OVS: {"3.1.0", ""}, workdir.NB: {"", "23.03.1"},
			workdir.SB: {"", "23.03.1"}}[k]
		if got := [2]string{c.OVSVersion, c.OVNVersion}; got != want {
			t.Errorf("%s alone: OVS and OVN %q", k, got)
		}
	}
	// Another OVS database states its own version, or keeps that of the node's report.
	if c := takeDatabase(t, wd, workdir.OVS, save(t, names[workdir.OVS], 2), true); c.OVSVersion != "3.1.0" ||
		c.OVNVersion != "23.03.1" {
		t.Errorf("a database without a version: OVS %q, OVN %q", c.OVSVersion, c.OVNVersion)
	}
}
