package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCollectSkipsNodeWithoutOVS checks that a node without data of Open vSwitch is
// named, and that the others are collected.
func TestCollectSkipsNodeWithoutOVS(t *testing.T) {
	empty := func(host string) map[string]string {
		return map[string]string{"sosreport-" + host + "/sos_commands/host/hostname": host + "\n"}
	}
	dir := folder(t, map[string]string{"a.tar.gz": packed(t, reportFiles("n1")), "b.tar.gz": packed(t, empty("n2")),
		"c.tar.gz": packed(t, reportFiles("n3"))})
	written, found, wd, err := takeFiles(t, Options{}, dir)
	if err != nil || len(written) != 2 {
		t.Fatal(written, err)
	}
	for _, name := range []string{"n1", "n3"} {
		if _, err := os.Stat(filepath.Join(wd, name, "manifest.json")); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(wd, "n2")); err == nil {
		t.Error("n2 has a workdir")
	}
	if lost := strings.Join(found.Lost, "\n"); !strings.Contains(lost, "n2: nothing to collect") {
		t.Errorf("lost: %q", lost)
	}
}
