package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readers are the files that read the rows of a table of collected databases, for everyone.
func readers() map[string]string {
	const northbound = "internal/ovn/northbound.go"
	return map[string]string{"Chassis": "internal/ovn/chassis.go", "Port_Binding": "internal/ovn/binding.go",
		"Logical_Switch": northbound, "Logical_Switch_Port": northbound, "Logical_Router": northbound,
		"Logical_Router_Port": northbound,
		"Load_Balancer":       northbound, "Load_Balancer_Group": northbound}
}

// TestTablesAreReadInOnePlace fails for a second file that reads the rows of a table whose model others share. Rows
// that a running server is asked for are not meant.
func TestTablesAreReadInOnePlace(t *testing.T) {
	for table, reader := range readers() {
		found := map[string]bool{}
		for file, text := range productFiles(t) {
			if readsRows(text, table) {
				found[file] = true
			}
		}
		if !found[reader] {
			t.Errorf("%s does not read the rows of %s", reader, table)
		}
		delete(found, reader)
		for file := range found {
			t.Errorf("%s reads rows of %s: %s reads them for everyone", file, table, reader)
		}
	}
}

// TestReadsRows checks what counts as a reader.
func TestReadsRows(t *testing.T) {
	for text, want := range map[string]string{
		`for row, err := range sb.Rows("Chassis", "name") {`:    "Chassis",
		`sb.Each(ChassisTable, func(row ovsdb.Row) {`:           "Chassis",
		`d.SB.Each(ovn.ChassisTable, func(row ovsdb.Row) {`:     "Chassis",
		`content.Rows("Chassis")`:                               "Chassis",
		`d.SB.Row("Chassis", uuid, "name")`:                     "Chassis",
		`sb.Select(ctx, "Chassis", "name")`:                     "",
		`d.SB.Rows("Chassis_Private", "name")`:                  "",
		`file.Read(ctx, path, ovn.ChassisTable, "Encap")`:       "",
		`rule.All("Chassis", "_uuid", "name", "other_config")`:  "",
		`d.SB.Row("Port_Binding", uuid, "logical_port")`:        "Port_Binding",
		`sb.Each(BindingTable, use, bindingColumns()...)`:       "Port_Binding",
		`sb.Select(ctx, "Port_Binding", "type", "chassis")`:     "",
		`row, ok, err := r.sb.Row(table, uuid, "logical_port")`: "",
		`nb.Each("Logical_Switch_Port", func(row ovsdb.Row) {`:  "Logical_Switch_Port",
		`whole.Rows("Logical_Switch")`:                          "Logical_Switch",
		`n.nb.Row("Load_Balancer", uuid)`:                       "Load_Balancer",
		`nb.Select(ctx, "Logical_Router", "options")`:           "",
		`content.UUIDs("Logical_Router")`:                       "",
	} {
		for table := range readers() {
			if got := readsRows(text, table); got != (table == want) {
				t.Errorf("%s: of %s %v", text, table, got)
			}
		}
	}
}

// readsRows reports whether a text reads rows of a table, by its name or by a constant for it, such as BindingTable
// for Port_Binding.
func readsRows(text, table string) bool {
	constant := table[strings.LastIndexByte(table, '_')+1:] + "Table"
	return regexp.MustCompile(`\.(Rows|Row|Each|Matching|Parts)\((?:"` + table + `"|(?:ovn\.)?` + constant +
		`\b)`).MatchString(text)
}

// TestAnswersDoNotNameTheProgram fails for a text in package answer, or in its rules, with the program's name: only
// what prints an answer knows how the program was called, and on which nodes.
func TestAnswersDoNotNameTheProgram(t *testing.T) {
	const name = "ovs-offline"
	for path, text := range productFiles(t) {
		if !strings.HasPrefix(path, "answer/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if ok && strings.Contains(literal.Value, name) {
				t.Errorf("%s: %s", path, literal.Value)
			}
			_, imported := n.(*ast.ImportSpec)
			return !imported
		})
	}
	err := fs.WalkDir(os.DirFS(root), "answer", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || strings.Contains(path, "/testdata/") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if strings.Contains(string(text), name) {
			t.Errorf("%s names the program", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// productFiles returns the texts of the Go files of the program by their paths.
func productFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch top, _, _ := strings.Cut(path, "/"); {
		case err != nil:
			return err
		case entry.IsDir() && (top == "test" || top == "build" || strings.HasPrefix(entry.Name(), ".") && path != "."):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		files[path] = string(text)
		return err
	})
	if err != nil || len(files) < 300 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	return files
}
