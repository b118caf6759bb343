package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// FuzzEscape: whatever text comes from outside, nothing of it steers a terminal.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"br-int", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u009b2J", "a\rb", "\xff\x9b", "\u202eabc", "\x7f", "a\tb\nc", "\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		harmless(t, escape(text))
		if strings.Contains(escape(text), "\n") {
			t.Errorf("%q is more than one line", text)
		}
		harmless(t, escapeLines(text))
		var out bytes.Buffer
		if err := printJSON(&out, map[string]string{"name": text}); err != nil {
			t.Fatal(err)
		}
		harmless(t, out.String())
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["name"] != string([]rune(text)) {
			t.Errorf("%q comes back as %q, %v", text, back["name"], err)
		}
	})
}

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
