package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime/process"
)

// detrace is a script, which prints no version of OVN.
const detrace = "ovn-detrace"

// The programs that a replica needs. Without the programs of OVN, a replica has switches
// only.
var (
	neededTools = []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}
	ovnTools    = []string{"ovn-nbctl", "ovn-sbctl", "ovn-trace", detrace}
)

// ErrIncomplete is wrapped by the error for an image without a program that a replica
// needs.
var ErrIncomplete = errors.New("the image can't run a replica")

// missingPrograms returns the programs that a root file system does not have.
func missingPrograms(root string, programs []string) []string {
	return slices.DeleteFunc(slices.Clone(programs), func(program string) bool {
		_, err := process.FindIn(root, program)
		return err == nil
	})
}

// checkTools returns an error that names the programs that a root file system lacks.
func checkTools(root string) error {
	if missing := missingPrograms(root, neededTools); len(missing) > 0 {
		return fmt.Errorf("%w: it has no %s", ErrIncomplete, strings.Join(missing, ", no "))
	}
	return nil
}

// examine finds the versions of the programs in a root file system, and which it lacks.
func examine(ctx context.Context, root string, image *Image) error {
	err := checkTools(root)
	if err != nil {
		return err
	}
	if image.OVS, err = askVersion(ctx, root, "ovs-vswitchd", versions.PrintedOVS); err != nil {
		return err
	}
	missing := missingPrograms(root, ovnTools)
	if len(missing) > 0 {
		image.Remarks = append(image.Remarks, "the image has no "+strings.Join(missing, ", no "))
	}
	for _, tool := range ovnTools {
		if slices.Contains(missing, tool) || tool == detrace {
			continue
		}
		image.OVN, err = askVersion(ctx, root, tool, versions.PrintedOVN)
		return err
	}
	return nil
}

// askVersion runs a program of a root file system with --version.
func askVersion(ctx context.Context, root, program string, in func(printed []byte) string) (string, error) {
	const runDir = "/tmp" // --version uses no socket
	printed, err := process.New(process.Options{Root: root}).Tool(ctx, runDir, nil, program, "--version")
	if err != nil {
		return "", fmt.Errorf("asking for its version: %w", err)
	}
	version := in(printed)
	if version == "" {
		return "", fmt.Errorf("%w: its %s --version prints no version", ErrIncomplete, program)
	}
	return version, nil
}
