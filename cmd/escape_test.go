package cmd

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"ovs-offline/replica"
)

func TestShownPathsAreOneShellWord(t *testing.T) {
	const wd = "/tmp/it's a $HOME"
	sockets := replica.Sockets{Workdir: wd, Control: wd + "/ctl", Recorded: wd + "/recorded.sock",
		Activate:   wd + "/bin/activate",
		Databases:  map[string]string{"ovs": wd + "/db.sock", "ovn_nb": wd + "/nb.sock", "ovn_sb": wd + "/sb.sock"},
		Management: []string{wd + "/br-int.mgmt"}}
	var out bytes.Buffer
	sockets.Print(&out)
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
