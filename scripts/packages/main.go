// Packages writes the tables of packages in docs/architecture.md: each folder with Go files, and the first sentence of its
// package comment, in a table for each room. With -check it changes nothing, and fails if the tables are stale.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const document = "docs/architecture.md"

// The lines between which the tables stand.
const (
	begin = "<!-- make docs writes the tables below. -->\n"
	end   = "<!-- make docs has written the tables above. -->\n"
)

// rooms are the folders of the top level, in the order in which data and then questions go through them.
var rooms = []string{"sosreport", "collect", "workdir", "snapshot", "replica", "answer", "cmd", "mcp", "pkg", "internal", "test", "scripts"}

func main() {
	check := flag.Bool("check", false, "fail if the tables are stale, and change nothing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s lacks the lines between which the tables stand", document)
	}
	var tables strings.Builder
	for _, room := range rooms {
		if err := writeTable(&tables, room); err != nil {
			return err
		}
	}
	wanted := before + begin + tables.String() + "\n" + end + after
	switch {
	case wanted == string(text):
		return nil
	case check:
		return fmt.Errorf("the tables of packages in %s are stale: run make docs", document)
	}
	return os.WriteFile(document, []byte(wanted), 0o644)
}

// writeTable writes the packages below a room, and what the comment of each says.
func writeTable(w *strings.Builder, room string) error {
	folders, err := packages(room)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n### `%s`\n\n| package | what it does |\n|---|---|\n", room)
	for _, folder := range folders {
		sentence, err := firstSentence(folder)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", folder, strings.ReplaceAll(sentence, "|", `\|`))
	}
	return nil
}

// packages returns the folders below a room that have Go files, by name.
func packages(room string) ([]string, error) {
	var folders []string
	err := filepath.WalkDir(room, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		if folder := filepath.Dir(path); strings.HasSuffix(path, ".go") && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return err
	})
	slices.Sort(folders)
	return folders, err
}

// firstSentence returns the first sentence of a package comment, without its subject: the name of the package.
func firstSentence(folder string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", err
		}
		if file.Doc != nil {
			return withoutSubject(file, filepath.Base(folder)), nil
		}
	}
	return "", errors.New(folder + ": no file has a package comment")
}

func withoutSubject(file *ast.File, folder string) string {
	words := strings.Fields(new(doc.Package).Synopsis(file.Doc.Text()))
	if len(words) > 0 && (words[0] == "Package" || words[0] == "Command") {
		words = words[1:]
	}
	if len(words) > 0 && (strings.EqualFold(words[0], folder) || words[0] == strings.TrimSuffix(file.Name.Name, "_test")) {
		words = words[1:]
	}
	return strings.TrimRight(strings.Join(words, " "), ".:")
}
