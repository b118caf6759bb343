package sosreport

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"ovs-offline/internal/limit"
	"ovs-offline/internal/seeds"
)

// FuzzMangle: the file name of any command is one that sos could have given.
func FuzzMangle(f *testing.F) {
	for _, seed := range []string{"/usr/bin/ovs-ofctl dump-flows br0", "ovs-ofctl show br@@odd", "/sbin/x", "", "../..", strings.Repeat("ü", 300), "a\x00b\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		name := mangle(command)
		if strings.ContainsAny(name, "/ \n\x00@:") || strings.HasPrefix(name, ".") || utf8.RuneCountInString(name) > 255 {
			t.Errorf("%q becomes %q", command, name)
		}
	})
}

// FuzzOpen: no bytes make Open panic, and what it takes stays in the spool.
func FuzzOpen(f *testing.F) {
	whole := func(members ...member) []byte { return tarOf(&testing.T{}, members...) }
	f.Add(whole(under(top, file(plugin+"ovs-vsctl_list-br", "br0\n"), symlink("etc/openvswitch/conf.db", "../x"))...))
	f.Add(whole(under(top, file(plugin+"ovs-vsctl_list-br", "../br\n-x\n"), symlink(plugin+"ovs-ofctl_dump-flows_..br", "/etc/passwd"), hardlink("etc/openvswitch/conf.db", "etc/openvswitch/conf.db"), member{name: "etc/openvswitch/x.db", typ: tar.TypeFifo})...))
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add([]byte("BZh9"))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "r")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		spool := t.TempDir()
		r, err := Open(t.Context(), path, spool, nil)
		if err != nil {
			return
		}
		for _, o := range r.outputs {
			checkSpooled(t, spool, o.File, o.Origin)
		}
		for _, d := range r.Databases {
			checkSpooled(t, spool, d.File, d.Origin)
		}
	})
}

func checkSpooled(t *testing.T, spool, file, origin string) {
	t.Helper()
	if info, err := os.Lstat(file); filepath.Dir(file) != spool || err != nil || !info.Mode().IsRegular() {
		t.Errorf("%q is no file of the spool: %v", file, err)
	}
	if !filepath.IsLocal(origin) {
		t.Errorf("%q is taken for a place in the report", origin)
	}
}

// FuzzManifest gives any manifest and any list of bridges beside real dumps:
// what is found is a file of the report, and each thing is found once.
func FuzzManifest(f *testing.F) {
	const list = "br-int\nbr@odd\n"
	seeds.Captured(f, "manifest.json", 8192, func(content []byte) { f.Add(content, list) })
	for _, text := range []string{"", "{", "[]", "null", `{"version":1}`, `{"version":"4.5","components":{"report":{"plugins":{"openvswitch":{"commands":[{"exec":"/usr/bin/ovs-ofctl dump-flows br-int","filepath":"../../../etc/passwd"},{"exec":"ovs-ofctl dump-flows ../x","filepath":"sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int","truncated":true},null,{}]},"x":null}}}}`} {
		f.Add([]byte(text), list)
	}
	f.Add([]byte(nil), "-x\na;touch b\n../br\n\n\x1b[31mred\n"+strings.Repeat("b", 300)+"\novs-vsctl: no\n")
	f.Fuzz(func(t *testing.T, manifest []byte, bridges string) {
		spool := t.TempDir()
		c := &contents{spool: spool, trees: map[string]*tree{}, meter: limit.New(limit.Default(), nil)}
		for name, body := range map[string]string{
			"sos_reports/manifest.json": string(manifest), plugin + "ovs-vsctl_-t_5_list-br": bridges,
			plugin + "ovs-ofctl_dump-flows_br-int": "a", plugin + "ovs-ofctl_-O_OpenFlow13_dump-flows_br-int": "b", plugin + "ovs-ofctl_dump-flows_br_odd": "c",
		} {
			if err := c.keep(c.treeOf(""), name, 0, strings.NewReader(body)); err != nil {
				t.Fatal(err)
			}
		}
		c.choose()
		r := &Report{}
		if err := c.index(r); err != nil {
			t.Fatal(err)
		}
		for _, b := range r.Bridges {
			if b == "" || strings.Contains(b, "\n") {
				t.Errorf("a bridge %q", b)
			}
		}
		for _, o := range r.outputs {
			checkSpooled(t, spool, o.File, o.Origin)
		}
	})
}

// FuzzPlace: no name of an archive's entry stands for a place outside of the report.
func FuzzPlace(f *testing.F) {
	for _, name := range []string{"./sosreport-x/etc/openvswitch/conf.db", "../etc/openvswitch/conf.db", "/etc/openvswitch/conf.db", "a/../../etc/openvswitch/conf.db",
		"x/host/var/lib/ovn/x.db", "sos_commands/openvswitch/a\x00b", "sos_commands//openvswitch/../../..", "", ".", "..", "etc/openvswitch/..db"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		c := &contents{trees: map[string]*tree{}}
		tree, rel, ok := c.place(name)
		if !ok {
			return
		}
		if !filepath.IsLocal(rel) || !wanted(rel) || strings.Contains(tree.top, "/") || tree.top == ".." {
			t.Errorf("%q is taken for %q below %q", name, rel, tree.top)
		}
		if dir := filepath.Dir(filepath.Join(tree.top, rel)); !mayHold(dir) {
			t.Errorf("%q is wanted, but its folder %q would be passed over", name, dir)
		}
	})
}
