package rules

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// TestLogRulesFindTheirLines checks each rule with the lines in its own file, and that the lines of
// other rules about the same programs are not its own.
func TestLogRulesFindTheirLines(t *testing.T) {
	all, err := logRules()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Follows == "" || len(r.Next) == 0 || len(r.Sources) == 0 || len(r.Finds) == 0 || len(r.Programs) == 0 ||
			r.Contains == "" {
			t.Errorf("%s: something is missing in its file", r.Name)
		}
		for _, text := range r.Finds {
			if !finds(t, r, r.Programs[0], text) {
				t.Errorf("%s does not find %q", r.Name, text)
			}
			for _, other := range all {
				if other != r && !other.Others && slices.Contains(other.Programs, r.Programs[0]) && finds(t, other, r.Programs[0], text) {
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
	in, err := daemonlog.NewReader(t.Context(), strings.NewReader(strings.Repeat(text+"\n", r.Least)), program,
		daemonlog.Options{Location: time.UTC, Reference: time.Now()})
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

// TestNamesInNextStepsAreWords checks that no name in a line of a log is more than a word of the commands to run next.
func TestNamesInNextStepsAreWords(t *testing.T) {
	next, err := parseNext([]string{"timeline --grep 'port {{.port}}'", "on the node: ip link show {{.port}}"})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := (&seen{rule: &logRule{next: next}, values: map[string]string{"port": "a';b $c"}}).steps()
	if err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, steps, []rule.Next{rule.Ask("timeline", "--grep", "port a';b $c"),
		rule.OnTheNode("ip link show", "a';b $c")})
	expect.Equal(t, steps[1].Text(nil), `on the node: ip link show 'a'\'';b $c'`)
	if _, err := rule.ParseNext("timeline --grep 'x"); err == nil {
		t.Error("a quote without an end is read")
	}
}

// TestLinesOfAnUnknownDaemon reads the lines of rules as those of a log of which no program is known: the rules with
// modules look at them, and the others do not.
func TestLinesOfAnUnknownDaemon(t *testing.T) {
	all, err := logRules()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"2022-01-01T00:00:00.001Z|00011|ofproto_dpif_xlate(handler1)|WARN|over max translation depth 64 on bridge br0 while processing ip,in_port=1": "recursion-too-deep",
		"2022-01-01T00:00:00.002Z|00012|util|EMER|lib/x.c:1: assertion false failed in x()":                                                          "assertion-failed",
		"May 24 20:51:11 n1 ovs-vswitchd: ovs|00592|bridge|WARN|could not open network device eth9 (No such device)":                                 "port-not-added",
		"Oct 30 20:50:21|00466|bridge|WARN|could not open network device eth9 (No such device)":                                                      "port-not-added",
		"2022-01-01T00:00:00.002Z|00012|ofctrl|INFO|could not open network device eth9 (No such device)":                                             "",
		"nf_conntrack: table full, dropping packet":                                                                                                  "",
	} {
		found := newReadLog()
		found.options = logOptions(time.Time{})
		path := filepath.Join(t.TempDir(), "a.log")
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := found.readFile(t.Context(), workdir.Log{Path: path, Program: recording.UnknownDaemon}, "a.log",
			all); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range found.all() {
			finding, ok := s.finding(time.Time{}, nil)
			if got += finding.Rule; !ok || finding.At.IsZero() == strings.HasPrefix(text, "2022") ||
				strings.Contains(fmt.Sprint(finding.Next), "{{") {
				t.Errorf("%s: %+v", text, finding)
			}
		}
		expect.Equal(t, got, want, text)
	}
}
