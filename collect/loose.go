package collect

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
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

// node returns the node of a host, of which files may be in several sources. Two
// must-gathers are of different times: each has nodes of its own.
func (l *looseReader) node(host string) *recording.Node {
	nodes := &l.loose
	if host == "" {
		if nodes.unnamed == nil {
			nodes.unnamed = &recording.Node{Source: l.source, Taken: l.taken[l.source.Name]}
		}
		return nodes.unnamed
	}
	short := shortName(host)
	for _, n := range nodes.named[short] {
		if sameHost(n.Host, host) && (n.Source.Name == l.source.Name || n.Source.Kind != l.source.Kind || !l.mustGather) {
			return n
		}
	}
	n := &recording.Node{Host: host, Source: l.source, Taken: l.taken[l.source.Name]}
	nodes.named[short] = append(nodes.named[short], n)
	return n
}

// hosts returns the nodes with a name, sorted by it.
func (l *looseNodes) hosts() []*recording.Node {
	var list []*recording.Node
	for _, nodes := range l.named {
		list = append(list, nodes...)
	}
	slices.SortFunc(list, func(a, b *recording.Node) int { return cmp.Compare(a.Host, b.Host) })
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
	holds      map[workdir.Kind]bool // the source has a database of this kind
	// nodeOfPod and nodeOfSystem are the nodes of pods, and of system-ids.
	nodeOfPod, nodeOfSystem map[string]string
	imageOfNode             map[string]string
}

// addLoose adds the identified files, and returns a description of them.
func (r *filesReader) addLoose(tree *archive.Tree, source string, files map[string]identity) ([]string, error) {
	l := &looseReader{filesReader: r, tree: tree, source: workdir.Source{Kind: "files", Name: source}, count: map[fileKind]int{}, holds: map[workdir.Kind]bool{},
		nodeOfPod: map[string]string{}, nodeOfSystem: map[string]string{}, imageOfNode: map[string]string{}}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		l.survey(name, files[name])
	}
	if l.mustGather {
		l.source.Kind, l.source.Tool = "must-gather", l.version
	}
	// Resources name the nodes of databases, and databases name nodes. A script names the bridges of dumps.
	for _, step := range []struct {
		kinds []fileKind
		add   func(name string, id identity) error
	}{
		{[]fileKind{mustGatherTime}, l.addTime},
		{[]fileKind{mustGatherResource}, l.addResource},
		{[]fileKind{databaseFile}, l.addDatabase},
		{[]fileKind{expectedFile}, l.addExpected},
		{[]fileKind{clientLog}, l.addLog},
		{[]fileKind{saveScript}, l.addScript},
		{[]fileKind{dumpFile, mustGatherDump, recordedFile}, l.addOutput},
	} {
		for _, name := range names {
			if id := files[name]; slices.Contains(step.kinds, id.kind) {
				if err := step.add(name, id); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, n := range l.loose.hosts() {
		n.Image = cmp.Or(n.Image, l.imageOfNode[n.Host])
	}
	return l.kinds(), nil
}

// survey counts a file, and notes whether it is part of a must-gather.
func (l *looseReader) survey(name string, id identity) {
	for _, folder := range []string{"network_logs/", "ovnk_database_store/", "ovnk_extras_store/"} {
		l.mustGather = l.mustGather || strings.Contains("/"+name, "/"+folder)
	}
	l.mustGather = l.mustGather || id.kind == mustGatherVersion || id.kind == mustGatherDump
	l.version = cmp.Or(id.version, l.version)
	l.count[id.kind]++
}

// addTime notes when the must-gather was made.
func (l *looseReader) addTime(name string, _ identity) error {
	if l.mustGather {
		l.taken[l.source.Name] = readTimestamp(l.tree.Files[name])
	}
	return nil
}

// kinds describes the files: "must-gather 4.14.1", "3 dumps".
func (l *looseReader) kinds() []string {
	var list []string
	if l.mustGather {
		list = append(list, strings.TrimSpace("must-gather "+l.version))
	}
	add := func(n int, one, many string) {
		if n == 1 {
			list = append(list, "1 "+one)
		} else if n > 1 {
			list = append(list, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(l.count[databaseFile], "database", "databases")
	add(l.count[saveScript], "script of ovs-save", "scripts of ovs-save")
	add(l.count[dumpFile]+l.count[mustGatherDump], "dump", "dumps")
	add(l.count[clientLog], "log of libovsdb", "logs of libovsdb")
	add(l.count[recordedFile], "recorded output", "recorded outputs")
	return list
}

// addDatabase assigns a database to the node that it names, or, if it describes a
// whole cluster, to all nodes.
func (l *looseReader) addDatabase(name string, _ identity) error {
	source := l.source
	db := recording.Database{File: l.tree.Files[name], Origin: l.origin(name), Source: &source}
	info, err := db.Inspect(l.ctx)
	if archive.CannotWrite(err) {
		return err
	}
	if err != nil {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: %v", inside(l.source.Name, name), err))
		return nil
	}
	l.holds[workdir.KindOfSchema(info.Name)] = true
	owner := l.owner(&db)
	pod := l.hostOf(name)
	switch {
	case info.Name == ovsdb.OVS:
		n := l.node(cmp.Or(owner.hostname, l.nodeOfSystem[owner.system], pod, owner.host))
		db.Source = nil
		n.Databases = append(n.Databases, db)
	case workdir.KindOfSchema(info.Name) == "":
	case owner.host != "" || pod != "":
		l.notePod(name, owner.host)
		n := l.node(cmp.Or(owner.host, pod))
		n.Databases = append(n.Databases, db)
	default:
		l.loose.central = append(l.loose.central, db)
	}
	return nil
}

// addExpected adds a file at the path of a database that does not begin like one. It is a loss
// if it can't be read, unless it is one of the files of a cluster's members and another member's
// was read.
func (l *looseReader) addExpected(name string, id identity) error {
	db := recording.Database{File: l.tree.Files[name]}
	_, err := db.Inspect(l.ctx)
	ofCluster := podOfDatabase.FindStringSubmatch(path.Base(name)) == nil
	if err == nil || archive.CannotWrite(err) || !ofCluster || !l.holds[kindOfPath(name)] {
		return l.addDatabase(name, id)
	}
	l.found.Remarks = append(l.found.Remarks, fmt.Sprintf("%s was not taken: %v; another file holds such a database", inside(l.source.Name, name), err))
	return nil
}

// kindOfPath returns the kind of the database that a path is usual for.
func kindOfPath(name string) workdir.Kind {
	switch base := path.Base(name); {
	case strings.Contains(base, "conf.db"):
		return workdir.OVS
	case strings.Contains(base, "nb"):
		return workdir.NB
	}
	return workdir.SB
}

// addLog adds a log of clients of libovsdb. A must-gather has it in a folder of the pod:
// ovnk_extras_store/POD/CONTAINER/libovsdb.log.
func (l *looseReader) addLog(name string, _ identity) error {
	pod := ""
	if m := podOfLog.FindStringSubmatch(name); m != nil {
		pod = cmp.Or(l.nodeOfPod[m[1]], m[1])
	}
	n := l.node(pod)
	n.Logs = append(n.Logs, recording.Log{File: l.tree.Files[name], Name: path.Base(name), Origin: l.origin(name)})
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
func (l *looseReader) addOutput(name string, id identity) error {
	if l.loose.saved[inside(l.source.Name, name)] {
		return nil
	}
	n := l.node(id.node)
	o := recording.Output{File: l.tree.Files[name], Command: id.command, OpenFlow: id.openflow, Origin: l.origin(name)}
	if c, known := recording.Find(o.Command); !known || c.Scope == recording.OfBridge {
		o.Bridge = id.bridge // in the notation of a workdir's file names
		if plain, ok := workdir.DecodeName(id.bridge); ok {
			o.Bridge = plain
		}
		if o.Bridge == "" {
			o.Bridge = unnamedBridge
			n.Remarks = append(n.Remarks, fmt.Sprintf("%s: its name does not contain its bridge, which is called %s here; rename it to BRIDGE.flows.dump", o.Origin, unnamedBridge))
		}
		n.AddBridge(o.Bridge)
	}
	n.All = append(n.All, o)
	return nil
}
