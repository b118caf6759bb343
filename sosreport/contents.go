package sosreport

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"sort"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/recording"
)

// contents is what was kept of one report, by paths relative to its top.
type contents struct {
	tree     *archive.Tree
	top      string
	list     []string // all names, relative to top, sorted
	aliases  map[string]string
	manifest *manifest
	// protocols of the bridges, read when names collide; nil before.
	protocols map[string][]string
	doubted   map[string]bool // what was said of files that can't be told apart
}

func newContents(tree *archive.Tree, top string, names []string) *contents {
	c := &contents{tree: tree, top: top, list: names, doubted: map[string]bool{}}
	c.aliases = c.containerNames()
	return c
}

// manifest is sos_reports/manifest.json (sos 4.0 and later), as far as it is used.
type manifest struct {
	Version    string `json:"version"`
	Components struct {
		Report struct {
			Plugins map[string]struct {
				Commands []struct {
					Exec      string `json:"exec"`
					Filepath  string `json:"filepath"`
					Truncated bool   `json:"truncated"`
				} `json:"commands"`
			} `json:"plugins"`
		} `json:"report"`
	} `json:"components"`
}

// resolve follows links inside the report to a file that was kept.
func (c *contents) resolve(rel string) (real string, f archive.File, ok bool) {
	if alias, there := c.aliases[rel]; there {
		rel = alias
	}
	return c.tree.Resolve(c.top, rel)
}

// text returns the start of a file of the report, "" where there is none.
func (c *contents) text(rel string) string {
	if _, f, ok := c.resolve(rel); ok {
		return readStart(f.Spooled)
	}
	return ""
}

// start is text for a name of the whole tree.
func start(tree *archive.Tree, name string) string {
	if _, f, ok := tree.Resolve("", name); ok {
		return readStart(f.Spooled)
	}
	return ""
}

func isTailed(rel string) bool { return strings.HasPrefix(rel, "sos_strings/") }

// inContainer is what sos writes before a command that it ran in a container,
// in a file's name and in the manifest; a snap's commands have its name before them.
var (
	inContainer = regexp.MustCompile(`^(?:(?:podman|docker|crictl)_exec_.+?_|openstack-hypervisor\.)((?:ovs-[a-z]+|ovsdb-client)_.*)$`)
	execPrefix  = regexp.MustCompile(`^(?:(?:podman|docker|crictl) exec (?:-\S+ )*\S+ |openstack-hypervisor\.)`)
)

// containerNames maps the names that outputs would have without a container to
// those that they have.
func (c *contents) containerNames() map[string]string {
	aliases := map[string]string{}
	there := map[string]bool{}
	for _, rel := range c.list {
		there[rel] = true
	}
	add := func(plain, rel string) {
		if _, known := aliases[plain]; !known && !there[plain] {
			aliases[plain] = rel
		}
	}
	for _, rel := range c.list {
		folder, name := path.Split(rel)
		if m := inContainer.FindStringSubmatch(name); m != nil && strings.HasPrefix(rel, "sos_commands/") {
			add(folder+m[1], rel)
		}
		if parts := strings.SplitN(rel, "/", 3); len(parts) == 3 && parts[0] == "sos_containers" && strings.HasPrefix(parts[2], "sos_commands/") {
			add(parts[2], rel)
		}
	}
	for plain := range aliases {
		c.list = append(c.list, plain)
	}
	sort.Strings(c.list)
	return aliases
}

// index gives everything that was kept its meaning.
func (c *contents) index(ctx context.Context, r *Report) error {
	if err := c.readManifest(); err != nil {
		return err
	}
	byName := c.namesFromManifest()
	r.Bridges = c.bridges(byName)
	r.BoundBridges()
	c.indexOutputs(ctx, r, byName)
	c.indexDatabases(r)
	r.describe(c)
	return nil
}

// maxManifest bounds what is read into memory; a report of every plugin has 2 MB.
const maxManifest = 32 << 20

func (c *contents) readManifest() error {
	_, f, ok := c.resolve("sos_reports/manifest.json")
	if !ok {
		return nil
	}
	if f.Size > maxManifest {
		return nil // as a damaged one
	}
	raw, err := os.ReadFile(f.Spooled)
	if err != nil {
		return err
	}
	var m manifest
	if json.Unmarshal(raw, &m) == nil { // a damaged one is as good as none: names tell the same
		c.manifest = &m
	}
	return nil
}

// namesFromManifest maps the path of an output to the command that made it.
func (c *contents) namesFromManifest() map[string]executed {
	byName := map[string]executed{}
	if c.manifest == nil {
		return byName
	}
	for _, plugin := range c.manifest.Components.Report.Plugins {
		for _, cmd := range plugin.Commands {
			if cmd.Filepath != "" {
				command := execPrefix.ReplaceAllString(stripPath(cmd.Exec), "")
				byName[path.Clean(cmd.Filepath)] = executed{command: stripPath(command), truncated: cmd.Truncated}
			}
		}
	}
	return byName
}

type executed struct {
	command   string
	truncated bool
}

// indexOutputs walks the table of commands: for each, the manifest tells the
// file, or else the mangled name does.
func (c *contents) indexOutputs(ctx context.Context, r *Report, byName map[string]executed) {
	byCommand := map[string]string{}
	for _, rel := range c.names("sos_commands/") {
		if e, ok := byName[rel]; ok {
			if key := inFolder(path.Dir(rel), e.command); byCommand[key] == "" {
				byCommand[key] = rel
			}
		}
	}
	for _, p := range commands() {
		for _, arg := range c.arguments(ctx, p, r, byCommand) {
			rel := byCommand[inFolder(p.folder(), p.command+arg.value)]
			if rel == "" {
				rel = path.Join(p.folder(), arg.file)
				if e, known := byName[rel]; known && e.command != p.command+arg.value {
					continue // its name would fit, but the manifest says that another command made it
				}
			}
			c.addOutput(r, p, arg.bridge, rel, byName)
		}
	}
}

func (c *contents) addOutput(r *Report, p pattern, bridge, rel string, byName map[string]executed) {
	real, f, ok := c.resolve(rel)
	if !ok {
		if strings.HasPrefix(c.tree.Links[path.Join(c.top, rel)], "../../sos_strings/") {
			r.Remarks = append(r.Remarks, fmt.Sprintf("%s links to %s, which the report lacks", rel, c.tree.Links[path.Join(c.top, rel)]))
		}
		return
	}
	r.All = append(r.All, recording.Output{
		Meaning: p.meaning, Bridge: bridge, OpenFlow: p.openflow,
		Origin: real, File: f.Spooled, Size: f.Size,
		Truncated: isTailed(real) || byName[rel].truncated,
	})
}

// inFolder is the key of a command in byCommand: two plugins run some of the same.
func inFolder(folder, command string) string { return folder + ":" + command }

// names lists what was kept below a folder, links included, sorted.
func (c *contents) names(prefix string) []string {
	from := sort.SearchStrings(c.list, prefix)
	to := from
	for to < len(c.list) && strings.HasPrefix(c.list[to], prefix) {
		to++
	}
	return c.list[from:to]
}

// indexDatabases lists each database once, under the name that is no link:
// those that stand where databases do, and then those that only their content tells.
func (c *contents) indexDatabases(r *Report) {
	seen := map[string]bool{}
	for _, rel := range c.list {
		if !isDatabasePlace(rel) {
			continue
		}
		real, f, ok := c.resolve(rel)
		if !ok {
			r.Dangling = append(r.Dangling, fmt.Sprintf("%s links to %s, which the report lacks", rel, c.tree.Links[path.Join(c.top, rel)]))
			continue
		}
		if !seen[real] {
			seen[real] = true
			r.Databases = append(r.Databases, recording.Database{Origin: real, File: f.Spooled, Size: f.Size, Truncated: isTailed(real)})
		}
	}
	for _, rel := range c.list {
		f, ok := c.tree.Files[path.Join(c.top, rel)]
		if ok && !seen[rel] && !wanted(rel) {
			r.Databases = append(r.Databases, recording.Database{Origin: rel, File: f.Spooled, Size: f.Size, Elsewhere: true})
		}
	}
}
