package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/files"
)

// seeds lists names that are unsuitable as file names.
var seeds = []string{"", ".", "..", "-", "-rf", "br0", "br-int", ".hidden", "a/b", "../../etc/passwd", "br@odd", "br:1", "br%41", "%", "%%", "%~",
	"a b", "a\nb", "a\x00b", "brücke", "\xff\xfe", "~", "$(id)", "`id`", "a,b", "CON", "br0.flows", strings.Repeat("x", 180), strings.Repeat("x", 181), strings.Repeat("/", 100), strings.Repeat("%", 59)}

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
	for _, foreign := range []string{"%41", "a b", "a/b", ".x", "-x", "%2d", "%4", "%zz", "", EncodeName(a), strings.Repeat("x", 200)} {
		if name, ok := DecodeName(foreign); ok {
			t.Errorf("%q is taken for the name %q", foreign, name)
		}
	}
}

// TestNamesAsFiles writes a file for each name into one folder.
func TestNamesAsFiles(t *testing.T) {
	d := fresh(t)
	for _, name := range seeds {
		for _, path := range []string{d.DumpFile(name, Flows), d.OtherDump(name, Groups, "OpenFlow10"), d.BridgeRecorded(name, RecordedFDB)} {
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
