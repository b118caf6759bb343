package anonymise

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/captures"
	"ovs-offline/test/oracle/collected"
	"ovs-offline/workdir/bundle"
)

// TestLongTextsAreCopied has texts of 128 KiB. Work that grows with the square of their length does not end before
// the test's time is over.
func TestLongTextsAreCopied(t *testing.T) {
	const size = 1 << 17
	for _, part := range []string{"x", "1", "x1", ":", "a:", "::", "1.", "1.1.1.1/", "a.", "-", "%41", "%3A", `\n`, "\x1b[1m", "12345678-12-",
		"fe80::", "0:16:3e:", "5254.1122.", "x1-2-3-", "\xff", "in-addr.arpa.", "/"} {
		for _, before := range []string{"", "0x", "note:"} {
			text := before + strings.Repeat(part, size/len(part))
			r := renaming(text)
			if got := r.name(text); len(got) == 0 {
				t.Errorf("nothing is left of %.20q", text)
			}
		}
	}
	for _, part := range []string{"61.", "2d.", "61.2d.", "0a.00.00.01.", "00.", "80.00.26.01.", "ff.ff.00.18.", "fe.02.61.62."} {
		for _, opcode := range []string{"00.00.00.02.00.00.00.00.", "00.00.00.07.00.00.00.00.", "00.00.00.0a.00.00.00.00.", "ff."} {
			text := "userdata=" + opcode + strings.Repeat(part, size/len(part)) + "00"
			renaming("10.0.0.1 ab").name(text)
		}
	}
}

// planted returns the workdir of a capture with a word that was planted in a database and a text, and the word.
func planted(t *testing.T, log string) (bundle.Workdir, string) {
	t.Helper()
	const secret = "zyxsecretword"
	unpacked := captures.Unpack(t, "../../testdata/captures/ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	report, err := filepath.Glob(filepath.Join(unpacked, "*"))
	if err != nil || len(report) != 1 {
		t.Fatal(report, err)
	}
	conf := filepath.Join(report[0], "var/lib/openvswitch/conf.db")
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, bytes.ReplaceAll(text, []byte("compute1"), []byte(secret)), 0o600); err != nil {
		t.Fatal(err)
	}
	wd := collected.Report(t, report[0])
	if err := os.WriteFile(wd.Join("recorded/extra"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	return bundle.Workdir{Name: secret, Dir: wd}, secret
}

// TestAKillLeavesNothingPlain looks at each step for files in the folder of temporary files that a killed command would
// leave there.
func TestAKillLeavesNothingPlain(t *testing.T) {
	node, secret := planted(t, "")
	t.Setenv("TMPDIR", ovs.Dir(t))
	seen := 0
	look := func() {
		if err := filepath.WalkDir(os.TempDir(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			seen++
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(secret)) || strings.Contains(path, secret) {
				t.Errorf("%s has %s", path, secret)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	if err := With(t.Context(), []bundle.Workdir{node}, func(string) { look() }, func(*Result) error { look(); return nil }); err != nil {
		t.Fatal(err)
	}
	if seen < 10 {
		t.Errorf("%d files were looked at", seen)
	}
}

// TestCtrlCEndsEachStep cancels at the beginning of each step: no other begins, and nothing is left.
func TestCtrlCEndsEachStep(t *testing.T) {
	node, _ := planted(t, strings.Repeat("a1 ", 1000))
	t.Setenv("TMPDIR", ovs.Dir(t))
	for step := 1; step <= 3; step++ {
		ctx, cancel := context.WithCancel(t.Context())
		begun := 0
		err := With(ctx, []bundle.Workdir{node}, func(string) {
			if begun++; begun == step {
				cancel()
			}
		}, func(*Result) error { t.Error("the copies are used"); return nil })
		if left, _ := os.ReadDir(os.TempDir()); !errors.Is(err, context.Canceled) || begun != step || len(left) > 0 {
			t.Errorf("step %d: %v, %d steps began, %v is left", step, err, begun, left)
		}
	}
}
