package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readers are the files that read the rows of a table of collected databases, for everyone.
func readers() map[string]string {
	return map[string]string{"Chassis": "internal/ovn/chassis.go"}
}

// TestTablesAreReadInOnePlace fails for a second file that reads the rows of a table whose model others share. Rows that a running
// server is asked for are not meant.
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
	for text, want := range map[string]bool{
		`for row, err := range sb.Rows("Chassis", "name") {`:   true,
		`sb.Each(ChassisTable, func(row ovsdb.Row) {`:          true,
		`d.SB.Each(ovn.ChassisTable, func(row ovsdb.Row) {`:    true,
		`content.Rows("Chassis")`:                              true,
		`d.SB.Row("Chassis", uuid, "name")`:                    true,
		`sb.Select(ctx, "Chassis", "name")`:                    false,
		`d.SB.Rows("Chassis_Private", "name")`:                 false,
		`file.Read(ctx, path, ovn.ChassisTable, "Encap")`:      false,
		`rule.All("Chassis", "_uuid", "name", "other_config")`: false,
	} {
		if got := readsRows(text, "Chassis"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func readsRows(text, table string) bool {
	return regexp.MustCompile(`\.(Rows|Row|Each|Matching|Parts)\((?:"` + table + `"|(?:ovn\.)?` + table + `Table\b)`).MatchString(text)
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
