package terminal_test

import (
	"bytes"
	"strings"
	"testing"

	"ovs-offline/internal/terminal"
	"ovs-offline/test/check/expect"
)

// TestWordsThatMatterHaveColours writes lines as commands print them, whole and byte by byte: the second way, which no
// command has, must not colour a part of a word.
func TestWordsThatMatterHaveColours(t *testing.T) {
	lines := map[string]string{
		"ERROR n1: a port is down":              "\x1b[31mERROR\x1b[0m n1: a port is down",
		"- warning [flapping] n1: flows":        "\x1b[33m- warning\x1b[0m [flapping] n1: flows",
		"UNREACHABLE  explicit drop":            "\x1b[31mUNREACHABLE\x1b[0m  \x1b[31mexplicit drop\x1b[0m",
		"REACHABLE  arrives":                    "\x1b[32mREACHABLE\x1b[0m  arrives",
		"  return   UNDETERMINED: no node":      "  return   \x1b[33mUNDETERMINED\x1b[0m: no node",
		"no drift: 3 flows":                     "\x1b[32mno drift:\x1b[0m 3 flows",
		"n1: drift: 3 of 4 entries":             "n1\x1b[31m: drift:\x1b[0m 3 of 4 entries",
		"br-int has an error; see the WARNINGS": "br-int has an error; see the WARNINGS",
	}
	for line, want := range lines {
		var out bytes.Buffer
		if _, err := terminal.NewPainter(&out).Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
		expect.Equal(t, out.String(), want+"\n")
		out.Reset()
		p := terminal.NewPainter(&out)
		for i := range line {
			if n, err := p.Write([]byte(line[i : i+1])); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if plain := strings.ReplaceAll(out.String(), "\x1b", ""); plain != line {
			t.Errorf("in parts: %q", out.String())
		}
	}
}
