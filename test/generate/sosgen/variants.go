package sosgen

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// WithoutManifest returns a report without manifest, whose files are known by their
// names only.
func WithoutManifest(report Tree) Tree { return report.Without("sos_reports/") }

// InContainer returns a report whose Open vSwitch commands ran in a container: files
// have other names, and the container's folder links to them.
func InContainer(report Tree, container string) Tree {
	return prefixed(report, "podman exec "+container+" ", func(out Tree, plugin, old, name string) {
		link := path.Join("sos_containers", container, "sos_commands", plugin, old)
		out[link] = File{Link: "../../../../sos_commands/" + plugin + "/" + name}
	})
}

// InSnap returns the report of a node whose tools are in a snap.
func InSnap(report Tree, snap string) Tree {
	return prefixed(report, snap+".", func(Tree, string, string, string) {})
}

// prefixed adds a prefix to each command of Open vSwitch.
func prefixed(report Tree, prefix string, also func(out Tree, plugin, old, name string)) Tree {
	out := Tree{}
	for name, f := range report {
		folder, base := path.Split(name)
		if plugin := path.Base(folder); ofSwitch(name) {
			renamed := mangle(prefix + base)
			out[folder+renamed] = f
			also(out, plugin, base, renamed)
			continue
		}
		out[name] = f
	}
	editManifest(out, func(c *ranCommand) {
		if ofSwitch(c.Filepath) {
			c.Filepath = path.Join(path.Dir(c.Filepath), mangle(prefix+path.Base(c.Filepath)))
			c.Exec = prefix + c.Exec
		}
	})
	return out
}

// ofSwitch reports whether a path is the output of a tool of Open vSwitch or OVN, of their plugins.
func ofSwitch(name string) bool {
	return !strings.Contains(name, "/journalctl_") && (strings.HasPrefix(name, "sos_commands/openvswitch/") || strings.HasPrefix(name, "sos_commands/ovn_"))
}

func editManifest(report Tree, edit func(*ranCommand)) {
	f, there := report["sos_reports/manifest.json"]
	if !there {
		return
	}
	var m manifest
	must(json.Unmarshal(f.Body, &m))
	for _, p := range m.Components.Report.Plugins {
		for i := range p.Commands {
			edit(&p.Commands[i])
		}
	}
	text, err := json.Marshal(&m)
	must(err)
	report.put("sos_reports/manifest.json", text)
}

// Tailed returns a report in which sos kept only the end of a file: it is in
// sos_strings, and the file is a link to it. The manifest marks outputs of commands.
func Tailed(report Tree, name string, limit int) (Tree, error) {
	f, there := report[name]
	if !there || f.Link != "" {
		return nil, fmt.Errorf("the report has no file %s", name)
	}
	plugin, short := "openvswitch", strings.ReplaceAll(name, "/", ".")
	if rest, output := strings.CutPrefix(name, "sos_commands/"); output {
		plugin, short, _ = strings.Cut(rest, "/")
	}
	tail := "sos_strings/" + plugin + "/" + short + ".tailed"
	out := report.With(Tree{
		tail: {Body: Tail(f.Body, limit)},
		name: {Link: strings.Repeat("../", strings.Count(name, "/")) + tail},
	})
	editManifest(out, func(c *ranCommand) { c.Truncated = c.Truncated || c.Filepath == name })
	return out, nil
}

// CutInPlace works like Tailed, for sos before 4.2, which left no mark.
func CutInPlace(report Tree, name string, limit int) (Tree, error) {
	f, there := report[name]
	if !there {
		return nil, fmt.Errorf("the report has no file %s", name)
	}
	return report.With(Tree{name: {Body: Tail(f.Body, limit)}}), nil
}

// Collected returns the files of `sos collect`: an archive of each report.
func Collected(p Packing, reports map[string]Tree) (Tree, error) {
	tree := Tree{}
	tree.putText("sos_logs/sos.log", "collected\n")
	tree.putText("sos_reports/manifest.json", `{"version": "4.8.2", "components": {"collect": {}}}`)
	for name, report := range reports {
		packed, err := p.Pack(report.Under(name).Tar())
		if err != nil {
			return nil, err
		}
		tree.put(name+p.Ext, packed)
	}
	return tree, nil
}
