package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

// pair returns two nodes. Their dumps of br-int are equal, those of br-ex differ.
func pair(t *testing.T) []Workdir {
	t.Helper()
	nodes := []Workdir{{"a", filled(t)}, {"b", filled(t)}}
	files.Write(t, nodes[1].Dir.DumpFile("br-ex", workdir.Flows), "by another hand\n")
	return nodes
}

func saveSet(t *testing.T, nodes []Workdir) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := SaveSet(t.Context(), nodes, "test", Extras{}, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func loadSet(t *testing.T, bundle []byte, limits archive.Limits, nodes ...Workdir) ([]Loaded, error) {
	t.Helper()
	b, err := Open(t.Context(), bytes.NewReader(bundle), limits)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	folder, err := workdir.Lock(filepath.Dir(nodes[0].Dir.Path()))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Unlock()
	return b.LoadSet(folder, nodes, nil)
}

func TestSetRoundTrip(t *testing.T) {
	nodes := pair(t)
	first := saveSet(t, nodes)
	if again := saveSet(t, []Workdir{nodes[1], nodes[0]}); !bytes.Equal(first, again) {
		t.Error("the same nodes in another order are saved with other bytes")
	}
	others := []Workdir{{"a", lock(t)}, {"b", lock(t)}}
	loaded, err := loadSet(t, first, archive.Limits{}, others...)
	if err != nil || len(loaded) != 2 || loaded[1].Collections[0].Host != "node1" {
		t.Fatalf("%+v, %v", loaded, err)
	}
	for i := range nodes {
		same(t, content(t, nodes[i].Dir), content(t, others[i].Dir))
	}
	if !bytes.Equal(first, saveSet(t, others)) {
		t.Error("the loaded nodes are saved with other bytes")
	}
}

// TestEqualFilesOfASetAreSavedOnce checks that each node can be loaded without the one
// that comes first in the file.
func TestEqualFilesOfASetAreSavedOnce(t *testing.T) {
	nodes := pair(t)
	whole := saveSet(t, nodes)
	var names []string
	for _, e := range unpack(t, whole) {
		names = append(names, e.header.Name)
	}
	want := "bundle.json a/manifest.json b/manifest.json a/restore_flows/br-ex.flows.dump a/restore_flows/br-int.flows.dump b/restore_flows/br-ex.flows.dump"
	expect.Equal(t, strings.Join(names, " "), want)
	for _, n := range nodes {
		other := Workdir{n.Name, lock(t)}
		if _, err := loadSet(t, whole, archive.Limits{}, other); err != nil {
			t.Error(n.Name, err)
		}
		same(t, content(t, n.Dir), content(t, other.Dir))
	}
}

func TestLoadRefusesASet(t *testing.T) {
	wd := filled(t)
	before := content(t, wd)
	if _, err := load(t.Context(), wd, bytes.NewReader(saveSet(t, pair(t))), archive.Limits{}, nil); !errors.Is(err,
		ErrSet) || !strings.Contains(err.Error(), "a, b") {
		t.Error(err)
	}
	same(t, before, content(t, wd))
}

func headOfSet(nodes ...HeadNode) entry {
	raw, _ := json.Marshal(Head{Format: FormatSet, Workdir: workdir.FormatVersion, Nodes: nodes})
	return plain(headName, string(raw))
}

// TestHostileSets checks that each hostile bundle is refused, that the nodes are unchanged,
// and that no file appears outside of them.
func TestHostileSets(t *testing.T) {
	empty := `{"format":1}`
	x := file("recorded/x", "x")
	a, b := plain("a/manifest.json", empty), plain("b/manifest.json", empty)
	for name, entries := range map[string][]entry{
		"no nodes":              {headOfSet()},
		"upwards":               {headOfSet(HeadNode{Name: ".."}), plain("../manifest.json", empty)},
		"hidden":                {headOfSet(HeadNode{Name: ".shared"}), plain(".shared/manifest.json", empty)},
		"a path":                {headOfSet(HeadNode{Name: "a/b"}), plain("a/b/manifest.json", empty)},
		"no name":               {headOfSet(HeadNode{}), plain("/manifest.json", empty)},
		"a list":                {headOfSet(HeadNode{Name: "a,b"}), plain("a,b/manifest.json", empty)},
		"a control character":   {headOfSet(HeadNode{Name: "a\x1b"}), plain("a\x1b/manifest.json", empty)},
		"twice":                 {headOfSet(HeadNode{Name: "a"}, HeadNode{Name: "a"}), a, a},
		"not in order":          {headOfSet(HeadNode{Name: "b"}, HeadNode{Name: "a"}), b, a},
		"a manifest is missing": {headOfSet(HeadNode{Name: "a"}, HeadNode{Name: "b"}), a},
		"a file of another node": {headOfSet(HeadNode{"a", []workdir.File{x}}, HeadNode{Name: "b"}), a, b,
			plain("b/recorded/x", "x")},
		"the file of a copy": {headOfSet(HeadNode{"a", []workdir.File{x}}, HeadNode{"b", []workdir.File{x}}), a, b,
			plain("a/recorded/x", "x"), plain("b/recorded/x", "x")},
		"a copy of a missing file": {headOfSet(HeadNode{"a", []workdir.File{x}}, HeadNode{"b", []workdir.File{x}}), a, b},
		"a copy of another text": {headOfSet(HeadNode{"a", []workdir.File{x}}, HeadNode{"b", []workdir.File{x}}), a, b,
			plain("a/recorded/x", "y")},
		"a copy upwards": {headOfSet(HeadNode{"a", []workdir.File{x}},
			HeadNode{"b", []workdir.File{file("recorded/../../x", "x")}}), a, b, plain("a/recorded/x", "x")},
		"a copy is a folder": {headOfSet(HeadNode{"a", []workdir.File{x}},
			HeadNode{"b", []workdir.File{x, file("recorded/x/y", "x")}}), a, b, plain("a/recorded/x", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := pair(t)
			before := []map[string]string{content(t, nodes[0].Dir), content(t, nodes[1].Dir)}
			if _, err := loadSet(t, pack(t, entries...), archive.Limits{}, nodes...); !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			for i, n := range nodes {
				same(t, before[i], content(t, n.Dir))
				if _, err := os.Lstat(filepath.Join(filepath.Dir(n.Dir.Path()), "x")); err == nil {
					t.Error("a file outside of the workdir was made")
				}
			}
		})
	}
}

// TestCopiesAreLimited checks that a small bundle of many nodes with one file does not
// fill the disk.
func TestCopiesAreLimited(t *testing.T) {
	text := strings.Repeat("x", 1<<10)
	x := file("recorded/x", text)
	limits := archive.Default()
	limits.Bytes = 3 << 10
	bundle := pack(t, headOfSet(HeadNode{"a", []workdir.File{x}},
		HeadNode{"b", []workdir.File{x, file("recorded/y", text), file("recorded/z", text), file("recorded/zz", text)}}),
		plain("a/manifest.json", `{"format":1}`), plain("b/manifest.json", `{"format":1}`), plain("a/recorded/x", text))
	if _, err := loadSet(t, bundle, limits, pair(t)...); !errors.Is(err, archive.ErrLimit) {
		t.Error(err)
	}
}
