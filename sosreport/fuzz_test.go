package sosreport

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"ovs-offline/internal/archive"
	"ovs-offline/test/oracle/captures"
)

// FuzzMangle checks that the file name of any command is one that sos could have given.
func FuzzMangle(f *testing.F) {
	for _, seed := range []string{"/usr/bin/ovs-ofctl dump-flows br0", "ovs-ofctl show br@@odd", "/sbin/x", "", "../..",
		strings.Repeat("ü", 300), "a\x00b\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		name := mangle(command)
		if strings.ContainsAny(name, "/ \n\x00@:") || strings.HasPrefix(name, ".") || utf8.RuneCountInString(name) > 255 {
			t.Errorf("%q becomes %q", command, name)
		}
	})
}

// FuzzOpen checks that no input makes Open panic, and that all files it keeps are in
// the spool.
func FuzzOpen(f *testing.F) {
	whole := func(members ...member) []byte { return tarOf(&testing.T{}, members...) }
	f.Add(whole(under(top, file(plugin+"ovs-vsctl_list-br", "br0\n"), symlink("etc/openvswitch/conf.db", "../x"))...))
	f.Add(whole(under(top, file(plugin+"ovs-vsctl_list-br", "../br\n-x\n"),
		symlink(plugin+"ovs-ofctl_dump-flows_..br", "/etc/passwd"),
		hardlink("etc/openvswitch/conf.db", "etc/openvswitch/conf.db"),
		member{name: "etc/openvswitch/x.db", typ: tar.TypeFifo})...))
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
		r, err := Open(t.Context(), path, spool, archive.Default(), nil)
		if err != nil {
			return
		}
		for _, o := range r.All {
			checkSpooled(t, spool, o.Spooled, o.Origin)
		}
		for _, d := range r.Databases {
			checkSpooled(t, spool, d.Spooled, d.Origin)
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

// FuzzManifest combines any manifest and any list of bridges with real dumps. It checks
// that all outputs found are files of the report, and that each is found once.
func FuzzManifest(f *testing.F) {
	const list = "br-int\nbr@odd\n"
	captures.Captured(f, "manifest.json", 8192, func(content []byte) { f.Add(content, list) })
	for _, text := range []string{"", "{", "[]", "null", `{"version":1}`,
		`{"version":"4.5","components":{"report":{"plugins":{"openvswitch":{"commands":[{"exec":"/usr/bin/ovs-ofctl dump-flows br-int","filepath":"../../../etc/passwd"},{"exec":"ovs-ofctl dump-flows ../x","filepath":"sos_commands/openvswitch/ovs-ofctl_dump-flows_br-int","truncated":true},null,{}]},"x":null}}}}`} {
		f.Add([]byte(text), list)
	}
	f.Add([]byte(nil), "-x\na;touch b\n../br\n\n\x1b[31mred\n"+strings.Repeat("b", 300)+"\novs-vsctl: no\n")
	f.Fuzz(func(t *testing.T, manifest []byte, bridges string) {
		spool := t.TempDir()
		kept := &archive.Tree{Files: map[string]archive.File{}}
		for name, body := range map[string]string{
			"sos_reports/manifest.json": string(manifest), plugin + "ovs-vsctl_-t_5_list-br": bridges,
			plugin + "ovs-ofctl_dump-flows_br-int": "a", plugin + "ovs-ofctl_-O_OpenFlow13_dump-flows_br-int": "b",
			plugin + "ovs-ofctl_dump-flows_br_odd": "c",
		} {
			file := filepath.Join(spool, strings.ReplaceAll(name, "/", "_"))
			if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			kept.Files[name] = archive.File{Spooled: file, Size: int64(len(body))}
		}
		reports, err := Find(t.Context(), kept, archive.Limits{})
		if err != nil || len(reports) != 1 {
			t.Fatal(reports, err)
		}
		r := reports[0]
		for _, b := range r.Bridges {
			if b == "" || strings.Contains(b, "\n") {
				t.Errorf("a bridge %q", b)
			}
		}
		for _, o := range r.All {
			checkSpooled(t, spool, o.Spooled, o.Origin)
		}
	})
}

// FuzzTops checks, for any names of an archive's entries, that a report's top folder
// contains the files that mark it as a report, and that no report is inside another.
func FuzzTops(f *testing.F) {
	for _, name := range []string{"sosreport-x/etc/openvswitch/conf.db", "etc/openvswitch/conf.db",
		"x/host/var/lib/ovn/x.db",
		"sos_commands/openvswitch/a\x00b", "a/sos_commands/openvswitch/sos_commands/x", "sos_commands",
		"etc/openvswitch/..db"} {
		f.Add(name, "b/"+name)
	}
	f.Fuzz(func(t *testing.T, one, other string) {
		kept := &archive.Tree{Files: map[string]archive.File{}}
		for _, name := range []string{one, other} {
			if filepath.IsLocal(name) && filepath.Clean(name) == name {
				kept.Files[name] = archive.File{}
			}
		}
		found := topFolders(kept, true)
		for i, top := range found {
			if top != "" && !strings.HasPrefix(one, top+"/") && !strings.HasPrefix(other, top+"/") {
				t.Errorf("%q is the top of neither %q nor %q", top, one, other)
			}
			for j, more := range found {
				if i != j && (top == "" || strings.HasPrefix(more, top+"/")) {
					t.Errorf("%q is in %q", more, top)
				}
			}
		}
	})
}
