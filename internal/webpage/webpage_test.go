package webpage_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"strings"
	"testing"
	"unicode"

	"ovs-offline/internal/terminal"
	"ovs-offline/internal/webpage"
	"ovs-offline/test/check/expect"
)

// unpacked returns what a browser reads of Data.
func unpacked(t *testing.T, value any) (text string, decoded any) {
	t.Helper()
	data, err := webpage.Data(value)
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &decoded); err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	return string(raw), decoded
}

func FuzzData(f *testing.F) {
	for _, text := range []string{"br-int", "\x1b[31m", "a\rb\x00c", "\u202eabc\u2066",
		`back\slash "quotes" \u0041 \\u202e`, "</script><script>", "\xff\xfe", "\u2028", "日本語", "a\tb\nc", "\x7f",
		"\U000e0001"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, decoded := unpacked(t, []string{text})
		if i := strings.IndexFunc(raw, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("the data of %q has %q", text, raw[i:])
		}
		var want []string
		for _, line := range strings.Split(string([]rune(text)), "\n") {
			want = append(want, terminal.Escape(line))
		}
		if shown := decoded.([]any)[0]; shown != strings.Join(want, "\n") {
			t.Errorf("%q is shown as %q", text, shown)
		}
	})
}

func TestPolicyNamesWhatThePageHolds(t *testing.T) {
	policy := webpage.Policy([]string{"alert()"}, "a {}", "b {}")
	expect.Equal(t, policy, "default-src 'none'; script-src 'sha256-S8S/VNmXuUuoIR6OhqBqwIiIkuCxXq31hCCHAHnicV8='; style-src 'sha256-mkSHzL7faOU7/U/v8Umg+058R69+vN2A2xmE3Fz1q98=' 'sha256-zy87ZYlZV4kMyp51wB+3ABJeEclAGRFupKDmlDS9DAw='; base-uri 'none'; form-action 'none'")
	if without := webpage.Policy(nil, "a {}"); strings.Contains(without, "script-src") {
		t.Errorf("a page without a script has the policy %s", without)
	}
}

func TestForeignTextStaysText(t *testing.T) {
	page := template.Must(template.New("page").Funcs(webpage.Funcs()).Parse(`<p>{{plain .}}</p><pre>{{lines .}}</pre><code>{{fields .}}</code>`))
	var out strings.Builder
	if err := page.Execute(&out, "<b>\x1b[1m,\u202ex\ty\nz"); err != nil {
		t.Fatal(err)
	}
	want := "<p>&lt;b&gt;\\x1b[1m,\\x202ex y\\nz</p><pre>&lt;b&gt;\\x1b[1m,\\x202ex\ty\nz\n</pre><code>&lt;b&gt;\\x1b[1m,<wbr>\\x202ex y\\nz</code>"
	expect.Equal(t, out.String(), want)
}
