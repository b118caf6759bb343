// Package reports changes the unpacked sos reports of a set's nodes, as faults and damage do.
package reports

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/sets"
)

// Report is the unpacked sos report of a node.
type Report struct {
	Dir string
	tb  testing.TB
}

// Unpacked returns the report of a node of a set, in a folder of its own.
func Unpacked(tb testing.TB, s *sets.Set, node string) Report {
	tb.Helper()
	archive, err := s.Report(node)
	if err != nil {
		tb.Fatal(err)
	}
	return Report{files.Only(tb, filepath.Join(captures.Unpack(tb, archive), "*")), tb}
}

// Edit changes each file of the report that a pattern matches.
func (r Report) Edit(pattern string, change func(text string) string) {
	r.tb.Helper()
	for _, file := range r.matched(pattern) {
		files.Write(r.tb, file, change(files.Read(r.tb, file)))
	}
}

// Remove removes each file of the report that a pattern matches.
func (r Report) Remove(pattern string) {
	r.tb.Helper()
	for _, file := range r.matched(pattern) {
		if err := os.RemoveAll(file); err != nil {
			r.tb.Fatal(err)
		}
	}
}

func (r Report) matched(pattern string) []string {
	r.tb.Helper()
	found, err := filepath.Glob(filepath.Join(r.Dir, pattern))
	if err != nil || len(found) == 0 {
		r.tb.Fatalf("no file matches %s: %v", pattern, err)
	}
	return found
}

// Transact changes each database of the report that a pattern matches.
func (r Report) Transact(pattern, operations string) {
	r.tb.Helper()
	for _, file := range r.matched(pattern) {
		out, err := exec.Command("ovsdb-tool", "transact", file, operations).CombinedOutput()
		if err != nil || strings.Contains(string(out), "error") {
			r.tb.Fatalf("%v: %s", err, out)
		}
	}
}

// FlowsOf is the pattern of all dumps of the flows of a bridge.
func FlowsOf(bridge string) string { return "sos_commands/*/*dump-flows*" + bridge }
