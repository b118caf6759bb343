package logging

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode"
)

func TestLoggedTextIsEscaped(t *testing.T) {
	var out bytes.Buffer
	log := FromContext(NewContext(context.Background(), &out))
	log.Debug("run \x1b[31m", "argv", "br\u202e\x1b]0;x\x07\nlevel=ERROR", "\u009b", "\x7f")
	printed := strings.TrimSuffix(out.String(), "\n")
	for _, r := range printed {
		if !unicode.IsPrint(r) {
			t.Errorf("%q has %U", printed, r)
		}
	}
	if !strings.Contains(printed, `level=DEBUG`) || !strings.Contains(printed, `\x1b]0;x`) {
		t.Errorf("logged %q", printed)
	}
}

func TestNoLoggerDiscards(t *testing.T) {
	FromContext(context.Background()).Debug("nothing") // must not panic
}
