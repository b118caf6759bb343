package names

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/rules"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

const (
	knownA = "5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0001"
	knownB = "5c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0002"
	acl    = "6c9a0cf4-8f5c-4c0b-a1a1-6e3e1f2b0003"
)

// inPart returns a deployment of a node of which only parts of tables are known.
func inPart(t *testing.T, text string, known map[string]file.KnownTable) *snapshot.Deployment {
	t.Helper()
	wd, err := workdir.Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := wd.HostRecorded(workdir.HostParts(workdir.NB))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := workdir.File{Path: "host/" + workdir.HostParts(workdir.NB), Partial: &workdir.Partial{Tables: known}}
	manifest := workdir.Manifest{Format: workdir.FormatVersion,
		Collections: []workdir.Collection{{Kind: workdir.Host, Files: []workdir.File{entry}}}}
	if err := workdir.WriteUnsynced(filepath.Join(wd.Path(), "manifest.json"), manifest); err != nil {
		t.Fatal(err)
	}
	d := &snapshot.Deployment{Nodes: []snapshot.Member{{Name: "n1", Dir: wd}}}
	if err := d.OpenParts(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// TestKnownRowsNameEndpoints checks that ports of which some columns are known are endpoints, and that a packet
// between them says that it may be another one.
func TestKnownRowsNameEndpoints(t *testing.T) {
	d := inPart(t, "Logical_Switch table\n_uuid : "+acl+"\nname : sw0\nports : ["+knownA+", "+knownB+"]\n"+
		"Logical_Switch_Port table\n_uuid : "+knownA+"\nname : vm1\naddresses : [\"0a:00:00:00:00:01 10.0.0.1\"]\n\n_uuid : "+
		knownB+"\nname : vm2\naddresses : [\"0a:00:00:00:00:02 10.0.0.2\"]\n",
		map[string]file.KnownTable{"Logical_Switch": {Rows: 1, All: true, Columns: []string{"_uuid", "name", "ports"}},
			"Logical_Switch_Port": {Rows: 2, Columns: []string{"_uuid", "addresses", "name"}}})
	known := load(t, d)
	from, err := known.Find("vm1", Filter{})
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, from.Switch, "sw0")
	if byUUID, err := known.Find(knownB, Filter{}); err != nil || byUUID.Name != "vm2" {
		t.Errorf("the port by its UUID: %v, %v", byUUID.Name, err)
	}
	if !strings.Contains(known.unknown, "known in part") {
		t.Errorf("the packet is %q", known.unknown)
	}
}

// TestKnownColumnsAreInWords checks that the words for an ACL tell only what is known of it.
func TestKnownColumnsAreInWords(t *testing.T) {
	for name, c := range map[string]struct {
		columns string
		known   []string
		want    string
	}{
		"all": {"name : deny\naction : drop\npriority : 7\ndirection : to-lport\nmatch : ip4\nexternal_ids : {}\n",
			nil, "ACL deny (priority 7, drop)"},
		"no priority": {"name : deny\naction : drop\n", []string{"_uuid", "action", "name"}, "ACL deny"},
		"no name":     {"priority : 7\n", []string{"_uuid", "priority"}, "ACL " + acl},
	} {
		d := inPart(t, "ACL table\n_uuid : "+acl+"\n"+c.columns,
			map[string]file.KnownTable{"ACL": {Rows: 1, Columns: c.known}})
		words, err := rules.New(d.Named().NB, nil).DescribeNorthbound("ACL", acl)
		if err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, words, c.want, name)
	}
}
