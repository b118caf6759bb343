package build

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/internal/command"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime/process"
)

// The programs in an image: the daemons of a replica, the tools, and a shell with a
// few programs for commands that run in a container.
var (
	ovsTools = []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}
	ovnTools = []string{"ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-appctl"}
	// computing are the programs that compute flows from databases (drift, what-if), which
	// have packages of their own: an image can lack them.
	computing = []string{"ovn-controller", "ovn-northd"}
	shell     = []string{"bash", "sh", "cat", "ls", "mv", "rm"}
	// gathering are the programs that gather runs, and the programs that oc runs around it
	// (pkg/cli/admin/mustgather and pkg/cli/rsync of its source).
	gathering = []string{"mkdir", "tee", "sleep", "sync", "tar", "df", "awk", "sed", "sort", "setsid", "ps", "pkill"}
)

const detrace = "ovn-detrace"

// The schemas, with the packages that contain them, and the folders in which
// packages or a build from source install them.
var (
	schemas = []struct{ name, debian, fedora string }{
		{"openvswitch/vswitch.ovsschema", "openvswitch-switch", "openvswitch"},
		{"ovn/ovn-nb.ovsschema", "ovn-central", "ovn-central"},
		{"ovn/ovn-sb.ovsschema", "ovn-central", "ovn-central"},
	}
	schemaPrefixes = []string{"/usr/share", "/usr/local/share"}
)

// standardPath is the PATH in an image.
var standardPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// FromHost finds the tools on this host and the files that they need. It reads files
// and runs the tools with --version, and writes nothing. The error for a missing tool
// names its package.
func FromHost(ctx context.Context) (*Content, error) {
	if err := process.Missing(slices.Concat(ovsTools, ovnTools, shell)...); err != nil {
		return nil, fmt.Errorf("an image from this host needs all tools on this host: %w", err)
	}
	return gather(ctx, madeFromHost, process.Find, "", "")
}

// gather returns the content of an image of the tools that find finds, and of the files
// of this host that they need. What is in the folder built, "" for none, gets paths below
// /. library is a folder with Python modules of the tools, "" for none.
func gather(ctx context.Context, made string, find finder, built, library string) (*Content, error) {
	content := newContent(made)
	if built != "" {
		content.files.moved[built] = "/"
	}
	if err := content.addTools(ctx, slices.Concat(ovsTools, ovnTools), find); err != nil {
		return nil, err
	}
	if err := content.addOptionalTools(ctx, computing, find); err != nil {
		return nil, err
	}
	if err := content.addShell(ctx); err != nil {
		return nil, err
	}
	if err := content.addDetrace(ctx, find, library); err != nil {
		return nil, err
	}
	content.addSchemas(built)
	if err := content.addLoaderCache(); err != nil {
		return nil, err
	}
	var err error
	content.Versions, err = askVersions(ctx, find)
	return content, err
}

// askVersions returns the versions of tools that this host can run.
func askVersions(ctx context.Context, find finder) (versions.Pair, error) {
	var printed []string
	for _, tool := range []string{"ovs-vswitchd", "ovn-nbctl"} {
		path, err := find(tool)
		if err != nil {
			return versions.Pair{}, err
		}
		out, err := command.Run(ctx, command.Command{Argv: []string{path, "--version"}, Env: []string{"LC_ALL=C"}})
		if err != nil {
			return versions.Pair{}, err
		}
		printed = append(printed, string(out))
	}
	return parseVersions(printed[0], printed[1])
}

// parseVersions returns the versions that ovs-vswitchd and ovn-nbctl print with
// --version.
func parseVersions(ovs, ovn string) (versions.Pair, error) {
	pair := versions.Pair{OVS: versions.PrintedOVS([]byte(ovs)), OVN: versions.PrintedOVN([]byte(ovn))}
	if pair.OVS == "" || pair.OVN == "" {
		return versions.Pair{}, fmt.Errorf("with --version, ovs-vswitchd prints %q and ovn-nbctl %q, without a version", ovs, ovn)
	}
	return pair, nil
}
