package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"
	"sigs.k8s.io/yaml"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/show"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/sets"
)

// steps runs next steps, each shape of them once.
type steps struct {
	t      *testing.T
	folder string // of the nodes
	ran    map[string]bool
}

// run runs the program, and returns its exit code and what it printed.
func (s *steps) run(args ...string) (exit int, out, errs string) {
	var printed, failed bytes.Buffer
	exit = run(s.t.Context(), args, IO{In: strings.NewReader(""), Out: &printed, Err: &failed, Program: programName}, nil)
	return exit, printed.String(), failed.String()
}

// try runs a step that something names, and wants it to answer.
func (s *steps) try(from string, args []string) {
	s.t.Helper()
	key := strings.Join(args[2:], " ") // without -w FOLDER
	if at := slices.Index(args, "--node"); at > 0 {
		key = strings.Join(slices.Delete(slices.Clone(args), at, at+2)[2:], " ")
	}
	if s.ran[key] {
		return
	}
	s.ran[key] = true
	if exit, _, errs := s.run(args...); exit != 0 && exit != 3 && exit != 4 {
		s.t.Errorf("%s says to run %q, which ends with %d: %s", from, args, exit, errs)
	}
}

// tryAll tries the steps that a command prints about a folder, as a shell would read them, and returns their number.
func (s *steps) tryAll(folder string, command ...string) int {
	s.t.Helper()
	_, out, _ := s.run(append([]string{"-w", folder}, command...)...)
	all := append(printedStep.FindAllStringSubmatch(out, -1), pageStep.FindAllStringSubmatch(out, -1)...)
	for _, step := range all {
		words, err := shell.Fields(html.UnescapeString(step[1]), nil)
		if err != nil || len(words) < 4 || words[1] != "-w" || words[2] != folder {
			s.t.Fatalf("%s: no command on %s: %v", step[1], folder, err)
		}
		if words[3] == command[0] {
			s.t.Errorf("%s says to run %s", command[0], step[1])
		}
		s.try(command[0], words[1:])
	}
	return len(all)
}

// printedStep is a next step in a text, and in a page.
var (
	printedStep = regexp.MustCompile(`(?m)^ +(?:next: +|Next: )(` + programName + ` .*)$`)
	pageStep    = regexp.MustCompile(`<code class="linked">(` + programName + ` .*?)</code>`)
)

// TestNextStepsAnswer runs the next steps that commands print about the captures, in a folder of both and in one
// alone, as a shell would.
func TestNextStepsAnswer(t *testing.T) {
	ovs.Need(t, "ovn-controller", "ovn-northd", "ovs-vswitchd", "unshare")
	s := &steps{t, filepath.Join(t.TempDir(), "it's two"), map[string]bool{}}
	names := []string{"compute", "worker"}
	for i, report := range captures.Reports(t) {
		if exit, _, errs := s.run("-w", filepath.Join(s.folder, names[i]), "collect", report); exit != 0 {
			t.Fatal(errs)
		}
	}
	one := filepath.Join(s.folder, names[0])
	if found := s.tryAll(s.folder, "check"); found == 0 || s.tryAll(one, "report", "-o", "html") == 0 {
		t.Error("no next step was printed")
	}
	for _, command := range []string{"slow", "cluster", "drift"} {
		s.tryAll(s.folder, command)
	}
	call := caller{"/usr/bin/" + pluginFile, s.folder}.call()
	prefix := "kubectl ovs-offline -w " + show.Word(s.folder)
	expect.Equal(t, call(names[0], "history", "nb", "--record", "a'b"),
		prefix+` history --node compute nb --record 'a'\''b'`)
	expect.Equal(t, call("not collected", "drift"), prefix+" drift")
	for from, list := range stepsInSource(t, "../answer") {
		for _, args := range list {
			if slices.Equal(args, []string{"flows", "--datapath"}) {
				continue // it needs a running replica, and so do most findings that name it
			}
			if args[0] == "bisect" {
				continue // why names it for nodes of one deployment
			}
			if at := slices.Index(args, "--grep"); at > 0 {
				args[at+1] = "x" // any text is one shape
			}
			s.try(from, append([]string{"-w", s.folder}, args...))
		}
	}
}

// TestNextStepsOfSetsAnswer runs the next steps that commands print about recorded sets.
func TestNextStepsOfSetsAnswer(t *testing.T) {
	sweep.Only(t, "TestNextStepsAnswer")
	for _, name := range sets.Names() {
		s := &steps{t, t.TempDir(), map[string]bool{}}
		if _, err := sets.Recorded(t, "../scripts/lab/lab", name).Workdirs(t.Context(), s.folder, sets.Native); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"check", "slow", "cluster", "drift"} {
			s.tryAll(s.folder, command)
		}
		s.tryAll(s.folder, "report", "-o", "html")
	}
}

// TestNextStepsOfLogsAnswer plants the lines that the rules of logs are about in a capture, and in what is left of it
// without databases and flows, and runs the next steps of what is found.
func TestNextStepsOfLogsAnswer(t *testing.T) {
	ovs.Need(t, "ovn-controller", "ovs-vswitchd", "unshare")
	s := &steps{t, filepath.Join(t.TempDir(), "wd"), map[string]bool{}}
	if exit, _, errs := s.run("-w", s.folder, "collect", captures.Reports(t)[0]); exit != 0 {
		t.Fatal(errs)
	}
	replace := func(path string, change func(text string) string) {
		text, _ := os.ReadFile(path) // or it is new
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(change(string(text))), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// No line is too old where it is not known when the node was recorded.
	recorded := regexp.MustCompile(`"recorded": "[^"]*"`)
	replace(filepath.Join(s.folder, "manifest.json"), func(text string) string {
		return recorded.ReplaceAllString(text, `"recorded": "0001-01-01T00:00:00Z"`)
	})
	files, _ := filepath.Glob("../answer/check/rules/logs/*.yaml")
	for _, path := range files {
		var one struct {
			Programs, Finds []string
			Least           int
		}
		text, err := os.ReadFile(path)
		if err := errors.Join(err, yaml.Unmarshal(text, &one)); err != nil {
			t.Fatal(err)
		}
		replace(filepath.Join(s.folder, "host/logs", one.Programs[0], one.Programs[0]+".log"), func(text string) string {
			return text + strings.Repeat(strings.Join(one.Finds, "\n")+"\n", max(one.Least, 1))
		})
	}
	count := s.tryAll(s.folder, "check")
	for _, data := range []string{"db", "restore_flows", "recorded"} {
		if err := os.RemoveAll(filepath.Join(s.folder, data)); err != nil {
			t.Fatal(err)
		}
	}
	clear(s.ran)
	if left := s.tryAll(s.folder, "check"); count < len(files)/2 || left < len(files)/2 {
		t.Errorf("%d next steps, and %d without databases, of %d rules", count, left, len(files))
	}
}

// stepsInSource returns the arguments of all steps in Go files and rules in YAML, with some value for each that is
// computed.
func stepsInSource(t *testing.T, root string) map[string][][]string {
	t.Helper()
	found := map[string][][]string{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata"):
		case strings.HasSuffix(path, ".go"):
			found[path], err = stepsInGo(path)
		case strings.HasSuffix(path, ".yaml"):
			found[path], err = stepsInYAML(path)
		}
		return err
	})
	if err != nil || len(found) < 50 {
		t.Fatalf("%d files: %v", len(found), err)
	}
	return found
}

// stepsInGo returns the arguments of the calls of Ask in a file.
func stepsInGo(path string) (list [][]string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if called, ok := call.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Ask" && fmt.Sprint(called.X) == "rule" {
			var args []string
			for _, arg := range call.Args {
				args = append(args, valueOf(arg, args))
			}
			list = append(list, args)
		}
		return true
	})
	return list, nil
}

// valueOf returns an argument in source text, or something in its place that is computed, after those before it.
func valueOf(arg ast.Expr, before []string) string {
	if literal, ok := arg.(*ast.BasicLit); ok {
		value, _ := strconv.Unquote(literal.Value)
		return value
	}
	switch last := before[len(before)-1]; {
	case last == "--table" && before[0] == "history":
		return "Port_Binding"
	case last == "--table":
		return "0"
	case last == "flows":
		return "br-int"
	case last == "--since", last == "--until":
		return "2026-11-21 10:00"
	}
	return "x"
}

// stepsInYAML returns the arguments of the steps of a rule.
func stepsInYAML(path string) (list [][]string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var one struct{ Next []string }
	if err := yaml.Unmarshal(text, &one); err != nil {
		return nil, err
	}
	for _, text := range one.Next {
		step, err := rule.ParseNext(text)
		if err != nil {
			return nil, err
		}
		if step.Args != nil {
			list = append(list, slices.Clone(step.Args))
		}
	}
	return list, nil
}
