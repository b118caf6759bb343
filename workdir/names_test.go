package workdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
)

// seeds lists names that are unsuitable as file names.
var seeds = []string{"", ".", "..", "-", "-rf", "br0", "br-int", ".hidden", "a/b", "../../etc/passwd", "br@odd", "br:1",
	"br%41", "%", "%%", "%~",
	"a b", "a\nb", "a\x00b", "brücke", "\xff\xfe", "~", "$(id)", "`id`", "a,b", "CON", "br0.flows",
	strings.Repeat("x", 180), strings.Repeat("x", 181), strings.Repeat("/", 100), strings.Repeat("%", 59)}

func checkName(t *testing.T, name string) {
	t.Helper()
	encoded := EncodeName(name)
	if encoded == "" || encoded == "." || encoded == ".." || encoded[0] == '-' || encoded[0] == '.' || len(encoded) > 200 {
		t.Errorf("%q becomes %q", name, encoded)
	}
	for i := range len(encoded) {
		if c := encoded[i]; !plainByte(c) && c != '%' && c != '~' {
			t.Errorf("%q becomes %q", name, encoded)
		}
	}
	switch back, ok := DecodeName(encoded); {
	case ok && back != name:
		t.Errorf("%q becomes %q, and that becomes %q", name, encoded, back)
	case !ok && len(name)*3 <= maxEncoded:
		t.Errorf("%q becomes %q, which cannot be decoded", name, encoded)
	}
}

func TestNames(t *testing.T) {
	taken := map[string]string{}
	for _, name := range seeds {
		checkName(t, name)
		if other, there := taken[EncodeName(name)]; there {
			t.Errorf("%q and %q become the same", name, other)
		}
		taken[EncodeName(name)] = name
	}
	for _, plain := range []string{"br0", "br-int", "a.b_c@d+e", "X9"} {
		if EncodeName(plain) != plain {
			t.Errorf("%q becomes %q", plain, EncodeName(plain))
		}
	}
	a, b := strings.Repeat("x", 300)+"1", strings.Repeat("x", 300)+"2"
	if EncodeName(a) == EncodeName(b) {
		t.Error("long names that differ become the same")
	}
	// A name that EncodeName does not return is refused: one bridge has one file name.
	for _, foreign := range []string{"%41", "a b", "a/b", ".x", "-x", "%2d", "%4", "%zz", "", EncodeName(a),
		strings.Repeat("x", 200)} {
		if name, ok := DecodeName(foreign); ok {
			t.Errorf("%q is taken for the name %q", foreign, name)
		}
	}
}

// TestNamesAsFiles writes a file for each name into one folder.
func TestNamesAsFiles(t *testing.T) {
	d := fresh(t)
	for _, name := range seeds {
		for _, path := range []string{d.DumpFile(name, Flows), d.OtherDump(name, Groups, "OpenFlow10"),
			d.BridgeRecorded(name, RecordedFDB)} {
			if rel, err := filepath.Rel(d.Path(), path); err != nil || !filepath.IsLocal(rel) {
				t.Errorf("%q: %s", name, path)
			}
			files.Write(t, path, name)
		}
	}
	for _, name := range seeds {
		if raw, err := os.ReadFile(d.DumpFile(name, Flows)); err != nil || string(raw) != name {
			t.Errorf("%q: %q %v", name, raw, err)
		}
	}
}

// TestDumpedBridges has dumps of bridges whose names are encoded, and files that are no dumps.
func TestDumpedBridges(t *testing.T) {
	d, err := Find(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if bridges, err := d.DumpedBridges(); err != nil || len(bridges) > 0 || d.DumpBytes() != 0 {
		t.Errorf("without dumps: %q, %d bytes, %v", bridges, d.DumpBytes(), err)
	}
	if err := os.MkdirAll(d.RestoreFlows(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.DumpFile("br-int", Flows), d.DumpFile("br-int", Groups), d.DumpFile("br/ex", Groups),
		d.DumpFile("a.flows", Meters), filepath.Join(d.RestoreFlows(), "flows.dump")} {
		if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if size := d.DumpBytes(); size != 25 {
		t.Errorf("%d bytes, want 25", size)
	}
	for want, kinds := range map[string][]Dump{"[a.flows br-int br/ex]": nil, "[br-int]": {Flows},
		"[br-int br/ex]": {Groups}, "[a.flows br-int]": {Flows, Meters}} {
		if bridges, err := d.DumpedBridges(kinds...); err != nil || fmt.Sprint(bridges) != want {
			t.Errorf("%q: %q %v, want %s", kinds, bridges, err, want)
		}
	}
}
