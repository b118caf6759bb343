package fidelity

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/pkg/openflow"
	"ovs-offline/test/check/lines"
	"ovs-offline/workdir"
)

// Truth compares the dumps of ovs-ofctl on a live node, which the lab wrote into the
// folder truth, with the dumps on the replica. It returns a line for each dump that
// differs.
func Truth(truth string, ofctl func(args ...string) (string, error)) ([]string, error) {
	versions, err := os.ReadFile(filepath.Join(truth, "versions"))
	if err != nil || len(versions) == 0 {
		return nil, fmt.Errorf("no dumps in %s: %w", truth, err)
	}
	var differences []string
	for line := range strings.Lines(string(versions)) {
		bridge, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, d := range []struct {
			dump    workdir.Dump
			command string
		}{{workdir.Flows, "dump-flows"}, {workdir.Groups, "dump-groups"}, {workdir.Meters, "dump-meters"}, {workdir.TLV, "dump-tlv-map"}} {
			want, err := os.ReadFile(filepath.Join(truth, bridge+"."+string(d.dump)))
			if err != nil {
				return nil, err
			}
			args := []string{"-O", version, d.command, bridge}
			if d.dump == workdir.Flows {
				args = append([]string{"--no-stats"}, args...)
			}
			have, err := ofctl(args...)
			if err != nil {
				return nil, err
			}
			missing, extra := lines.Difference(Entries(d.dump, string(want)), Entries(d.dump, have))
			if len(missing)+len(extra) > 0 {
				differences = append(differences, fmt.Sprintf("%s %s: %d entries are missing, %d are extra: %.400q %.400q", bridge, d.dump, len(missing), len(extra), missing, extra))
			}
		}
	}
	return differences, nil
}

// Entries returns the entries of a dump, without timeouts: a replica's flows have none.
func Entries(dump workdir.Dump, text string) []string {
	var list []string
	var found []openflow.Entry
	r := strings.NewReader(text)
	switch dump {
	case workdir.Flows:
		for flow, problem := range openflow.Flows(r) {
			if problem == nil {
				list = append(list, strings.ReplaceAll(flow.Text, "dec_ttl()", "dec_ttl"))
			}
		}
	case workdir.Groups:
		found, _ = openflow.Groups(r)
	case workdir.Meters:
		found, _ = openflow.Meters(r)
	case workdir.TLV:
		found, _ = openflow.TLVMap(r)
	}
	for _, e := range found {
		list = append(list, e.Text)
	}
	return list
}
