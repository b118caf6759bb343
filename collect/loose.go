package collect

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// looseNodes collects files outside any sos report until they are assigned to a node.
type looseNodes struct {
	named   map[string][]*recording.Node // by the host's name without its domain
	unnamed *recording.Node
	central []recording.Database // of the whole cluster
	saved   map[string]bool      // dumps that a script of ovs-save restores
}

func (l *looseNodes) node(host string, source workdir.Source) *recording.Node {
	if host == "" {
		if l.unnamed == nil {
			l.unnamed = &recording.Node{Source: source}
		}
		return l.unnamed
	}
	short := shortName(host)
	if n := findHost(l.named[short], host); n != nil {
		return n
	}
	if l.named == nil {
		l.named = map[string][]*recording.Node{}
	}
	n := &recording.Node{Host: host, Source: source}
	l.named[short] = append(l.named[short], n)
	return n
}

// hosts returns the nodes with a name, sorted by it.
func (l *looseNodes) hosts() []*recording.Node {
	var list []*recording.Node
	for _, nodes := range l.named {
		list = append(list, nodes...)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Host < list[j].Host })
	return list
}

// looseReader reads the part of one source that is in no sos report.
type looseReader struct {
	*filesReader
	tree       *archive.Tree
	source     workdir.Source
	mustGather bool
	version    string // of the must-gather
	count      map[fileKind]int
}

// looseFile is a file of a looseReader.
type looseFile struct {
	name string
	id   identity
}

// addLoose takes every file outside the reports, and returns what they are.
func (r *filesReader) addLoose(tree *archive.Tree, source string, reports map[string]bool) ([]string, error) {
	l := &looseReader{filesReader: r, tree: tree, source: workdir.Source{Kind: "files", Name: source}, count: map[fileKind]int{}}
	files, err := l.identifyAll(reports)
	if err != nil {
		return nil, err
	}
	if l.mustGather {
		l.source.Kind, l.source.Tool = "must-gather", l.version
	}
	// Databases come first: they name the nodes. A script names the bridges of dumps.
	for _, step := range []struct {
		kinds []fileKind
		add   func(looseFile) error
	}{
		{[]fileKind{databaseFile}, l.addDatabase},
		{[]fileKind{saveScript}, l.addScript},
		{[]fileKind{dumpFile, mustGatherDump, recordedFile}, l.addOutput},
	} {
		for _, f := range files {
			for _, kind := range step.kinds {
				if f.id.kind != kind {
					continue
				}
				if err := step.add(f); err != nil {
					return nil, err
				}
			}
		}
	}
	return l.kinds(), nil
}

// identifyAll identifies every file outside the reports, and counts the kinds.
func (l *looseReader) identifyAll(reports map[string]bool) ([]looseFile, error) {
	var files []looseFile
	for _, name := range l.tree.Names() {
		f, exists := l.tree.Files[name]
		if !exists || below(name, reports) {
			continue
		}
		start, err := readStart(f.Spooled)
		if err != nil {
			return nil, err
		}
		for _, folder := range []string{"network_logs/", "ovnk_database_store/"} {
			l.mustGather = l.mustGather || strings.HasPrefix(name, folder) || strings.Contains(name, "/"+folder)
		}
		id := identify(name, start)
		if id.kind == mustGatherVersion {
			l.version = versionLine(start)
		}
		l.mustGather = l.mustGather || id.kind == mustGatherVersion || id.kind == mustGatherDump
		l.count[id.kind]++
		files = append(files, looseFile{name, id})
	}
	return files, nil
}

// versionLine returns the version in the version file of a must-gather.
func versionLine(start []byte) string {
	lines := strings.Split(strings.TrimSpace(string(start)), "\n")
	if len(lines) > 1 {
		return strings.TrimSpace(lines[1])
	}
	return ""
}

// kinds describes the files: "must-gather 4.14.1", "3 dumps".
func (l *looseReader) kinds() []string {
	var list []string
	if l.mustGather {
		list = append(list, strings.TrimSpace("must-gather "+l.version))
	}
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{l.count[databaseFile], "database", "databases"},
		{l.count[saveScript], "script of ovs-save", "scripts of ovs-save"},
		{l.count[dumpFile] + l.count[mustGatherDump], "dump", "dumps"},
		{l.count[recordedFile], "recorded output", "recorded outputs"},
	} {
		if c.n == 1 {
			list = append(list, "1 "+c.one)
		} else if c.n > 1 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.many))
		}
	}
	return list
}

// addDatabase assigns a database to the node that it names, or, if it describes a
// whole cluster, to all nodes.
func (l *looseReader) addDatabase(file looseFile) error {
	source := l.source
	db := recording.Database{File: l.tree.Files[file.name], Origin: l.origin(file.name), Source: &source}
	info, err := db.Inspect(l.ctx)
	if err != nil {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: %v", inside(l.source.Name, file.name), err))
		return nil
	}
	owner := l.owner(&db)
	switch {
	case info.Name == ovsdb.OVS:
		n := l.loose.node(owner.host, l.source)
		db.Source = nil
		n.OVSVersion = nameOr(owner.version, n.OVSVersion)
		n.Databases = append(n.Databases, db)
	case workdir.KindOfSchema(info.Name) == "":
	case owner.host != "":
		n := l.loose.node(owner.host, l.source)
		n.Databases = append(n.Databases, db)
	default:
		l.loose.central = append(l.loose.central, db)
	}
	return nil
}

func (l *looseReader) origin(name string) string {
	if !l.tree.Archive && !l.tree.Folder {
		return l.source.Name
	}
	return name
}

// unnamedBridge is the name of a bridge whose name is unknown.
const unnamedBridge = "br-unnamed"

// addOutput adds a dump or another recorded output. The bridge is in its name.
func (l *looseReader) addOutput(file looseFile) error {
	if l.loose.saved[inside(l.source.Name, file.name)] {
		return nil
	}
	n := l.loose.node(file.id.node, l.source)
	o := recording.Output{File: l.tree.Files[file.name], Command: file.id.command, OpenFlow: file.id.openflow, Origin: l.origin(file.name)}
	if c, known := recording.Find(o.Command); !known || c.Scope == recording.OfBridge {
		o.Bridge = decoded(file.id.bridge)
		if o.Bridge == "" {
			o.Bridge = unnamedBridge
			n.Remarks = append(n.Remarks, fmt.Sprintf("%s: its name does not contain its bridge, which is called %s here; rename it to BRIDGE.flows.dump", o.Origin, unnamedBridge))
		}
		n.AddBridge(o.Bridge)
	}
	n.All = append(n.All, o)
	return nil
}

// decoded returns the bridge that a name stands for in the file names of a workdir.
func decoded(name string) string {
	if plain, ok := workdir.DecodeName(name); ok && name != "" {
		return plain
	}
	return name
}

// readStart reads the first bytes of a spooled file. A database may be spooled as
// gzip, as it was found.
func readStart(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := bufio.NewReader(f)
	in := io.Reader(raw)
	if magic, err := raw.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(raw)
		if err != nil {
			return nil, nil // inspecting the database reports the damage
		}
		in = zip
	}
	start := make([]byte, 4096)
	n, _ := io.ReadFull(in, start) // a short start is enough
	return start[:n], nil
}
