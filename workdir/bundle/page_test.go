package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ovs-offline/internal/archive"
)

// unpack returns the files of a bundle.
func unpack(t *testing.T, bundle []byte) (entries []entry) {
	t.Helper()
	zip, err := zstd.NewReader(bytes.NewReader(bundle))
	if err != nil {
		t.Fatal(err)
	}
	defer zip.Close()
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry{*h, string(text)})
	}
}

// extract returns what tar unpacks of a bundle for a name, "" for nothing.
func extract(t *testing.T, bundle []byte, name string) string {
	t.Helper()
	for _, e := range unpack(t, bundle) {
		if e.header.Name == name {
			return e.text
		}
	}
	return ""
}

// TestPageIsForPeopleWithoutTheProgram checks that tar unpacks the page of a bundle, that load leaves it out and
// says that there is one, and that the data is the same with and without it.
func TestPageIsForPeopleWithoutTheProgram(t *testing.T) {
	nodes := pair(t)
	for name, c := range map[string]struct {
		extras Extras
		set    bool
	}{
		"a node":               {Extras{Page: []byte("<p>the case</p>")}, false},
		"a node with an image": {Extras{Page: []byte("<p>the case</p>"), Image: image("the archive")}, false},
		"a set":                {Extras{Page: []byte("<p>the case</p>")}, true},
		"a set with an image":  {Extras{Page: []byte("<p>the case</p>"), Image: image("the archive")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if c.set {
				if _, err := SaveSet(t.Context(), nodes, "test", c.extras, &b); err != nil {
					t.Fatal(err)
				}
			} else if _, err := Save(t.Context(), nodes[0].Dir, "test", c.extras, &b); err != nil {
				t.Fatal(err)
			}
			if text := extract(t, b.Bytes(), PageName); text != "<p>the case</p>" {
				t.Errorf("tar unpacks %q", text)
			}
			other := Workdir{"a", lock(t)}
			var loaded Loaded
			var err error
			if c.set {
				var all []Loaded
				if all, err = loadSet(t, b.Bytes(), archive.Limits{}, other); err == nil {
					loaded = all[0]
				}
			} else {
				loaded, err = load(t.Context(), other.Dir, bytes.NewReader(b.Bytes()), archive.Limits{}, nil)
			}
			if err != nil || !loaded.Page || (loaded.Image != nil) != (c.extras.Image != nil) {
				t.Fatalf("loaded %+v, %v", loaded, err)
			}
			same(t, content(t, nodes[0].Dir), content(t, other.Dir))
		})
	}
}

// TestPageThatDiffersIsRefused changes a page in a bundle, and leaves it out.
func TestPageThatDiffersIsRefused(t *testing.T) {
	var b bytes.Buffer
	if _, err := Save(t.Context(), filled(t), "test", Extras{Page: []byte("<p>the case</p>")}, &b); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(entry) (entry, bool){
		"another text": func(e entry) (entry, bool) { e.text = strings.ToUpper(e.text); return e, true },
		"another size": func(e entry) (entry, bool) { return plain(PageName, e.text+"!"), true },
		"another name": func(e entry) (entry, bool) { return plain("other.html", e.text), true },
		"not there":    func(e entry) (entry, bool) { return e, false },
		"a link": func(e entry) (entry, bool) {
			e.header.Typeflag, e.header.Linkname, e.header.Size, e.text = tar.TypeSymlink, "/etc/passwd", 0, ""
			return e, true
		},
	} {
		var entries []entry
		for _, e := range unpack(t, b.Bytes()) {
			kept := true
			if e.header.Name == PageName {
				e, kept = change(e)
			}
			if kept {
				entries = append(entries, e)
			}
		}
		if _, err := load(t.Context(), lock(t), bytes.NewReader(pack(t, entries...)), archive.Limits{}, nil); !errors.Is(err,
			ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
