package sosreport

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir/recording"
)

// contents is the kept part of one report, by paths relative to its top.
type contents struct {
	tree     *archive.Tree
	top      string
	list     []string          // all names, relative to top, sorted
	aliases  map[string]string // see containerNames
	manifest *manifest
}

// manifest is the part of sos_reports/manifest.json (sos 4.0 and later) that is used.
type manifest struct {
	Version    string `json:"version"`
	EndTime    string `json:"end_time"`
	Components struct {
		Report struct {
			Plugins map[string]struct {
				Commands []struct {
					Exec      string `json:"exec"`
					Filepath  string `json:"filepath"`
					Truncated bool   `json:"truncated"`
					StartTime any    `json:"start_time"` // a number in newer versions
				} `json:"commands"`
			} `json:"plugins"`
		} `json:"report"`
	} `json:"components"`
}

// resolve follows links inside the report to a file that was kept.
func (c *contents) resolve(rel string) (real string, file archive.File, ok bool) {
	if alias, ok := c.aliases[rel]; ok {
		rel = alias
	}
	return c.tree.Resolve(c.top, rel)
}

// text returns the first 8 MiB of a file of the report, "" if the report has no such
// file.
func (c *contents) text(rel string) string {
	if _, file, ok := c.resolve(rel); ok {
		return readStart(file.Spooled)
	}
	return ""
}

func isTailed(rel string) bool { return strings.HasPrefix(rel, "sos_strings/") }

// The prefix of a command that sos ran in a container, in the file's name and in
// the manifest. The commands of a snap, OpenStack's or MicroOVN, begin with its name.
var (
	inContainer = lazyregexp.New(`^(?:(?:podman|docker|crictl)_exec_.+?_|(?:openstack-hypervisor|microovn)\.)((?:ov[sn]-[a-z]+|ovsdb-client)_.*)$`)
	execPrefix  = lazyregexp.New(`^(?:(?:podman|docker|crictl) exec (?:-\S+ )*\S+ |(?:openstack-hypervisor|microovn)\.)`)
)

// containerNames maps the names that outputs would have outside a container to
// the names that they have.
func (c *contents) containerNames() map[string]string {
	aliases := map[string]string{}
	add := func(plain, rel string) {
		if _, known := aliases[plain]; !known && !c.has(plain) {
			aliases[plain] = rel
		}
	}
	for _, rel := range c.list {
		folder, name := path.Split(rel)
		if match := inContainer.FindStringSubmatch(name); match != nil && strings.HasPrefix(rel, "sos_commands/") {
			add(folder+match[1], rel)
		}
		if parts := strings.SplitN(rel, "/", 3); len(parts) == 3 && parts[0] == "sos_containers" && strings.HasPrefix(parts[2], "sos_commands/") {
			add(parts[2], rel)
		}
	}
	c.list = slices.AppendSeq(c.list, maps.Keys(aliases))
	slices.Sort(c.list)
	return aliases
}

// index fills the report with data from the kept files.
func (c *contents) index(ctx context.Context, report *Report) error {
	c.aliases = c.containerNames()
	if err := c.readManifest(); err != nil {
		return err
	}
	byFile := c.outputFiles()
	report.Bridges = c.bridges(byFile)
	report.LimitBridges()
	c.indexOutputs(ctx, report, byFile)
	report.LimitNamespaces()
	c.indexDatabases(report)
	c.indexLogs(report)
	c.indexHost(report)
	report.describe(c)
	report.Unused = c.unused(report)
	return nil
}

// unused returns the files of the plugins for Open vSwitch and OVN that the report does not use.
func (c *contents) unused(report *Report) (list []string) {
	used := map[string]bool{}
	for _, output := range report.All {
		used[output.Origin] = true
	}
	for _, log := range report.HostLogs {
		used[log.Origin] = true
	}
	for _, file := range report.HostFiles {
		used[file.Origin] = true
	}
	for _, rel := range c.list {
		_, isFile := c.tree.Files[path.Join(c.top, rel)]
		if isFile && !used[rel] && strings.Contains("/"+rel, "/sos_commands/") && recording.IsOutputName(rel) {
			list = append(list, rel)
		}
	}
	return list
}

// maxManifest bounds a manifest, in bytes; with every plugin it has 2 MB.
const maxManifest = 32 << 20

func (c *contents) readManifest() error {
	_, file, ok := c.resolve("sos_reports/manifest.json")
	if !ok || file.Size > maxManifest { // a manifest that is too large counts as damaged
		return nil
	}
	raw, err := os.ReadFile(file.Spooled)
	if err != nil {
		return err
	}
	var manifest manifest
	if json.Unmarshal(raw, &manifest) == nil { // without a manifest, the names of the files identify the commands
		c.manifest = &manifest
	}
	return nil
}

// outputFiles maps the path of an output to the command that made it.
func (c *contents) outputFiles() map[string]executed {
	byFile := map[string]executed{}
	if c.manifest == nil {
		return byFile
	}
	for _, plugin := range c.manifest.Components.Report.Plugins {
		for _, cmd := range plugin.Commands {
			if cmd.Filepath != "" {
				command := execPrefix.ReplaceAllString(stripPath(cmd.Exec), "")
				byFile[path.Clean(cmd.Filepath)] = executed{command: stripPath(command), truncated: cmd.Truncated, began: commandTime(cmd.StartTime)}
			}
		}
	}
	return byFile
}

// executed is a command in the manifest.
type executed struct {
	command   string
	truncated bool
	began     time.Time // zero if it is not known
}

// has reports whether the report has a file or link of that name.
func (c *contents) has(rel string) bool {
	_, found := slices.BinarySearch(c.list, rel)
	return found
}

// names lists the kept files and links whose paths begin with prefix, sorted.
func (c *contents) names(prefix string) []string {
	from, _ := slices.BinarySearch(c.list, prefix)
	to := from
	for to < len(c.list) && strings.HasPrefix(c.list[to], prefix) {
		to++
	}
	return c.list[from:to]
}

// indexLogs adds the logs of clients of libovsdb.
func (c *contents) indexLogs(report *Report) {
	for _, rel := range c.list {
		if !isClientLog(rel) {
			continue
		}
		if real, file, ok := c.resolve(rel); ok {
			report.Logs = append(report.Logs, recording.Log{File: file, Name: path.Base(rel), Origin: real, Truncated: isTailed(real)})
		}
	}
}

// indexHost adds the logs of programs, and the files of which texts about the machine are made. A link
// and its target are one log.
func (c *contents) indexHost(report *Report) {
	seen := map[string]bool{}
	for _, rel := range c.list {
		log, isLog := recording.LogOf(rel)
		if !isLog && !recording.MayHaveHostText(rel) {
			continue
		}
		real, file, ok := c.resolve(rel)
		if !ok || seen[real] {
			continue
		}
		if isLog {
			seen[real] = true
			report.HostLogs = append(report.HostLogs, recording.Log{File: file, Program: log.Program, Name: log.Name, Origin: real, Truncated: isTailed(real)})
		} else if text, ok := recording.HostTextOf(rel, []byte(readStart(file.Spooled))); ok {
			seen[real] = true
			report.HostFiles = append(report.HostFiles, recording.HostFile{File: file, Text: text, Origin: real})
		}
	}
}

// indexDatabases adds each database once, under the name that is not a link: first the
// databases in the usual folders, then the ones that are identified only by their
// content.
func (c *contents) indexDatabases(report *Report) {
	seen := map[string]bool{}
	for _, rel := range c.list {
		if !isDatabasePath(rel) {
			continue
		}
		real, file, ok := c.resolve(rel)
		if !ok {
			report.Dangling = append(report.Dangling, fmt.Sprintf("%s links to %s, which the report lacks", rel, c.tree.Links[path.Join(c.top, rel)]))
			continue
		}
		if !seen[real] {
			seen[real] = true
			report.Databases = append(report.Databases, recording.Database{File: file, Origin: real, Truncated: isTailed(real)})
		}
	}
	for _, rel := range c.list {
		file, ok := c.tree.Files[path.Join(c.top, rel)]
		if _, isLog := recording.LogOf(rel); ok && !isLog && !seen[rel] && !isWanted(rel) && !isMachineOutput(rel) {
			report.Databases = append(report.Databases, recording.Database{File: file, Origin: rel, Unusual: true})
		}
	}
}
