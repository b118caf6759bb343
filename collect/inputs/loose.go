package inputs

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// loose is what stands in no sos report, until it is known which node's it is.
type loose struct {
	named   map[string][]*recording.Node // by the host's name without its domain
	unnamed *recording.Node
	central []recording.Database // of the whole cluster
	saved   map[string]bool      // bridges of which a script of ovs-save told
}

func (l *loose) node(host string, source workdir.Source) *recording.Node {
	if host == "" {
		if l.unnamed == nil {
			l.unnamed = &recording.Node{Source: source}
		}
		return l.unnamed
	}
	short := shortName(host)
	if n := ofHost(l.named[short], host); n != nil {
		return n
	}
	if l.named == nil {
		l.named = map[string][]*recording.Node{}
	}
	n := &recording.Node{Host: host, Source: source}
	l.named[short] = append(l.named[short], n)
	return n
}

// hosts are the nodes with a name, in its order.
func (l *loose) hosts() []*recording.Node {
	var list []*recording.Node
	for _, some := range l.named {
		list = append(list, some...)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Host < list[j].Host })
	return list
}

// tally counts what was found, for the input's description.
type tally struct {
	databases, dumps, scripts int
	gathered                  bool
	version                   string
}

// looseFiles takes everything that stands in no report.
func (g *gathering) looseFiles(tree *archive.Tree, source string, reports map[string]bool) ([]string, error) {
	l := &lone{gathering: g, tree: tree, source: workdir.Source{Kind: "files", Name: source}}
	var dumps []string
	for _, name := range tree.Names() {
		f, there := tree.Files[name]
		if !there || below(name, reports) {
			continue
		}
		start, err := readStart(f.Spooled)
		if err != nil {
			return nil, err
		}
		l.gathers(name)
		switch what := identify(name, start); what.what {
		case aVersion:
			l.gathered = true
			l.version = mustGatherVersion(start)
		case aDatabase:
			l.databases++
			l.files = append(l.files, name)
		case aScript:
			l.scripts++
			l.texts = append(l.texts, name)
		case aNodesDump:
			l.gathered = true
			dumps = append(dumps, name)
		case aDump:
			dumps = append(dumps, name)
		}
	}
	l.dumps = len(dumps)
	l.describe()
	for _, name := range l.files {
		if err := l.database(name); err != nil {
			return nil, err
		}
	}
	for _, name := range l.texts {
		if err := l.script(name); err != nil {
			return nil, err
		}
	}
	for _, name := range dumps {
		if err := l.dump(name); err != nil {
			return nil, err
		}
	}
	return l.kinds(), nil
}

// lone is the part of one source that stands in no report.
type lone struct {
	*gathering
	tally
	tree   *archive.Tree
	source workdir.Source
	files  []string // databases
	texts  []string // scripts
}

func (l *lone) gathers(name string) {
	for _, folder := range []string{"network_logs/", "ovnk_database_store/"} {
		l.gathered = l.gathered || strings.HasPrefix(name, folder) || strings.Contains(name, "/"+folder)
	}
}

func mustGatherVersion(start []byte) string {
	lines := strings.Split(strings.TrimSpace(string(start)), "\n")
	if len(lines) > 1 {
		return strings.TrimSpace(lines[1])
	}
	return ""
}

func (l *lone) describe() {
	if l.gathered {
		l.source.Kind = "must-gather"
		l.source.Tool = l.version
	}
}

func (l *lone) kinds() []string {
	var list []string
	if l.gathered {
		list = append(list, strings.TrimSpace("must-gather "+l.version))
	}
	for _, c := range []struct {
		n         int
		one, many string
	}{{l.databases, "database", "databases"}, {l.scripts, "script of ovs-save", "scripts of ovs-save"}, {l.dumps, "dump", "dumps"}} {
		if c.n == 1 {
			list = append(list, "1 "+c.one)
		} else if c.n > 1 {
			list = append(list, fmt.Sprintf("%d %s", c.n, c.many))
		}
	}
	return list
}

// database takes a database to its node: the one that it names, or, for one
// that speaks of a whole cluster, all of them.
func (l *lone) database(name string) error {
	f := l.tree.Files[name]
	source := l.source
	db := recording.Database{Origin: l.origin(name), File: f.Spooled, Size: f.Size, Source: &source}
	info, err := l.inspect(f.Spooled)
	if err != nil {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: %v", inside(l.source.Name, name), err))
		return nil
	}
	who := l.owner(f.Spooled)
	switch {
	case info.Name == ovsdb.OVS:
		n := l.loose.node(who.host, l.source)
		db.Source = nil
		if who.version != "" {
			n.OVSVersion = who.version
		}
		n.Databases = append(n.Databases, db)
	case collect.KindOf(info.Name) == "":
	case who.host != "":
		n := l.loose.node(who.host, l.source)
		n.Databases = append(n.Databases, db)
	default:
		l.loose.central = append(l.loose.central, db)
	}
	return nil
}

func (l *lone) origin(name string) string {
	if !l.tree.Archive && !l.tree.Folder {
		return l.source.Name
	}
	return name
}

// script takes ovs-save's script: the bridges with their OpenFlow versions, and
// the dumps where it holds them itself.
func (l *lone) script(name string) error {
	f, err := os.Open(l.tree.Files[name].Spooled)
	if err != nil {
		return err
	}
	defer f.Close()
	parts, cut, err := openflow.ReadSaveScript(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	n := l.loose.node("", l.source)
	file := l.tree.Files[name]
	n.All = append(n.All, recording.Output{Meaning: recording.SaveScript, Origin: l.origin(name), File: file.Spooled, Size: file.Size})
	if cut != "" {
		n.Lost = append(n.Lost, l.origin(name)+" "+cut+": what followed is not known")
	}
	for _, p := range parts {
		n.AddBridge(p.Bridge)
		if err := l.part(n, name, p); err != nil {
			return err
		}
	}
	return nil
}

func (l *lone) part(n *recording.Node, script string, p openflow.SaveCommand) error {
	meaning := recording.Flows
	if p.Command == "add-groups" {
		meaning = recording.Groups
	}
	if p.Command == "add-tlv-map" {
		return nil // the replica reads it from the script
	}
	o := recording.Output{Meaning: meaning, Bridge: p.Bridge, OpenFlow: p.OpenFlow.String(), Origin: l.origin(script)}
	if p.File == "" {
		file, err := os.CreateTemp(l.spool, "here-*")
		if err != nil {
			return err
		}
		defer file.Close()
		written, err := io.WriteString(file, p.Text)
		if err != nil {
			return err
		}
		o.File, o.Size = file.Name(), int64(written)
		if o.OpenFlow == "" {
			o.OpenFlow = "OpenFlow10"
		}
		n.All = append(n.All, o)
		return nil
	}
	beside := path.Join(path.Dir(script), p.File)
	if dump, there := l.tree.Files[beside]; there {
		o.Origin, o.File, o.Size = l.origin(beside), dump.Spooled, dump.Size
		n.All = append(n.All, o)
		l.told(beside)
		return nil
	}
	n.Remarks = append(n.Remarks, fmt.Sprintf("%s restores %s of bridge %s from %s, which is not beside it", l.origin(script), meaning, p.Bridge, p.File))
	return nil
}

// told notes a dump of which a script told the bridge and version.
func (l *lone) told(name string) {
	if l.loose.saved == nil {
		l.loose.saved = map[string]bool{}
	}
	l.loose.saved[inside(l.source.Name, name)] = true
}

// unnamedBridge is what a dump's bridge is called when nothing tells its name.
const unnamedBridge = "br-unnamed"

// dump takes a loose dump, or a must-gather's.
func (l *lone) dump(name string) error {
	if l.loose.saved[inside(l.source.Name, name)] {
		return nil
	}
	f := l.tree.Files[name]
	start, err := readStart(f.Spooled)
	if err != nil {
		return err
	}
	what := identify(name, start)
	if kind, version := openflow.Identify(start); what.what == aNodesDump && kind == openflow.KindFlows {
		what.openflow = version.String()
	}
	if what.openflow == "" && dumpName.MatchString(name) {
		what.openflow = "OpenFlow14" // ovs-save's own choice
	}
	n := l.loose.node(what.node, l.source)
	bridge := what.bridge
	if bridge == "" {
		bridge = decoded(bridgeOf(name))
	}
	if bridge == "" {
		bridge = unnamedBridge
		n.Remarks = append(n.Remarks, fmt.Sprintf("%s: its name doesn't tell its bridge, which is called %s here; rename it to BRIDGE.flows.dump", l.origin(name), unnamedBridge))
	}
	n.AddBridge(bridge)
	n.All = append(n.All, recording.Output{Meaning: recording.Meaning(what.kind), Bridge: bridge, OpenFlow: what.openflow,
		Origin: l.origin(name), File: f.Spooled, Size: f.Size})
	return nil
}

// decoded gives a bridge the name that a workdir's file names stand for.
func decoded(name string) string {
	if plain, ok := workdir.DecodeName(name); ok && name != "" {
		return plain
	}
	return name
}

// readStart reads a spooled file's first bytes. Databases are spooled as they
// were found, also gzip'd.
func readStart(name string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	whole := bufio.NewReader(f)
	in := io.Reader(whole)
	if magic, err := whole.Peek(2); err == nil && string(magic) == "\x1f\x8b" {
		zip, err := gzip.NewReader(whole)
		if err != nil {
			return nil, nil // what is wrong with it is said where it is inspected
		}
		in = zip
	}
	start := make([]byte, 4096)
	n, _ := io.ReadFull(in, start) // what is there tells
	return start[:n], nil
}

// sorted gives the outputs of each meaning and bridge, the best OpenFlow
// version first, as those who judge them expect.
func sorted(list []recording.Output) []recording.Output {
	sort.SliceStable(list, func(i, j int) bool { return list[i].OpenFlow > list[j].OpenFlow })
	return list
}
