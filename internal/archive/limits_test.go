package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ovs-offline/internal/archive"
)

// TestEachLimitIsNamed reads archives with one entry, file or link more than may be, and with just as many.
func TestEachLimitIsNamed(t *testing.T) {
	wide := archive.Limits{Bytes: 1 << 20, FileBytes: 1 << 20, Ratio: 100, Entries: 20, Files: 20, Links: 20, Nodes: 1}
	for name, c := range map[string]struct {
		kind  byte
		limit func(l *archive.Limits, most int)
		said  string
	}{
		"entries": {tar.TypeDir, func(l *archive.Limits, most int) { l.Entries = most }, "entries"},
		"files":   {tar.TypeReg, func(l *archive.Limits, most int) { l.Files = most }, "files of Open vSwitch and OVN"},
		"links":   {tar.TypeSymlink, func(l *archive.Limits, most int) { l.Links = most }, "links"},
	} {
		t.Run(name, func(t *testing.T) {
			content := tarred(t, c.kind, 5)
			for most, want := range map[int]bool{4: true, 5: false} {
				limits := wide
				c.limit(&limits, most)
				_, _, err := read(t, "case.tar", content, limits)
				if errors.Is(err, archive.ErrLimit) != want || want &&
					!strings.Contains(err.Error(), fmt.Sprintf("over %d %s", most, c.said)) {
					t.Errorf("5 %s, and %d may be: %v", name, most, err)
				}
			}
		})
	}
}

// tarred returns an archive of n entries of a kind.
func tarred(t *testing.T, kind byte, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := range n {
		h := &tar.Header{Name: fmt.Sprint("entry", i), Typeflag: kind, Mode: 0o600}
		if kind == tar.TypeSymlink {
			h.Linkname = "entry0"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
