package logicalflows

import (
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/files"
)

// FuzzReadLog reads any log of ovn-trace: each reason stands in the text.
func FuzzReadLog(f *testing.F) {
	f.Add("2026-05-07T06:44:05Z|00001|ovntrace|WARN|" + markBegin + "01234567-0123-0123-0123-012345678901" + ": parsing expression failed (Syntax error)\n")
	f.Add(": parsing actions failed\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "log")
		files.Write(t, path, text)
		found, err := readLog(path)
		for uuid, reason := range found {
			if err != nil || !strings.Contains(text, reason) || uuid == "" {
				t.Errorf("%q: %q %q, %v", text, uuid, reason, err)
			}
		}
	})
}
