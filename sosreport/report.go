// Package sosreport reads an sos report, either an archive or a folder, in one pass,
// and finds the flow dumps, databases and recorded state in it. Only this package knows
// the layout of reports and how sos names files.
package sosreport

import (
	"cmp"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/versions"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Report is the content of an sos report.
type Report struct {
	recording.Recording
	// Top is the report's folder in the source, "" if it is the source itself.
	Top        string
	SosVersion string
	// BytesRead is the number of bytes read of the source, each counted once.
	BytesRead int64
}

// At sets the path at which the report was found, and returns the report.
func (r *Report) At(path string) *Report {
	tool := "sos " + r.SosVersion
	if r.SosVersion == "" {
		tool = "sos of unknown version"
	}
	r.Source = workdir.Source{Kind: "sos report", Name: path, Tool: tool}
	return r
}

var (
	rpmLine = lazyregexp.New(`(?m)^(openvswitch|ovn)(?:-20[0-9]{2})?[0-9.]*-(?:[0-9]+:)?([0-9][^-\s]*)-`)
	debLine = lazyregexp.New(`(?m)^ii\s+(openvswitch-switch|ovn-common)\s+(?:[0-9]+:)?([0-9][^-+~\s]*)`)
	// dirName matches the names that sos gives: HOST[-LABEL][-CASE]-DATE-RANDOM, or
	// for its older policies HOST[.CASE]-TIME (get_archive_name() of sos).
	dirName = lazyregexp.New(`^sosreport-(.+?)(?:-obfuscated)?(?:-([0-9]{4}-[0-9]{2}-[0-9]{2})-[a-z0-9]+.*|-([0-9]{14})(?:[.-].*)?)?$`)
)

// describe fills in the name and versions of the node.
func (r *Report) describe(contents *contents) {
	for _, name := range []string{"sos_commands/host/hostname", "hostname", "etc/hostname"} {
		if words := strings.Fields(contents.text(name)); r.Host == "" && len(words) > 0 {
			r.Host = words[0]
		}
	}
	for _, name := range []string{path.Base(contents.top), sourceName(contents)} {
		if match := dirName.FindStringSubmatch(name); r.Host == "" && match != nil {
			r.Host, r.HostOfArchive = match[1], true
		}
	}
	r.SosVersion = strings.TrimSpace(strings.TrimPrefix(contents.text("version.txt"), "sosreport:"))
	if contents.manifest != nil && contents.manifest.Version != "" {
		r.SosVersion = contents.manifest.Version
	}
	for _, output := range r.Outputs(version, "") {
		r.OVSVersion = cmp.Or(r.OVSVersion, versions.PrintedOVS([]byte(readStart(output.Spooled))))
	}
	r.packageVersions(contents)
	r.Taken = contents.taken()
}

// sourceName returns the name of the folder that the report was extracted to.
func sourceName(contents *contents) string {
	if !contents.tree.Folder || contents.top != "" {
		return ""
	}
	abs, _ := filepath.Abs(contents.tree.Source) // "" if the current folder is not known
	return filepath.Base(abs)
}

// packageVersions reads versions from the lists of packages, because no command that
// sos runs prints the version of OVN.
func (r *Report) packageVersions(contents *contents) {
	packages := contents.text("sos_commands/rpm/package-data") + "\n" + contents.text("installed-rpms") + "\n" + contents.text("sos_commands/dpkg/dpkg_-l")
	for _, pattern := range []*lazyregexp.Regexp{rpmLine, debLine} {
		for _, match := range pattern.FindAllStringSubmatch(packages, -1) {
			if strings.HasPrefix(match[1], "ovn") && r.OVNVersion == "" {
				r.OVNVersion = match[2]
			} else if strings.HasPrefix(match[1], "openvswitch") && r.OVSVersion == "" {
				r.OVSVersion = match[2]
			}
		}
	}
}

// readStart returns the first 8 MiB of a spooled file, "" if it cannot be read.
func readStart(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	raw, _ := io.ReadAll(io.LimitReader(file, 8<<20)) // a file that can be read only in part is used
	return string(raw)
}
