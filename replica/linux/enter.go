package linux

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
	"ovs-offline/workdir/netns"
)

// Enter returns the command line that runs a program in a restored network namespace of a replica. The name is that
// of the node, or netns.OwnTitle for the node's own. The error wraps runtime.ErrNotInstalled without nsenter(1).
func Enter(ctx context.Context, wd *workdir.Dir, name string, argv []string) ([]string, error) {
	client, err := Dial(wd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	list, err := client.Namespaces(ctx)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, namespace := range list {
		title := netns.Title(namespace.Name)
		if title != name {
			known = append(known, title)
			continue
		}
		program, err := exec.LookPath("nsenter")
		if err != nil {
			return nil, fmt.Errorf("nsenter: %w: it is in the package util-linux", runtime.ErrNotInstalled)
		}
		user := fmt.Sprintf("--user=/proc/%d/ns/user", client.PID())
		return append([]string{program, "--preserve-credentials", user, "--net=" + namespace.File, "--"}, argv...), nil
	}
	return nil, fault.Usagef("the replica has no network namespace %q; it has %s", name, strings.Join(known, ", "))
}
