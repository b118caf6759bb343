package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime/process"
)

// The tools that an image holds. ovs-vswitchd and ovsdb-server are the daemons
// of a replica, the shells and what follows them serve who runs tools inside.
var (
	ovsTools = []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"}
	ovnTools = []string{"ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-appctl"}
	shell    = []string{"bash", "sh", "cat", "ls", "mv", "rm"}
)

const detrace = "ovn-detrace"

// schemas are at these places of a prefix, by the packages or by a build from
// source.
var (
	schemas = []struct{ name, debian, fedora string }{
		{"openvswitch/vswitch.ovsschema", "openvswitch-switch", "openvswitch"},
		{"ovn/ovn-nb.ovsschema", "ovn-central", "ovn-central"},
		{"ovn/ovn-sb.ovsschema", "ovn-central", "ovn-central"},
	}
	schemaPrefixes = []string{"/usr/share", "/usr/local/share"}
)

// standardPath is the PATH of an image.
var standardPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Host is an image made of the tools that are installed on this host.
type Host struct {
	Versions Versions
	// LeftOut says what the image lacks of what it could hold, and why.
	LeftOut []string

	files *rootfs
	path  []string
}

// FromHost finds the tools on this host and what they need. It reads files and
// asks the tools for their versions, and writes nothing. Where a tool is not
// installed the error names it and the package that has it.
func FromHost(ctx context.Context) (*Host, error) {
	if err := process.Missing(slices.Concat(ovsTools, ovnTools, shell)...); err != nil {
		return nil, fmt.Errorf("an image from this host takes all tools on this host: %w", err)
	}
	h := &Host{files: newRootfs(), path: slices.Clone(standardPath)}
	for _, tool := range slices.Concat(ovsTools, ovnTools, shell) {
		if err := h.addTool(ctx, tool); err != nil {
			return nil, err
		}
	}
	// Found in PATH, a shell is not where scripts and engines call it.
	for _, path := range []string{"/bin/sh", "/bin/bash"} {
		if err := h.files.addProgram(ctx, path); err != nil {
			return nil, err
		}
	}
	if err := h.addDetrace(ctx); err != nil {
		return nil, err
	}
	h.addSchemas()
	// Libraries in folders of this host's own are found by its cache alone.
	if _, err := h.files.add("/etc/ld.so.cache"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return h, h.askVersions(ctx)
}

// Size is that of the files inside, in bytes.
func (h *Host) Size() int64 { return h.files.size() }

func (h *Host) addTool(ctx context.Context, tool string) error {
	path, err := h.find(tool)
	if err != nil {
		return err
	}
	if err := h.files.addProgram(ctx, path); err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	return nil
}

// find finds a tool, and has its folder in the PATH of the image.
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

// addDetrace takes ovn-detrace, with the Python that it needs. An image is good
// without it: the replica's wrapper then runs the host's.
func (h *Host) addDetrace(ctx context.Context) error {
	path, err := h.find(detrace)
	if err == nil {
		kept := h.files.clone()
		if err = h.files.addPythonScript(ctx, path); err == nil {
			return nil
		}
		h.files = kept
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.LeftOut = append(h.LeftOut, fmt.Sprintf("%s: %v", detrace, err))
	return nil
}

// addSchemas takes the schemas. A machine that is no OVN central may have none
// of OVN; a replica then keeps to those in the collected databases.
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
			h.LeftOut = append(h.LeftOut, fmt.Sprintf("%s is neither in %s: Debian and Ubuntu have it in %s, Fedora in %s",
				s.name, strings.Join(schemaPrefixes, " nor in "), s.debian, s.fedora))
		}
	}
}

func (h *Host) askVersions(ctx context.Context) error {
	var err error
	if h.Versions.OVS, err = askVersion(ctx, "ovs-vswitchd"); err != nil {
		return err
	}
	h.Versions.OVN, err = askVersion(ctx, "ovn-nbctl")
	return err
}

var versionNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)+`)

func askVersion(ctx context.Context, tool string) (string, error) {
	path, err := process.Find(tool)
	if err != nil {
		return "", err
	}
	out, err := command.Run(ctx, command.Command{Argv: []string{path, "--version"}, Env: []string{"LC_ALL=C"}})
	if err != nil {
		return "", err
	}
	return parseVersion(tool, string(out))
}

// parseVersion returns the version in the output of --version:
// "ovs-vswitchd (Open vSwitch) 3.1.0".
func parseVersion(tool, output string) (string, error) {
	version := versionNumber.FindString(output)
	if version == "" {
		return "", fmt.Errorf("%s --version prints no version: %q", tool, output)
	}
	return version, nil
}
