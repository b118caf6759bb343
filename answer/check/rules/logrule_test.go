package rules

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/daemonlog"
)

// TestLogRulesFindTheirLines checks each rule with the lines in its own file, and that the lines of
// other rules about the same programs are not its own.
func TestLogRulesFindTheirLines(t *testing.T) {
	all, err := logRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Follows == "" || len(r.Next) == 0 || len(r.Sources) == 0 || len(r.Finds) == 0 || len(r.Programs) == 0 || r.Contains == "" {
			t.Errorf("%s: something is missing in its file", r.Name)
		}
		for _, text := range r.Finds {
			if !finds(t, r, r.Programs[0], text) {
				t.Errorf("%s does not find %q", r.Name, text)
			}
			for _, other := range all {
				if other != r && slices.Contains(other.Programs, r.Programs[0]) && finds(t, other, r.Programs[0], text) {
					t.Errorf("%s finds the line of %s: %q", other.Name, r.Name, text)
				}
			}
		}
		for _, text := range r.Ignores {
			if finds(t, r, r.Programs[0], text) {
				t.Errorf("%s finds %q", r.Name, text)
			}
		}
	}
}

// finds reports whether a rule finds a line of a program, as often as it has to be there, and makes a
// finding of it.
func finds(t *testing.T, r *logRule, program, text string) bool {
	t.Helper()
	found := newReadLog()
	in, err := daemonlog.NewReader(t.Context(), strings.NewReader(strings.Repeat(text+"\n", r.Least)), program, daemonlog.Options{Location: time.UTC, Reference: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found.look(r, line, "test.log")
	}
	for _, s := range found.all() {
		if finding, ok := s.finding(s.at, map[string]string{}); ok {
			return finding.What != "" && !strings.Contains(finding.What, "<no value>")
		}
	}
	return false
}
