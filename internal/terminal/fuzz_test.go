package terminal_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ovs-offline/internal/terminal"
	"ovs-offline/test/check/lines"
)

// FuzzEscape checks that no text from outside can control a terminal.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"br-int", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u009b2J", "a\rb", "\xff\x9b",
		"\u202eabc", "\x7f", "a\tb\nc", "\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines.Harmless(t, terminal.Escape(text))
		if strings.Contains(terminal.Escape(text), "\n") {
			t.Errorf("%q is more than one line", text)
		}
		lines.Harmless(t, terminal.EscapeLines(text))
		var out bytes.Buffer
		if err := terminal.WriteJSON(&out, map[string]string{"name": text}); err != nil {
			t.Fatal(err)
		}
		lines.Harmless(t, out.String())
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["name"] != string([]rune(text)) {
			t.Errorf("%q comes back as %q, %v", text, back["name"], err)
		}
	})
}
