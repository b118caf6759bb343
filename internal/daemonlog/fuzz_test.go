package daemonlog

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"ovs-offline/test/oracle/captures"
)

// FuzzRead reads any text: each line is read once, and what is read of it is a part of it.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"ovs-vswitchd.log", "neutron-openvswitch-agent.log"} {
		captures.Captured(f, pattern, 2048, func(content []byte) { f.Add(content) })
	}
	for _, line := range []string{"Apr  6 06:36:09 a b[1]: ovs|00012|c|WARN|d", "2026-02-10T17:52:37+0100 a b[1]: c",
		"I1127 10:00:00.123456 1 a.go:1] b",
		"2026-01-01T00:00:00.123456789Z stdout F 2026-01-01T00:00:00.123Z|00001|a(b)|ERR|c",
		"Oct 30 20:50:21|00466|netdev|WARN|a",
		"<28>1 2022-01-01T00:00:00Z n1 ovs-vswitchd 1 - - ovs|1|a|WARN|b",
		"Tue 2022-05-24 20:51:10 CEST n1 a[1]: ovs|1|a|WARN|b", "[pod/a/b] ovs|1|a|WARN|b",
		`{"log":"2022-01-01T00:00:00Z|00001|a|INFO|b\n","stream":"stderr","time":"2022-01-01T00:00:00.1Z"}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.HasPrefix(text, []byte("\xfd7zXZ")) {
			t.Skip("another process unpacks it")
		}
		r, err := NewReader(t.Context(), bytes.NewReader(text), "program",
			Options{Location: time.UTC, Reference: time.Unix(1.7e9, 0)})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		escaped := bytes.Contains(text, []byte(`{"log":`)) // JSON
		packed := bytes.HasPrefix(text, []byte("\x1f\x8b")) || bytes.HasPrefix(text, []byte("BZh")) ||
			bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd"))
		for n := 1; ; n++ {
			line, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || line.Number != n {
				t.Fatal(line, err)
			}
			for _, part := range [][]byte{line.Host, line.Module, line.Thread, line.Text} {
				if !packed && !escaped && !bytes.Contains(text, part) {
					t.Errorf("%q is not in the text", part)
				}
			}
			if at := line.At; !at.IsZero() && (at.Location() != time.UTC || at.Year() < 0 || at.Year() > 10000) {
				t.Error(at)
			}
		}
		if want := bytes.Count(text, []byte("\n")) + 1; !packed && r.Result().Lines > want {
			t.Errorf("%d of %d lines", r.Result().Lines, want)
		}
	})
}
