package host

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/internal/show"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// TestAdviceDoesNotRepeatWhatWasDone checks what is advised where no ovs-vswitchd of a node runs: not the command that
// was given and could not help.
func TestAdviceDoesNotRepeatWhatWasDone(t *testing.T) {
	const again = "wd start --node n1 --chassis all"
	call := func(node string, args ...string) string {
		if node != "" {
			args = slices.Insert(args, 1, "--node", node)
		}
		return "wd " + show.Words(args...)
	}
	for name, c := range map[string]struct {
		collected       []workdir.Kind
		recorded, runs  string // of OVN; no report of a start where both are empty
		says, saysNever string
	}{
		"nothing was started": {[]workdir.Kind{workdir.NB, workdir.SB}, "", "",
			"which needs a release of OVN that fits, with: " + again, "image add"},
		"another release ran": {[]workdir.Kind{workdir.NB, workdir.SB}, "20.12.0", "23.03.1",
			"get a container image (of a registry or a file) or a root directory that has OVN 20.12; with its path or name for SOURCE: wd image add SOURCE; then: " + again, "none was synthesised: collect"},
		"an older release ran": {[]workdir.Kind{workdir.SB}, "24.09.2", "23.03.1",
			"OVN 24.09.2 wrote its databases, and OVN 23.03.1 runs, which can't compute its flows",
			"none was synthesised: collect"},
		"this release ran without --chassis": {[]workdir.Kind{workdir.NB, workdir.SB}, "23.03.0", "23.03.1",
			"which needs a release of OVN that fits, with: " + again, "image add"},
		"the release is not known": {[]workdir.Kind{workdir.NB}, "", "23.03.1",
			"which needs a release of OVN that fits, with: " + again, "image add"},
		"the switch was collected and not started": {[]workdir.Kind{workdir.OVS, workdir.NB}, "", "",
			"its replica does not run: start it with: wd start --node n1", "--chassis"},
	} {
		t.Run(name, func(t *testing.T) {
			wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
			if err != nil {
				t.Fatal(err)
			}
			defer wd.Unlock()
			manifest := workdir.Manifest{Format: workdir.FormatVersion}
			for _, kind := range c.collected {
				manifest.Collections = append(manifest.Collections, workdir.Collection{Kind: kind})
			}
			if err := workdir.WriteJSON(filepath.Join(wd.Path(), "manifest.json"), manifest); err != nil {
				t.Fatal(err)
			}
			if c.runs != "" {
				start := report.New()
				start.Recorded, start.Running = versions.Pair{OVN: c.recorded}, versions.Pair{OVN: c.runs}
				if err := workdir.WriteUnsynced(wd.ReportFile(), start); err != nil {
					t.Fatal(err)
				}
			}
			a := asker{node: "n1", dir: wd}
			unavailable, ok := errors.AsType[*UnavailableError](a.unreachableError(fs.ErrNotExist))
			if !ok {
				t.Fatal("no error of a replica that can't be asked")
			}
			if text := unavailable.Advising(call); !strings.Contains(text, c.says) || strings.Contains(text, c.saysNever) {
				t.Errorf("%s", text)
			}
		})
	}
}
