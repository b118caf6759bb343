package replica

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/show"
	"ovs-offline/internal/versions"
)

// TestListTakesTwoLinesAReplica prints two replicas for terminals: the table where it fits, and else two lines of
// each, which begin with the whole path.
func TestListTakesTwoLinesAReplica(t *testing.T) {
	release := versions.Pair{OVS: "3.1.0", OVN: "23.03.1"}
	var list []Listed
	for _, path := range []string{"/srv/cases/04711/ovs-offline/compute-1", "/tmp/wd"} {
		list = append(list, Listed{Workdir: path, Runtime: "process", Daemons: 5, Started: time.Unix(1e9, 0),
			Recorded: release, Running: release, Hosts: []string{"compute-1.example.com"},
			Sources: []string{"/srv/sosreport-compute-1-2026-11-21-kdplive.tar.xz"}})
	}
	for width, want := range map[int]int{60: 4, 80: 4, 160: 4, 300: 3, 0: 3} {
		var out bytes.Buffer
		PrintList(&show.Page{Out: &out, Width: width}, list)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != want {
			t.Errorf("%d columns: %d lines, not %d:\n%s", width, len(lines), want, out.String())
		}
		for _, line := range lines {
			if width > 0 && len(line) > width {
				t.Errorf("wider than %d columns: %q", width, line)
			}
		}
		for _, replica := range list {
			if !strings.Contains(out.String(), replica.Workdir) {
				t.Errorf("%d columns: no %s in\n%s", width, replica.Workdir, out.String())
			}
		}
	}
}
