package cmd

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/mattn/go-runewidth"

	"ovs-offline/answer/rule"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
)

// onTerminal returns what a command prints on a terminal with a number of columns. Its progress goes elsewhere unless
// all is set.
func onTerminal(t *testing.T, columns int, all bool, args ...string) string {
	t.Helper()
	screen, inside, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer screen.Close()
	if err := pty.Setsize(inside, &pty.Winsize{Rows: 50, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	go func() {
		text, _ := io.ReadAll(screen) // ends with an error once nothing has the terminal open
		seen <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	streams := IO{In: strings.NewReader(""), Out: inside, Err: io.Discard, Program: "ovs-offline"}
	if all {
		streams.Err = inside
	}
	Main(args, streams)
	inside.Close()
	return <-seen
}

// piped returns what a command prints to a pipe.
func piped(args ...string) string {
	var out bytes.Buffer
	Main(args, IO{In: strings.NewReader(""), Out: &out, Err: io.Discard, Program: "ovs-offline"})
	return out.String()
}

// checkable returns a workdir with a capture in which check finds errors and warnings.
func checkable(t *testing.T) string {
	t.Helper()
	ovs.Need(t, "xz")
	dir := t.TempDir()
	piped("-w", dir, "collect", captures.Report(t, "captures/ovn-openstack-compute"))
	return dir
}

var colour = regexp.MustCompile("\x1b\\[[0-9]*m")

// TestColoursAreForTerminalsOnly checks that severities are coloured on a terminal, that nothing else changes, and
// that there are no colours elsewhere.
func TestColoursAreForTerminalsOnly(t *testing.T) {
	dir := checkable(t)
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	args := []string{"-w", dir, "check", "--detail"}
	shown := onTerminal(t, 100, false, args...)
	for _, want := range []string{"\x1b[31mERROR\x1b[0m ", "\x1b[33mWARNING\x1b[0m "} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %q", want, shown)
		}
	}
	if json := onTerminal(t, 100, true, append(args, "-o", "json")...); colour.MatchString(json) {
		t.Errorf("JSON has colours: %q", json)
	}
	if plain := piped(args...); plain == "" || strings.Contains(plain, "\x1b") {
		t.Errorf("a pipe gets %q", plain)
	}
	for name, value := range map[string]string{"NO_COLOR": "0", "TERM": "dumb"} {
		before := os.Getenv(name)
		t.Setenv(name, value)
		expect.Equal(t, onTerminal(t, 100, false, args...), colour.ReplaceAllString(shown, ""), name)
		t.Setenv(name, before)
	}
}

// TestTextsFitTheTerminal checks that no word and no command line is broken at any width, and that only they are
// wider than the terminal.
func TestTextsFitTheTerminal(t *testing.T) {
	dir := checkable(t)
	t.Setenv("NO_COLOR", "1")
	for _, args := range [][]string{{"-w", dir, "check", "--detail"}, {"--help"}, {"trace", "--help"},
		{"image", "--help"}} {
		plain := piped(args...)
		for _, columns := range []int{60, 80, 160} {
			shown := onTerminal(t, columns, false, args...)
			expect.Equal(t, strings.Join(strings.Fields(shown), " "), strings.Join(strings.Fields(plain), " "),
				args, columns, "words")
			for line := range strings.Lines(shown) {
				line = strings.TrimRight(line, "\n")
				words := strings.Fields(line)
				isCommand := strings.Contains(line, "next:") || strings.Contains(line, "ovs-offline ")
				if runewidth.StringWidth(line) > columns && !isCommand && len(words) > 2 {
					t.Errorf("%v: wider than %d columns: %q", args, columns, line)
				}
			}
			for line := range strings.Lines(plain) {
				if strings.Contains(line, "next:") && !strings.Contains(shown, line) {
					t.Errorf("%d columns break the command %q", columns, line)
				}
			}
		}
	}
}

// TestFindingsAreShownOnce checks that a check that takes long leaves nothing on a terminal that its result shows
// again.
func TestFindingsAreShownOnce(t *testing.T) {
	for _, onTerminal := range []bool{true, false} {
		var out bytes.Buffer
		e := &early{progress: &progress{out: &out, terminal: true}, long: true, erased: onTerminal}
		for _, what := range []string{"a port is down", "a chassis is gone"} {
			e.add(rule.Finding{Rule: "some", Severity: rule.Error, What: what})
		}
		e.progress.end()
		if stays := strings.Count(out.String(), "\n"); stays != map[bool]int{false: 2}[onTerminal] {
			t.Errorf("the result on a terminal %v: %d lines stay of %q", onTerminal, stays, out.String())
		}
	}
}
