package cmd

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"go.yaml.in/yaml/v3"

	"ovs-offline/replica"
)

func harmless(t *testing.T, printed string) {
	t.Helper()
	for _, r := range printed {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%q has %U", printed, r)
		}
	}
}

// TestShellWord: what show prints can be pasted, whatever a bridge is called.
func TestShellWord(t *testing.T) {
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

// TestShowCanBePasted: whatever the working directory is called, a path is one
// word to a shell.
func TestShowCanBePasted(t *testing.T) {
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

// TestBuildLog: what steps print keeps its lines, however it is cut in pieces.
func TestBuildLog(t *testing.T) {
	var out bytes.Buffer
	log := &escaping{out: &out}
	said := "Step 1/2 : FROM d\u00e9bian\n\n\x1b[31mred\nthe last"
	if _, err := io.Copy(log, iotest.OneByteReader(bytes.NewBufferString(said))); err != nil {
		t.Fatal(err)
	}
	if err := log.end(); err != nil {
		t.Fatal(err)
	}
	if want := "Step 1/2 : FROM d\u00e9bian\n\n\\x1b[31mred\nthe last\n"; out.String() != want {
		t.Errorf("%q is printed as %q", said, out.String())
	}
}

// TestYAML: values stay what they are, and steer no terminal.
func TestYAML(t *testing.T) {
	for _, text := range []string{"br-int", "br\u00a0x", "a: \u202eb", "'\u00ad", "\U000e0001", "one\n\ttwo\u2028\n", "\x1b[31m", `\u00a0`, "\u0085", "\x7f", " a\nb ", "# no", "", "on", "1e3"} {
		var out bytes.Buffer
		if err := printYAML(&out, map[string][]string{text: {text}}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		harmless(t, out.String())
		var back map[string][]string
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || len(back[text]) != 1 || back[text][0] != text {
			t.Errorf("%q comes back as %q, %v", text, back, err)
		}
	}
}
