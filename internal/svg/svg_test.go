package svg

import (
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

func TestEscapeLeavesNoMarkup(t *testing.T) {
	if got := Escape("</text><script>\x00\x1b\"'&"); strings.ContainsAny(got, "<>\"'\x00\x1b") {
		t.Errorf("the text becomes %q", got)
	}
}

// TestShortenKeepsBothEnds cuts names, with characters that take two columns too.
func TestShortenKeepsBothEnds(t *testing.T) {
	for text, want := range map[string]string{
		"br-int":                               "br-int",
		"0123456789":                           "0123456789",
		"patch-provnet-1-to-int":               "patc\u2026o-int",
		"\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e": "\u65e5\u672c\u2026\u672c\u8a9e",
	} {
		got := Shorten(text, 10)
		if got != want || Width(got) > 10 {
			t.Errorf("%q becomes %q, %d columns wide", text, got, Width(got))
		}
	}
}

// TestHiddenCharactersAreShown checks that no character reaches a picture that can't be seen or
// that changes the direction of a text.
func TestHiddenCharactersAreShown(t *testing.T) {
	const want = `a\x202eb\x200bc\x7fd\x9be&lt;`
	expect.Equal(t, Escape("a\u202eb\u200bc\x7fd\u009be<"), want)
}
