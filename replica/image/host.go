package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
)

// The programs in an image: the daemons of a replica, the tools, and a shell with a
// few programs for commands that run in a container.
var (
	ovsTools = []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}
	ovnTools = []string{"ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-appctl"}
	shell    = []string{"bash", "sh", "cat", "ls", "mv", "rm"}
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

// Host is an image made of the tools that are installed on this host.
type Host struct {
	Versions Versions
	// LeftOut names the optional parts that the image lacks, with the reason.
	LeftOut []string

	files rootfs
	path  []string
}

// FromHost finds the tools on this host and the files that they need. It reads files
// and runs the tools with --version, and writes nothing. The error for a missing tool
// names its package.
func FromHost(ctx context.Context) (*Host, error) {
	if err := process.Missing(slices.Concat(ovsTools, ovnTools, shell)...); err != nil {
		return nil, fmt.Errorf("an image from this host needs all tools on this host: %w", err)
	}
	h := &Host{files: newRootfs(), path: slices.Clone(standardPath)}
	for _, tool := range slices.Concat(ovsTools, ovnTools, shell) {
		path, err := h.find(tool)
		if err != nil {
			return nil, err
		}
		if _, err := h.files.addProgram(ctx, path); err != nil {
			return nil, fmt.Errorf("%s: %w", tool, err)
		}
	}
	// Scripts and engines use these paths, which may differ from those in PATH.
	for _, path := range []string{"/bin/sh", "/bin/bash"} {
		if _, err := h.files.addProgram(ctx, path); err != nil {
			return nil, err
		}
	}
	if err := h.addDetrace(ctx); err != nil {
		return nil, err
	}
	h.addSchemas()
	// Folders of libraries that are special to this host are listed only in the cache.
	if _, err := h.files.add("/etc/ld.so.cache"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var err error
	h.Versions, err = askVersions(ctx)
	return h, err
}

// Size returns the size of the files in bytes.
func (h *Host) Size() int64 {
	var sum int64
	for _, e := range h.files {
		sum += e.size
	}
	return sum
}

// find returns the path of a tool and adds its folder to the PATH of the image.
func (h *Host) find(tool string) (string, error) {
	path, err := process.Find(tool)
	if err != nil {
		return "", err
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	if dir := filepath.Dir(path); !slices.Contains(h.path, dir) {
		h.path = append([]string{dir}, h.path...)
	}
	return path, nil
}

// addDetrace adds ovn-detrace and the parts of Python that it needs. ovn-detrace is
// optional: without it, the replica's wrapper runs the host's.
func (h *Host) addDetrace(ctx context.Context) error {
	path, err := h.find(detrace)
	if err == nil {
		before := maps.Clone(h.files)
		if err = h.files.addPythonScript(ctx, path); err == nil {
			return nil
		}
		h.files = before
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.LeftOut = append(h.LeftOut, fmt.Sprintf("%s: %v", detrace, err))
	return nil
}

// addSchemas adds the schemas. A machine without OVN central may lack those of OVN;
// a replica then uses those in the collected databases.
func (h *Host) addSchemas() {
	for _, s := range schemas {
		found := false
		for _, prefix := range schemaPrefixes {
			if _, err := h.files.add(filepath.Join(prefix, s.name)); err == nil {
				found = true
				break
			}
		}
		if !found {
			h.LeftOut = append(h.LeftOut, fmt.Sprintf("%s is not in %s: Debian and Ubuntu have it in %s, Fedora in %s",
				s.name, strings.Join(schemaPrefixes, " or "), s.debian, s.fedora))
		}
	}
}

// askVersions returns the versions of the tools on this host.
func askVersions(ctx context.Context) (Versions, error) {
	var printed []string
	for _, tool := range []string{"ovs-vswitchd", "ovn-nbctl"} {
		path, err := process.Find(tool)
		if err != nil {
			return Versions{}, err
		}
		out, err := command.Run(ctx, command.Command{Argv: []string{path, "--version"}, Env: []string{"LC_ALL=C"}})
		if err != nil {
			return Versions{}, err
		}
		printed = append(printed, string(out))
	}
	return parseVersions(printed[0], printed[1])
}

// parseVersions returns the versions in what ovs-vswitchd and ovn-nbctl print with
// --version.
func parseVersions(ovs, ovn string) (Versions, error) {
	v := Versions{OVS: runtime.Version(ovs), OVN: runtime.Version(ovn)}
	if v.OVS == "" || v.OVN == "" {
		return Versions{}, fmt.Errorf("with --version, ovs-vswitchd prints %q and ovn-nbctl %q, without a version", ovs, ovn)
	}
	return v, nil
}
