package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// The programs that a replica needs, and those of OVN, without which there are replicas
// of switches only.
var (
	neededTools   = []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}
	optionalTools = []string{"ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-detrace"}
)

// ErrIncomplete is wrapped by the error for an image without a program that a replica
// needs.
var ErrIncomplete = errors.New("the image can't run a replica")

// checkTools returns an error that names the programs that a root file system lacks.
func checkTools(root string) error {
	if missing := missingIn(root, neededTools); len(missing) > 0 {
		return fmt.Errorf("%w: it has no %s", ErrIncomplete, strings.Join(missing, ", no "))
	}
	return nil
}

// examine finds the versions of the programs in a root file system, and what it lacks.
func examine(ctx context.Context, root string, i *Image) error {
	if err := checkTools(root); err != nil {
		return err
	}
	missing := missingIn(root, optionalTools)
	if len(missing) > 0 {
		i.Remarks = append(i.Remarks, "the image has no "+strings.Join(missing, ", no "))
	}
	var err error
	i.OVS, err = askVersion(ctx, root, "ovs-vswitchd")
	for _, tool := range optionalTools[:3] {
		if err == nil && i.OVN == "" && len(missingIn(root, []string{tool})) == 0 {
			i.OVN, err = askVersion(ctx, root, tool)
		}
	}
	return err
}

var versionNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

// TODO S2
func askVersion(ctx context.Context, root, tool string) (string, error) {
	for _, d := range []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"} {
		if _, err := os.Lstat(filepath.Join(root, d, tool)); err != nil {
			continue
		}
		c := exec.CommandContext(ctx, filepath.Join(d, tool), "--version")
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}}
		out, err := c.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return versionNumber.FindString(string(out)), nil
	}
	return "", errors.New("none")
}

func missingIn(root string, tools []string) (m []string) {
	for _, tool := range tools {
		found := false
		for _, d := range []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"} {
			if _, err := os.Lstat(filepath.Join(root, d, tool)); err == nil {
				found = true
			}
		}
		if !found {
			m = append(m, tool)
		}
	}
	return m
}
