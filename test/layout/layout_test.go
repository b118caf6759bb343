package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

const (
	root   = "../.."
	module = "ovs-offline"
)

func TestRepositoryKeepsItsLayout(t *testing.T) {
	all := listed(t)
	if len(all) < 30 || !slices.Contains(all["."], "cmd") {
		t.Fatalf("go list printed %d packages; the module's own imports %q", len(all), all["."])
	}
	for _, violation := range violations(all) {
		t.Error(violation)
	}
}

// listed returns the imports that go list prints.
func listed(t *testing.T) imports {
	t.Helper()
	all := imports{}
	for d := json.NewDecoder(strings.NewReader(goList(t, "-json=ImportPath,Imports", "./..."))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		folder, _ := folderOf(p.ImportPath)
		all[folder] = nil
		for _, path := range p.Imports {
			if imported, own := folderOf(path); own {
				all[folder] = append(all[folder], imported)
			}
		}
	}
}

// goList returns what go list prints, with the build tags of the Makefile if it has any.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"list"}
	if tags := regexp.MustCompile(`-tags=\S+`).FindString(string(makefile)); tags != "" {
		words = append(words, tags)
	}
	var stderr strings.Builder
	list := exec.CommandContext(t.Context(), "go", append(words, args...)...)
	list.Dir, list.Stderr = root, &stderr
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "PWD="+root)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, stderr.String())
	}
	return string(out)
}

// folderOf returns the folder of a package of this module.
func folderOf(path string) (folder string, own bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func TestViolations(t *testing.T) {
	for name, c := range map[string]struct {
		imports imports
		want    []string
	}{
		"layers": {imports{".": {"cmd"}, "cmd": {"replica", "internal/a"},
			"replica": {"internal/a"}, "internal/a": {"internal/b"}, "internal/b": nil}, nil},
		"internal imports product": {imports{"internal/a": {"replica/report"}, "replica/report": nil},
			[]string{"internal/a imports replica/report: internal may import only pkg/..., itself"}},
		"a collector that knows daemons": {imports{"collect/k8s": {"replica/runtime"}, "replica/runtime": nil},
			[]string{"collect/k8s imports replica/runtime: collect may import only sosreport, workdir/..., internal/..., pkg/..., itself"}},
		"an answer behind a door of a replica": {imports{"answer/trace": {"replica/scratch", "replica/restore"},
			"replica/scratch": nil, "replica/restore": nil},
			[]string{"answer/trace imports replica/restore: answer may import only " + strings.Join(allowed()["answer"], ", ") +
				", itself"}},
		"a folder without a room": {imports{"cmd": {"cmdline"}, "cmdline": nil},
			[]string{"cmd imports cmdline: cmd may import only " + strings.Join(allowed()["cmd"], ", ") + ", itself"}},
		"product imports test": {imports{"cmd": {"test/lab"}, "test/lab": nil},
			[]string{"cmd imports test/lab: cmd may import only " + strings.Join(allowed()["cmd"], ", ") + ", itself"}},
		"main imports scripts": {imports{".": {"scripts/man"}, "scripts/man": nil},
			[]string{". imports scripts/man: . may import only cmd, internal/garbage, itself"}},
		"test imports test and product": {imports{"test/a": {"test/b", "cmd"}, "test/b": nil, "scripts/c": {"test/a"},
			"cmd": nil}, nil},
		"siblings in a circle": {imports{"collect/a": {"collect/b"}, "collect/b": {"collect/a/x"}, "collect/a/x": nil},
			[]string{"circle: collect/a imports collect/b, collect/b imports collect/a/x"}},
		"three siblings in a circle": {imports{"internal/a": {"internal/b/x"}, "internal/b/y": {"internal/c"},
			"internal/b/x": nil, "internal/c": {"internal/a"}},
			[]string{"circle: internal/a imports internal/b/x, internal/b/y imports internal/c, internal/c imports internal/a"}},
		"nested siblings in a circle": {imports{"replica/a/x": {"replica/b/y"}, "replica/b/z": {"replica/a/w"},
			"replica/b/y": nil, "replica/a/w": nil},
			[]string{"circle: replica/a/x imports replica/b/y, replica/b/z imports replica/a/w"}},
		"children implement their parent": {imports{"replica/runtime": nil,
			"replica/runtime/process": {"replica/runtime"},
			"replica/runtime/choose":  {"replica/runtime", "replica/runtime/process"}}, nil},
		"parent imports one, another imports it": {imports{"collect": {"collect/table"}, "collect/table": nil,
			"collect/k8s": {"collect"}}, nil},
		"parent and child in a circle": {imports{"collect": {"collect/a/x"}, "collect/a/x": nil, "collect/a/y": {"collect"}},
			[]string{"circle: collect imports collect/a/x, collect/a/y imports collect"}},
		"parent, child, other child in a circle": {imports{"collect": {"collect/a"}, "collect/a": {"collect/b/x"},
			"collect/b/x": nil, "collect/b/y": {"collect"}},
			[]string{"circle: collect imports collect/a, collect/a imports collect/b/x, collect/b/y imports collect"}},
	} {
		expect.Equal(t, violations(c.imports), c.want, name)
	}
}
