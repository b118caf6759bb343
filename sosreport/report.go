// Package sosreport reads a sos report, an archive or a directory, in one pass,
// and says what it holds by meaning: the flow dumps of a bridge, the databases,
// the recorded state. Where a thing stands in the report, under which mangled
// name and of which sos version, is known here and nowhere else.
package sosreport

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

const (
	listBr  recording.Meaning = "list-br"
	version recording.Meaning = "version"
)

// Report is what a sos report holds.
type Report struct {
	recording.Node
	// Top is the report's folder in the source, "" where it is the source itself.
	Top        string
	SosVersion string
	// BytesRead counts what was read of the source, each byte once.
	BytesRead int64
}

// At notes where the report was found.
func (r *Report) At(path string) *Report {
	tool := "sos " + r.SosVersion
	if r.SosVersion == "" {
		tool = "sos of unknown version"
	}
	r.Source = workdir.Source{Kind: "sos report", Name: path, Tool: tool}
	return r
}

var (
	versionLine = regexp.MustCompile(`\(Open vSwitch\) ([0-9][^\s]*)`)
	rpmLine     = regexp.MustCompile(`(?m)^(openvswitch|ovn)(?:-20[0-9]{2})?[0-9.]*-(?:[0-9]+:)?([0-9][^-\s]*)-`)
	debLine     = regexp.MustCompile(`(?m)^ii\s+(openvswitch-switch|ovn-common)\s+(?:[0-9]+:)?([0-9][^-+~\s]*)`)
	dirName     = regexp.MustCompile(`^sosreport-(.+?)(?:-obfuscated)?(?:-[0-9]{4}-[0-9]{2}-[0-9]{2}-[a-z0-9]+.*)?$`)
)

// describe fills in what the report says of the node it was taken on.
func (r *Report) describe(c *contents) {
	for _, name := range []string{"sos_commands/host/hostname", "hostname", "etc/hostname"} {
		if r.Host == "" {
			r.Host = firstWord(c.text(name))
		}
	}
	for _, name := range []string{path.Base(c.top), sourceName(c)} {
		if m := dirName.FindStringSubmatch(name); r.Host == "" && m != nil {
			r.Host = m[1]
		}
	}
	r.SosVersion = strings.TrimSpace(strings.TrimPrefix(c.text("version.txt"), "sosreport:"))
	if c.manifest != nil && c.manifest.Version != "" {
		r.SosVersion = c.manifest.Version
	}
	for _, o := range r.Outputs(version, "") {
		if m := versionLine.FindStringSubmatch(readStart(o.File)); m != nil && r.OVSVersion == "" {
			r.OVSVersion = m[1]
		}
	}
	r.packageVersions(c)
}

// sourceName is the name of the folder that the report was extracted to.
func sourceName(c *contents) string {
	if !c.tree.Folder || c.top != "" {
		return ""
	}
	abs, err := filepath.Abs(c.tree.Source)
	if err != nil {
		return ""
	}
	return filepath.Base(abs)
}

// packageVersions knows OVN's version, which no command in a report tells.
func (r *Report) packageVersions(c *contents) {
	packages := c.text("sos_commands/rpm/package-data") + "\n" + c.text("installed-rpms") + "\n" + c.text("sos_commands/dpkg/dpkg_-l")
	for _, pattern := range []*regexp.Regexp{rpmLine, debLine} {
		for _, m := range pattern.FindAllStringSubmatch(packages, -1) {
			if strings.HasPrefix(m[1], "ovn") && r.OVNVersion == "" {
				r.OVNVersion = m[2]
			} else if strings.HasPrefix(m[1], "openvswitch") && r.OVSVersion == "" {
				r.OVSVersion = m[2]
			}
		}
	}
}

// readStart returns the first 8 MiB of a spooled file, "" where it can't be read.
func readStart(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	raw, _ := io.ReadAll(io.LimitReader(f, 8<<20)) // what could be read is worth more than nothing
	return string(raw)
}

func firstWord(text string) string {
	if fields := strings.Fields(text); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
