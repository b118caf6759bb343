package cmd

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"ovs-offline/replica"
)

// harmless checks that printed text can't control a terminal.
func harmless(t *testing.T, printed string) {
	t.Helper()
	for _, r := range printed {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q has %U", printed, r)
		}
	}
}

func TestShellWordQuotesPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/wd/var-run/ovs/br-int.mgmt": "/wd/var-run/ovs/br-int.mgmt",
		"/wd/a;touch b.mgmt":          "'/wd/a;touch b.mgmt'",
		"/wd/$(id)'`id`.mgmt":         `'/wd/$(id)'\''` + "`id`.mgmt'",
		"/wd/\x1b[31m\n.mgmt":         `'/wd/\x1b[31m\n.mgmt'`,
	} {
		if got := shellWord(path); got != want {
			t.Errorf("%q is printed as %q", path, got)
		}
	}
}

func TestShownPathsAreOneShellWord(t *testing.T) {
	const wd = "/tmp/it's a $HOME"
	sockets := replica.Sockets{Workdir: wd, Control: wd + "/ctl", Recorded: wd + "/recorded.sock", Activate: wd + "/bin/activate",
		Databases: map[string]string{"ovs": wd + "/db.sock", "ovn_nb": wd + "/nb.sock", "ovn_sb": wd + "/sb.sock"}, Management: []string{wd + "/br-int.mgmt"}}
	var out bytes.Buffer
	sockets.Print(&out, shellWord)
	lines := 0
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "    ") {
			continue
		}
		lines++
		words, err := exec.Command("sh", "-c", "printf '%s\\n' "+line).Output()
		if err != nil || !strings.Contains(string(words), wd) {
			t.Errorf("%s is read as %q, %v", line, words, err)
		}
	}
	if lines != 12 {
		t.Errorf("%d lines to paste:\n%s", lines, out.String())
	}
}
