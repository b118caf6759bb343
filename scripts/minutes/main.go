// Minutes prints where the time of test runs went: the parts of a CI run with their seconds, what the packages of each room
// took, and the twenty longest tests. Its arguments are the JSON logs of runs. With -parts it also reads a file with a line for
// each part: its seconds, and its name.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// longest is how many tests are listed.
const longest = 20

// module begins the import path of each package.
const module = "ovs-offline/"

// event is a line of a log (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
}

// times are seconds by name.
type times map[string]float64

func main() {
	parts := flag.String("parts", "", "a file with the seconds and names of parts")
	flag.Parse()
	if err := run(*parts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "minutes:", err)
		os.Exit(1)
	}
}

func run(parts string, logs []string) error {
	if parts != "" {
		if err := printParts(parts); err != nil {
			return err
		}
	}
	rooms, tests := times{}, times{}
	for _, path := range logs {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = read(f, rooms, tests)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	rooms.print("seconds of packages", len(rooms))
	tests.print("the longest tests", longest)
	return nil
}

// printParts prints the parts of a run in their order.
func printParts(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	t := newTable("parts of this run")
	total := 0
	for line := range strings.Lines(string(text)) {
		seconds, name := 0, ""
		if _, err := fmt.Sscan(line, &seconds, &name); err != nil {
			return fmt.Errorf("%s: %q: %w", path, line, err)
		}
		t.AppendRow(table.Row{seconds, name})
		total += seconds
	}
	t.AppendFooter(table.Row{total, fmt.Sprintf("all: %.1f minutes", float64(total)/60)})
	t.Render()
	return nil
}

// read adds what the packages of each room took, and each test that is no part of another.
func read(r io.Reader, rooms, tests times) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && (e.Action == "pass" || e.Action == "fail") { // a line of a build is none
			name := strings.TrimPrefix(e.Package, module)
			switch room, _, _ := strings.Cut(name, "/"); {
			case e.Test == "":
				rooms[room] += e.Elapsed
			case !strings.Contains(e.Test, "/"):
				tests[name+" "+e.Test] += e.Elapsed
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// print prints the longest of the times.
func (t times) print(title string, most int) {
	names := slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b)) })
	w := newTable(title)
	for _, name := range names[:min(most, len(names))] {
		w.AppendRow(table.Row{fmt.Sprintf("%.1f", t[name]), name})
	}
	w.Render()
}

func newTable(title string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.AppendHeader(table.Row{"seconds", title})
	return t
}
