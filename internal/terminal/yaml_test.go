package terminal_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"sigs.k8s.io/yaml"

	"ovs-offline/internal/terminal"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/lines"
)

func TestYAMLRoundTripsAndIsPrintable(t *testing.T) {
	for _, text := range []string{"br-int", "br\u00a0x", "a: \u202eb", "'\u00ad", "\U000e0001", "one\n\ttwo\u2028\n",
		"\x1b[31m", `\u00a0`, "\u0085", "\x7f", " a\nb ", "# no", "", "on", "1e3", "a\u2028b", "a\u2029b", "'\u2028: #", "\ufeffa", "a\ufeff", "a\u0085b", "\u2028", "\u200b", "\ue0000\ue000", "\"\u00a0\\",
		"long " + string(bytes.Repeat([]byte("word "), 50))} {
		var out bytes.Buffer
		if err := terminal.WriteYAML(&out, map[string][]string{text: {text}}); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines.Harmless(t, out.String())
		var back map[string][]string
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || len(back[text]) != 1 || back[text][0] != text {
			t.Errorf("%q comes back as %q, %v", text, back, err)
		}
	}
}

func TestYAMLHasTheFieldNamesOfJSON(t *testing.T) {
	var out bytes.Buffer
	v := struct {
		Name  string   `json:"name"`
		Count int64    `json:"max_count"`
		List  []string `json:"list"`
	}{"a", 1 << 60, []string{"x"}}
	if err := terminal.WriteYAML(&out, v); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, out.String(), "list:\n- x\nmax_count: 1152921504606846976\nname: a\n", "printed")
}

func TestLineWriterKeepsLinesWholeAndEscapesThem(t *testing.T) {
	var out bytes.Buffer
	w := terminal.NewLineWriter(&out)
	text := "Step 1/2 : FROM d\u00e9bian\n\n\x1b[31mred\nthe last"
	if _, err := io.Copy(w, iotest.OneByteReader(bytes.NewBufferString(text))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "Step 1/2 : FROM d\u00e9bian\n\n\\x1b[31mred\nthe last\n"; out.String() != want {
		t.Errorf("%q is printed as %q", text, out.String())
	}
}

// TestLineWriterHoldsBackNoEndlessLine writes a line without an end: characters stay whole.
func TestLineWriterHoldsBackNoEndlessLine(t *testing.T) {
	var out bytes.Buffer
	w := terminal.NewLineWriter(&out)
	part := strings.Repeat("d\u00e9\u4e2d\U0001f600", 1<<14)
	for i := range 64 {
		for _, half := range []string{part[:i], part[i:]} { // within a character, too
			if _, err := w.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
		}
		if held := (i+1)*len(part) - out.Len(); held > 2<<20 {
			t.Fatalf("%d bytes are held back", held)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat(part, 64) + "\n"; out.String() != want {
		t.Errorf("%d bytes are printed as %d", len(want), out.Len())
	}
}
