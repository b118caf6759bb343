package sets

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ovs-offline/internal/command"
	"ovs-offline/test/daemons/ovs"
)

// nodesFolder is the folder of the nodes that are recorded alone, beside the recorded sets.
const nodesFolder = "nodes"

// topologies lists the topologies of the lab whose node is recorded alone.
func topologies() []string {
	return []string{"openstack", "kubernetes", "ml2-ovs", "monitoring", "dpdk", "switching"}
}

// Node returns the folder of a node that was recorded alone in a topology. Where none was recorded, it brings the topology
// up: once for all tests of a run of scripts/testrun, or else for all that name the same folder. lab is the path of the
// lab's program.
func Node(tb testing.TB, lab, topology, folder string) string {
	tb.Helper()
	if recorded := os.Getenv(RecordedVariable); recorded != "" {
		dir := filepath.Join(recorded, nodesFolder, topology)
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	dir := filepath.Join(cmp.Or(os.Getenv(RunVariable), folder), nodesFolder, topology)
	if err := Once(dir, func() error { return recordNode(ovs.Context(tb), lab, topology, dir) }); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// recordNode brings a topology up, records its node into a folder, and ends it.
func recordNode(ctx context.Context, lab, topology, dir string) error {
	if _, err := command.Run(ctx, command.Command{Argv: []string{lab, "run", topology, dir}}); err != nil {
		return fmt.Errorf("lab run %s: %w", topology, err)
	}
	return nil
}
