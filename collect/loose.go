package collect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	dbfile "ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// looseNodes collects files outside any sos report until they are assigned to a node.
type looseNodes struct {
	named   map[string][]*recording.Recording // by the host's name without its domain
	unnamed *recording.Recording
	central []recording.Database // of the whole cluster
	joining []recording.Database // of servers that have not joined their cluster
	saved   map[string]bool      // dumps that a script of ovs-save restores
	// statuses are the outputs of cluster/status whose nodes are not known.
	statuses []printedMember
}

// node returns the node of a host, whose files may be in several sources. Two
// must-gathers are of different times: each has nodes of its own.
func (l *looseReader) node(host string) *recording.Recording {
	nodes := &l.loose
	if host == "" {
		if nodes.unnamed == nil {
			nodes.unnamed = &recording.Recording{Source: l.source, Taken: l.taken[l.source.Name]}
		}
		return nodes.unnamed
	}
	short := shortName(host)
	for _, node := range nodes.named[short] {
		if sameHost(node.Host, host) && (node.Source.Name == l.source.Name || node.Source.Kind != l.source.Kind || !l.mustGather) {
			return node
		}
	}
	node := &recording.Recording{Host: host, Source: l.source, Taken: l.taken[l.source.Name]}
	nodes.named[short] = append(nodes.named[short], node)
	return node
}

// hosts returns the nodes with a name, sorted by it.
func (l *looseNodes) hosts() []*recording.Recording {
	var list []*recording.Recording
	for _, nodes := range l.named {
		list = append(list, nodes...)
	}
	slices.SortFunc(list, func(a, b *recording.Recording) int { return cmp.Compare(a.Host, b.Host) })
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
	pasted     int                   // outputs in tickets
	traces     int                   // likewise, of packets
	agents     int                   // of Antrea, whose bundles the source holds
	holds      map[workdir.Kind]bool // the source has a database of this kind
	lost       []lostDatabase
	// nodeOfPod and nodeOfSystem are the nodes of pods, and of system-ids.
	nodeOfPod, nodeOfSystem map[string]string
	imageOfNode             map[string]string
	hostOfTop               map[string]string // the nodes of folders of agents, and of kube-ovn's plugin
	folders                 nodeFolders
	origins                 map[outputOf]string // of the outputs that were taken
	texts                   map[string]ticket.Text
}

// outputOf identifies an output: a node has one.
type outputOf struct {
	node     *recording.Recording
	subject  recording.Subject
	openflow openflow.Version
}

// addLoose adds the identified files, and returns a description of them.
func (r *filesReader) addLoose(tree *archive.Tree, source string, files map[string]identity) ([]string, error) {
	reader := &looseReader{filesReader: r, tree: tree, source: workdir.Source{Kind: "files", Name: source}, count: map[fileKind]int{}, holds: map[workdir.Kind]bool{},
		nodeOfPod: map[string]string{}, nodeOfSystem: map[string]string{}, imageOfNode: map[string]string{}, hostOfTop: map[string]string{}, origins: map[outputOf]string{}, texts: map[string]ticket.Text{}}
	if err := reader.identifyAntrea(files); err != nil {
		return nil, err
	}
	reader.folders = findNodeFolders(files)
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if files[name].whole {
			files[name] = reader.readWhole(name, files[name])
		}
		reader.survey(name, files[name])
	}
	if reader.mustGather {
		reader.source.Kind, reader.source.Tool = "must-gather", reader.version
	}
	// Resources name the nodes of databases, and databases name nodes. A script names the bridges of dumps.
	for _, step := range []struct {
		kinds []fileKind
		add   func(name string, id identity) error
	}{
		{[]fileKind{mustGatherTime}, reader.addTime},
		{[]fileKind{mustGatherResource}, reader.addResource},
		{[]fileKind{databaseFile}, reader.addDatabase},
		{[]fileKind{expectedFile}, reader.addExpected},
		{[]fileKind{clientLog}, reader.addLog},
		{[]fileKind{saveScript}, reader.addScript},
		{[]fileKind{dumpFile, mustGatherDump, recordedFile}, reader.addOutput},
		{[]fileKind{ticketFile}, reader.addTicket},
		{[]fileKind{clusterStatus}, reader.addStatus},
		{[]fileKind{logFile}, reader.addHostLog},
		{[]fileKind{hostText}, reader.addHostText},
	} {
		for _, name := range names {
			if id := files[name]; slices.Contains(step.kinds, id.kind) {
				if err := step.add(name, id); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, node := range reader.loose.hosts() {
		node.Image = cmp.Or(node.Image, reader.imageOfNode[node.Host])
	}
	reader.assignLost()
	return reader.kinds(), nil
}

// lostDatabase is a file at the path of a database, or that begins like one, that can't be read.
type lostDatabase struct{ name, text string }

// assignLost adds the databases that can't be read to what their nodes lost. The node of one
// may be unknown, or have no other data.
func (l *looseReader) assignLost() {
	for _, lost := range l.lost {
		host := l.hostOf(lost.name)
		nodes := l.loose.named[shortName(host)]
		i := slices.IndexFunc(nodes, func(node *recording.Recording) bool {
			return sameHost(node.Host, host) && node.Source.Name == l.source.Name
		})
		if host == "" || i < 0 {
			l.found.Lost = append(l.found.Lost, lost.text)
			continue
		}
		nodes[i].LoseDatabase(kindOfPath(lost.name), lost.text)
	}
}

// survey counts a file, and notes whether it is part of a must-gather.
func (l *looseReader) survey(name string, id identity) {
	for _, folder := range []string{"network_logs/", "ovnk_database_store/", "ovnk_extras_store/"} {
		l.mustGather = l.mustGather || strings.Contains("/"+name, "/"+folder)
	}
	l.mustGather = l.mustGather || id.kind == mustGatherVersion || id.kind == mustGatherDump
	l.version = cmp.Or(id.version, l.version)
	if match := koLog.FindStringSubmatch(name); match != nil {
		l.hostOfTop[path.Dir(path.Dir(name))] = match[1]
	}
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
	add := func(n int, noun, of string) {
		if n > 0 {
			list = append(list, phrase.Count(n, noun)+of)
		}
	}
	add(l.agents, "support bundle", " of an Antrea agent")
	add(l.count[databaseFile], "database", "")
	add(l.count[saveScript], "script", " of ovs-save")
	add(l.count[dumpFile]+l.count[mustGatherDump], "dump", "")
	add(l.count[clientLog], "log", " of libovsdb")
	add(l.count[recordedFile], "recorded output", "")
	add(l.count[clusterStatus], "output", " of cluster/status")
	add(l.count[logFile], "log", "")
	add(l.pasted, "pasted output", "")
	add(l.traces, "pasted trace", "")
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
	if errors.Is(err, dbfile.ErrTailed) && !info.Gzip && kindOfPath(name) != workdir.OVS {
		node := l.node(cmp.Or(l.hostOf(name), l.hostOfFolder(name)))
		db.Source = nil
		node.Databases = append(node.Databases, db) // putTogether takes the rows that are whole
		return nil
	}
	if errors.Is(err, dbfile.ErrJoinOnly) {
		l.loose.joining = append(l.loose.joining, db)
	}
	if err != nil {
		l.lost = append(l.lost, lostDatabase{name, fmt.Sprintf("%s: %v", partName(l.source.Name, name), err)})
		return nil
	}
	l.holds[workdir.KindOfSchema(info.Name)] = true
	owner := l.owner(&db)
	pod := l.hostOf(name)
	switch {
	case info.Name == ovsdb.OVS:
		host := cmp.Or(owner.hostname, l.nodeOfSystem[owner.system], pod, owner.host)
		l.folders.addSwitch(name, host)
		node := l.node(cmp.Or(host, l.hostOfFolder(name)))
		db.Source = nil
		node.Databases = append(node.Databases, db)
	case workdir.KindOfSchema(info.Name) == "":
		l.found.Remarks = append(l.found.Remarks, otherDatabase(partName(l.source.Name, name), info.Name))
	case owner.host != "" || pod != "":
		l.notePod(name, owner.host)
		node := l.node(cmp.Or(owner.host, pod))
		node.Databases = append(node.Databases, db)
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
	l.found.Remarks = append(l.found.Remarks, fmt.Sprintf("%s was not taken: %v; another file holds such a database", partName(l.source.Name, name), err))
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
	if match := podOfLog.FindStringSubmatch(name); match != nil {
		pod = cmp.Or(l.nodeOfPod[match[1]], match[1])
	}
	node := l.node(pod)
	node.Logs = append(node.Logs, recording.Log{File: l.tree.Files[name], Name: path.Base(name), Origin: l.origin(name)})
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
	if l.loose.saved[partName(l.source.Name, name)] {
		return nil
	}
	id.node = cmp.Or(id.node, l.hostOfFolder(name))
	return l.takeEach(id, l.tree.Files[name], l.origin(name))
}

// takeEach adds an output, or those of several bridges in one file, to its node.
func (l *looseReader) takeEach(id identity, file archive.File, origin string) error {
	if id.command != workdir.RecordedFDB || id.bridge != "" || file.Size > ticket.MaxBytes {
		l.take(id, file, origin)
		return nil
	}
	text, err := os.ReadFile(file.Spooled)
	if err != nil {
		return err
	}
	bridges := appctl.SplitFDB(string(text))
	if len(bridges) == 0 {
		l.take(id, file, origin)
	}
	for _, bridge := range slices.Sorted(maps.Keys(bridges)) {
		one, err := archive.Spool(l.ctx, l.spool, strings.NewReader(bridges[bridge]))
		if err != nil {
			return err
		}
		id.bridge = workdir.EncodeName(bridge)
		l.take(id, one, origin)
	}
	return nil
}

// take adds an output to its node.
func (l *looseReader) take(id identity, file archive.File, origin string) {
	node := l.node(id.node)
	output := recording.Output{File: file, Command: id.command, OpenFlow: id.openflow, Origin: origin, Bare: id.bare, Partial: id.partial}
	command, known := recording.Find(output.Command)
	if known && command.Scope == recording.OfTable {
		output.Table = id.bridge
	}
	if known && command.Scope == recording.OfDevice {
		output.Device = id.bridge
	}
	if known && command.Scope == recording.OfNamespace {
		output.Namespace = id.bridge
		if plain, ok := workdir.DecodeName(id.bridge); ok {
			output.Namespace = plain
		}
	}
	if !known || command.Scope == recording.OfBridge {
		output.Bridge = id.bridge // in the notation of a workdir's file names
		if plain, ok := workdir.DecodeName(id.bridge); ok {
			output.Bridge = plain
		}
		if output.Bridge == "" {
			output.Bridge = unnamedBridge
			node.Remarks = append(node.Remarks, fmt.Sprintf("%s: its name does not contain its bridge, which is called %s here; rename it to BRIDGE.flows.dump", output.Origin, unnamedBridge))
		}
		node.AddBridge(output.Bridge)
	}
	same := outputOf{node, output.Subject(), output.OpenFlow}
	if first, twice := l.origins[same]; twice {
		node.Remarks = append(node.Remarks, fmt.Sprintf("%s and %s are output of the same command: only one is used", first, output.Origin))
	} else {
		l.origins[same] = output.Origin
	}
	node.All = append(node.All, output)
}
