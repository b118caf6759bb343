package sets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// sosFolder is the folder of the node that sos recorded as well, beside those of the topologies.
const sosFolder = "openstack-sos"

// Node returns the folder of a node that was recorded alone in a topology. Where none was recorded, it brings the topology
// up: once for all tests of a run of scripts/testrun, or else for all that name the same folder. lab is the path of the
// lab's program.
func Node(tb testing.TB, lab, topology, folder string) string {
	tb.Helper()
	return node(tb, topology, folder, func(ctx context.Context, dir string) error { return recordNode(ctx, lab, topology, dir) })
}

// NodeOfSos works like Node for the topology openstack, whose folder has two more folders: `real` with the report of the installed sos,
// and below it `cleaned` with the same report after `sos clean`.
func NodeOfSos(tb testing.TB, lab, folder string) string {
	tb.Helper()
	return node(tb, sosFolder, folder, func(ctx context.Context, dir string) error { return recordWithSos(ctx, lab, dir) })
}

func node(tb testing.TB, name, folder string, record func(ctx context.Context, dir string) error) string {
	tb.Helper()
	if recorded := os.Getenv(RecordedVariable); recorded != "" {
		dir := filepath.Join(recorded, nodesFolder, name)
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	dir := filepath.Join(cmp.Or(os.Getenv(ovs.RunVariable), folder), nodesFolder, name)
	if err := Once(dir, func() error { return record(ovs.Context(tb), dir) }); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// recordNode brings a topology up, records its node into a folder, and ends it.
func recordNode(ctx context.Context, lab, topology, dir string) error {
	return runLab(ctx, lab, "run", topology, dir)
}

// HasSos reports whether this user can have sos report on a node.
func HasSos() bool {
	_, err := exec.LookPath("sos")
	return err == nil && os.Geteuid() == 0
}

// recordWithSos brings the topology openstack up, records its node into a folder, by sos as well, and ends it.
func recordWithSos(ctx context.Context, lab, dir string) (err error) {
	live, err := os.MkdirTemp("", "sos.") // the path of a socket holds at most 107 bytes
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(live)) }()
	if err := runLab(ctx, lab, "up", "openstack", live); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runLab(context.WithoutCancel(ctx), lab, "down", live)) }()
	for _, args := range [][]string{{"capture", live, dir}, {"sos", live, filepath.Join(dir, "real")}, {"oracle", live, dir}} {
		if err := runLab(ctx, lab, args...); err != nil {
			return err
		}
	}
	return nil
}

func runLab(ctx context.Context, lab string, args ...string) error {
	if _, err := command.Run(ctx, command.Command{Argv: append([]string{lab}, args...)}); err != nil {
		return fmt.Errorf("lab %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
