package trace

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// repeated is an endless reader of a text, after another.
type repeated struct {
	text, rest string
	read       int // bytes
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest, r.read = r.rest[n:], r.read+n
	return n, nil
}

// TestLongListIsReadCheckByCheck reads lists without an end: a check comes before much more than
// its own text is read.
func TestLongListIsReadCheckByCheck(t *testing.T) {
	const more = 64 << 10 // what a reader reads ahead
	name := strings.Repeat("a", 1000)
	for begin, text := range map[string]string{
		"":                         "- {from: NAME, to: \"b:80\", protocol: tcp}\n",
		"# mine\n---\nchecks:\n":   "  - from: NAME\n    to: b:80\n    # TCP\n    protocol: tcp\n",
		"\n\nchecks:\n# no indent": "\n-\n  {\"from\": \"NAME\", \"to\": \"b:80\",\n   \"protocol\": \"tcp\"}",
	} {
		text = strings.ReplaceAll(text, "NAME", name)
		in := &repeated{text: text, rest: begin}
		checks, err := ReadChecks(in)
		if err != nil {
			t.Errorf("%q: %v", begin, err)
			continue
		}
		count := 0
		for c, err := range checks {
			if err != nil || c != (Check{From: name, To: "b:80", Protocol: "tcp"}) {
				t.Errorf("%q: check %d: %+v, %v", begin, count+1, c, err)
				break
			}
			if count++; in.read > max(checkedFirst, len(begin)+count*len(text))+more {
				t.Errorf("%q: %d bytes were read for %d checks", begin, in.read, count)
				break
			}
			if count*len(text) > checkedFirst+2*more {
				break
			}
		}
	}
}

// TestUnreadableCheckEndsALongList checks that the checks before it are returned, and its number.
func TestUnreadableCheckEndsALongList(t *testing.T) {
	const many = 5000
	name := strings.Repeat("a", 1000)
	good := strings.Repeat("- {from: "+name+", to: b, protocol: tcp}\n", many)
	for bad, says := range map[string]string{
		"- {from: a, too: b}\n":                            `unknown field "too"`,
		"- {from: a, to: b}\nothers: 1\n":                  "",
		"- {from: a, to: " + strings.Repeat("b", maxCheck): "token too long",
	} {
		checks, err := ReadChecks(io.MultiReader(strings.NewReader(good), strings.NewReader(bad)))
		if err != nil {
			t.Errorf("%.40q: %v", bad, err)
			continue
		}
		read, last := 0, error(nil)
		for _, err := range checks {
			if last = err; err == nil {
				read++
			}
		}
		if read != many || last == nil || !strings.Contains(last.Error(), says) ||
			!strings.Contains(last.Error(), fmt.Sprintf("check %d", many+1)) {
			t.Errorf("%.40q: %d checks, and %v", bad, read, last)
		}
	}
	long := "[" + strings.Repeat("{from: "+name+", to: b, protocol: tcp},\n", many) + "{from: a, to: b}]"
	if _, err := ReadChecks(strings.NewReader(long)); err == nil ||
		!strings.Contains(err.Error(), "each check begins with a line") {
		t.Errorf("a long list of another form: %v", err)
	}
	short, err := ReadChecks(strings.NewReader("[{from: a, to: b}]"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for range short {
		count++
	}
	if count != 1 {
		t.Errorf("a short list of another form has %d checks", count)
	}
}
