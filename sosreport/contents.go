package sosreport

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"ovs-offline/internal/limit"
)

// contents is what was kept of a source while reading it.
type contents struct {
	*tree    // the report's, once it was chosen
	trees    map[string]*tree
	spool    string
	name     string // the folder's own name where the source is one
	bytes    int64
	manifest *manifest
	limits   limit.Limits
	meter    *limit.Meter
}

// tree is what was kept below one top folder.
type tree struct {
	top   string // "" for the top of the source itself
	files map[string]spooled
	links map[string]string // a link's path to its target, as written
}

func (c *contents) treeOf(top string) *tree {
	t := c.trees[top]
	if t == nil {
		t = &tree{top: top, files: map[string]spooled{}, links: map[string]string{}}
		c.trees[top] = t
	}
	return t
}

// choose takes the tree that is a report: the source itself, or the one below
// it. It returns the top folders where there are several, since mixing what two
// nodes said would be worse than nothing. A lone version.txt makes no report,
// and is one only where nothing else is.
func (c *contents) choose() (several []string) {
	for top, t := range c.trees {
		if t.telling() {
			several = append(several, top)
		}
	}
	if root := c.trees[""]; root != nil && (root.telling() || len(several) == 0) {
		c.tree = root
		return nil
	}
	sort.Strings(several)
	for top, t := range c.trees {
		if len(several) == 0 || top == several[0] {
			c.tree = t
		}
	}
	return several
}

// telling tells whether a tree holds what only a report does.
func (t *tree) telling() bool {
	for _, rel := range t.names("") {
		if strings.HasPrefix(rel, "sos_") || isDatabasePlace(rel) {
			return true
		}
	}
	return false
}

type spooled struct {
	file string
	size int64
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

// keep spools one file under a name of our own; a second one of the same name
// replaces the first, as extracting would.
func (c *contents) keep(t *tree, rel string, size int64, in io.Reader) error {
	in, err := c.meter.Keep(rel, size, in)
	if err != nil {
		return err
	}
	out, err := os.CreateTemp(c.spool, "spooled-*")
	if err != nil {
		return err
	}
	n, err := io.Copy(out, in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	t.drop(rel)
	t.files[rel] = spooled{file: out.Name(), size: n}
	c.bytes += n
	return nil
}

// keepLink notes a link; it replaces what had its name before.
func (t *tree) keepLink(rel, target string) {
	t.drop(rel)
	t.links[rel] = target
}

func (t *tree) drop(rel string) {
	if old, there := t.files[rel]; there {
		os.Remove(old.file)
		delete(t.files, rel)
	}
	delete(t.links, rel)
}

// resolve follows links inside the report to a file that was kept. A target
// may have come before its link or after it.
func (c *contents) resolve(rel string) (real string, f spooled, ok bool) {
	for range 40 { // as many as Linux follows
		if f, ok := c.files[rel]; ok {
			return rel, f, true
		}
		target, ok := c.links[rel]
		if !ok {
			return rel, spooled{}, false
		}
		if path.IsAbs(target) {
			rel = path.Clean(target)[1:]
		} else {
			rel = path.Join(path.Dir(rel), target)
		}
		if !filepath.IsLocal(rel) {
			return rel, spooled{}, false
		}
	}
	return rel, spooled{}, false
}

// text returns the start of a file of the report, "" where there is none.
func (c *contents) text(rel string) string {
	if _, f, ok := c.resolve(rel); ok {
		return readStart(f.file)
	}
	return ""
}

func isTailed(rel string) bool { return strings.HasPrefix(rel, "sos_strings/") }

// index gives everything that was kept its meaning.
func (c *contents) index(r *Report) error {
	if err := c.readManifest(); err != nil {
		return err
	}
	byName := c.namesFromManifest()
	r.Bridges = c.bridges(byName)
	c.indexOutputs(r, byName)
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
	if f.size > maxManifest {
		return nil // as a damaged one
	}
	raw, err := os.ReadFile(f.file)
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
				byName[path.Clean(cmd.Filepath)] = executed{command: stripPath(cmd.Exec), truncated: cmd.Truncated}
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
func (c *contents) indexOutputs(r *Report, byName map[string]executed) {
	byCommand := map[string]string{}
	for _, rel := range c.names("sos_commands/") {
		if e, ok := byName[rel]; ok {
			if key := inFolder(path.Dir(rel), e.command); byCommand[key] == "" {
				byCommand[key] = rel
			}
		}
	}
	for _, p := range commands() {
		for _, arg := range c.arguments(p, r.Bridges, byCommand) {
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
		return
	}
	r.outputs = append(r.outputs, Output{
		Meaning: p.meaning, Bridge: bridge, OpenFlow: p.openflow,
		Origin: real, File: f.file, Size: f.size,
		Truncated: isTailed(real) || byName[rel].truncated,
	})
}

// inFolder is the key of a command in byCommand: two plugins run some of the same.
func inFolder(folder, command string) string { return folder + ":" + command }

// names lists what was kept below a folder, links included, sorted.
func (t *tree) names(prefix string) []string {
	var names []string
	for rel := range t.files {
		if strings.HasPrefix(rel, prefix) {
			names = append(names, rel)
		}
	}
	for rel := range t.links {
		if strings.HasPrefix(rel, prefix) {
			names = append(names, rel)
		}
	}
	sort.Strings(names)
	return names
}

// indexDatabases lists each database once, under the name that is no link.
func (c *contents) indexDatabases(r *Report) {
	seen := map[string]bool{}
	for _, rel := range append(c.names(""), "") {
		if !isDatabasePlace(rel) {
			continue
		}
		real, f, ok := c.resolve(rel)
		if !ok {
			r.Dangling = append(r.Dangling, fmt.Sprintf("%s links to %s, which the report lacks", rel, c.links[rel]))
			continue
		}
		if !seen[real] {
			seen[real] = true
			r.Databases = append(r.Databases, Database{Origin: real, File: f.file, Size: f.size, Truncated: isTailed(real)})
		}
	}
}
