package k8s

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/internal/openflow"
)

// dumps are the kinds of what a bridge holds.
var dumps = []struct{ file, command string }{
	{"flows", "dump-flows"}, {"groups", "dump-groups"}, {"meters", "dump-meters"}, {"tlv", "dump-tlv-map"},
}

// checkTruth compares what ovs-ofctl said on the live node with what it says
// on the replica in dir.
func checkTruth(t *testing.T, dir, truth string) {
	t.Helper()
	versions, err := os.ReadFile(filepath.Join(truth, "versions"))
	if err != nil || len(versions) == 0 {
		t.Fatal("no truth: ", err)
	}
	for line := range strings.Lines(string(versions)) {
		bridge, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, d := range dumps {
			want, err := os.ReadFile(filepath.Join(truth, bridge+"."+d.file))
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"-O", version, d.command, bridge}
			if d.file == "flows" {
				args = append([]string{"--no-stats"}, args...)
			}
			have, err := exec.Command(filepath.Join(dir, "bin/ovs-ofctl"), args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			missing, extra := difference(entries(d.file, string(want)), entries(d.file, string(have)))
			if len(missing)+len(extra) > 0 {
				t.Errorf("%s %s: %d of the live node are missing, %d are there that it had not: %.400q %.400q", bridge, d.file, len(missing), len(extra), missing, extra)
			}
		}
	}
}

// entries are a dump's. Timeouts don't count, since a replica's flows have none.
func entries(kind, text string) []string {
	var list []string
	r := strings.NewReader(text)
	var found []openflow.Entry
	switch kind {
	case "flows":
		for flow, problem := range openflow.Flows(r) {
			if problem == nil {
				list = append(list, strings.ReplaceAll(flow.Text, "dec_ttl()", "dec_ttl"))
			}
		}
	case "groups":
		found, _ = openflow.Groups(r)
	case "meters":
		found, _ = openflow.Meters(r)
	case "tlv":
		found, _ = openflow.TLVMap(r)
	}
	for _, e := range found {
		list = append(list, e.Text)
	}
	return list
}

func difference(want, have []string) (missing, extra []string) {
	count := map[string]int{}
	for _, s := range have {
		count[s]++
	}
	for _, s := range want {
		if count[s] == 0 {
			missing = append(missing, s)
		}
		count[s]--
	}
	for s, n := range count {
		if n > 0 {
			extra = append(extra, s)
		}
	}
	return missing, extra
}
