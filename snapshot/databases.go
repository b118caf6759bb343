package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// Database is one OVN database, with the copies that nodes have.
type Database struct {
	Kind workdir.Kind `json:"kind"`
	// ID is the UUID of the row of NB_Global or SB_Global, which the database keeps for
	// life, and Name the name that NB_Global or its options state.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Copies holds different copies, the newest first. Names are taken from that one.
	Copies []Copy `json:"copies"`
}

// Copy is the database at one moment.
type Copy struct {
	Nodes   []string  `json:"nodes"`
	NBCfg   int       `json:"nb_cfg"` // a counter of changes of the network, which only grows
	Changed time.Time `json:"changed,omitzero"`
	// Behind is the time from its last transaction to the last one of the newest copy, in
	// seconds. It is negative if the clocks of the servers differ.
	Behind float64 `json:"behind_seconds,omitempty"`
	// Differs counts, by table, the rows that only one of this and the newest copy has.
	Differs map[string]int `json:"differs,omitempty"`

	index *file.Index
}

// comparedTables lists the tables whose rows are compared, by kind. They name what a user
// asks about; logical flows, which are most of a database, are left out.
func comparedTables() map[workdir.Kind][]string {
	return map[workdir.Kind][]string{
		workdir.NB: {"ACL", "Load_Balancer", "Logical_Router", "Logical_Router_Port", "Logical_Switch", "Logical_Switch_Port", "NAT"},
		workdir.SB: {"Chassis", "Datapath_Binding", "Encap", "Load_Balancer", "Port_Binding"},
	}
}

func globalTable(kind workdir.Kind) string {
	return map[workdir.Kind]string{workdir.NB: "NB_Global", workdir.SB: "SB_Global"}[kind]
}

// Databases returns the OVN databases of the selected nodes: the files of one deployment are
// copies of one database, at one or several moments. It reads the named kinds, or those of
// both if none is named. problems names the databases that can't be read.
func (s *Snapshot) Databases(ctx context.Context, kinds ...workdir.Kind) (databases []Database, problems []string, err error) {
	databases, problems, err = s.OpenDatabases(ctx, kinds...)
	for i := range databases {
		databases[i].Index().Close()
	}
	return databases, problems, err
}

// OpenDatabases works like Databases, and leaves the index of the newest copy of each
// database open, which the caller closes.
func (s *Snapshot) OpenDatabases(ctx context.Context, kinds ...workdir.Kind) (databases []Database, problems []string, err error) {
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		found, failed := openDatabases(ctx, s.nodes, kind, s.SameFiles(ctx, kind), nil)
		databases, problems = append(databases, found...), append(problems, failed...)
	}
	return databases, problems, ctx.Err()
}

// Index returns the index of the newest copy.
func (d Database) Index() *file.Index { return d.Copies[0].index }

// openDatabases opens the databases of a kind. Each group of nodes has the same file, which is read
// once: the named tables, or all if none is named.
func openDatabases(ctx context.Context, all []*Node, kind workdir.Kind, groups map[string][]*Node, tables []string) (databases []Database, problems []string) {
	same := map[*Node]*Node{} // the first of the nodes that have the same file
	for _, nodes := range groups {
		for _, node := range nodes {
			same[node] = nodes[0]
		}
	}
	read := map[*Node]*reading{}
	var distinct []*reading
	for _, node := range all {
		wd, err := node.Workdir()
		if err != nil {
			continue // every action on the node returns the error
		}
		if _, err := os.Stat(wd.Database(kind)); err != nil {
			continue
		}
		first := cmp.Or(same[node], node)
		if read[first] == nil {
			read[first] = &reading{node: node, data: &wd.Data, path: wd.Database(kind)}
			distinct = append(distinct, read[first])
		}
		read[first].names = append(read[first].names, node.Name)
	}
	byID := map[string]int{}
	for _, reading := range readAll(ctx, kind, distinct, tables) {
		if reading.err != nil {
			problems = append(problems, fmt.Sprintf("the %s database of %s: %v", kind.Title(), strings.Join(reading.names, ", "), reading.err))
			continue
		}
		i, known := byID[reading.database.ID]
		if !known {
			i = len(databases)
			byID[reading.database.ID] = i
			databases = append(databases, Database{Kind: kind, ID: reading.database.ID})
		}
		databases[i].Name = cmp.Or(databases[i].Name, reading.database.Name)
		databases[i].Copies = append(databases[i].Copies, reading.database.Copies...)
	}
	for i := range databases {
		databases[i].order()
	}
	return databases, problems
}

// reading is a database file that one or several nodes have.
type reading struct {
	node     *Node
	data     *workdir.Data
	path     string
	names    []string
	database Database // with one copy
	err      error
}

func readAll(ctx context.Context, kind workdir.Kind, readings []*reading, tables []string) []*reading {
	byNode := map[*Node]*reading{}
	var nodes []*Node
	for _, reading := range readings {
		byNode[reading.node] = reading
		nodes = append(nodes, reading.node)
	}
	EachOf(ctx, nodes, func(ctx context.Context, node *Node) (struct{}, error) {
		byNode[node].read(ctx, kind, tables)
		return struct{}{}, nil
	})
	for _, reading := range readings {
		if reading.err == nil && len(reading.database.Copies) == 0 {
			reading.err = ctx.Err() // it ended before the file was read
		}
	}
	return readings
}

func (r *reading) read(ctx context.Context, kind workdir.Kind, tables []string) {
	global := globalTable(kind)
	index, err := indexOf(ctx, r.data, r.path, tables)
	if err != nil {
		r.err = err
		return
	}
	var rows []ovsdb.Row
	for row, err := range index.Rows(global, "nb_cfg", "name", "options") {
		if err != nil {
			r.err = err
			break
		}
		rows = append(rows, row)
	}
	if r.err == nil && len(rows) != 1 {
		r.err = fmt.Errorf("%s has %d rows instead of one: its deployment is unknown", global, len(rows))
	}
	if r.err != nil {
		index.Close()
		return
	}
	copied := Copy{Nodes: r.names, index: index}
	if !index.Changed.IsZero() {
		copied.Changed = index.Changed.UTC()
	}
	copied.NBCfg, _ = rows[0].Int("nb_cfg")
	r.database = Database{Kind: kind, ID: rows[0].UUID, Name: cmp.Or(rows[0].String("name"), rows[0].Map("options")["name"]), Copies: []Copy{copied}}
}

// indexOf returns the index that the readers of the snapshot share. If only some tables are read, it returns an index of these tables
// alone: a shell that completes a name must not wait for the logical flows of a large database.
func indexOf(ctx context.Context, data *workdir.Data, path string, tables []string) (*file.Index, error) {
	if len(tables) > 0 {
		return file.OpenIndex(ctx, path, tables...)
	}
	return data.Index(ctx, path)
}

// order puts the newest copy first, compares the others with it, and closes these. The counter nb_cfg
// decides, because the clocks of servers can differ; then the time of the last
// transaction.
func (d *Database) order() {
	slices.SortStableFunc(d.Copies, func(a, b Copy) int {
		return cmp.Or(cmp.Compare(b.NBCfg, a.NBCfg), b.Changed.Compare(a.Changed))
	})
	newest := d.Copies[0]
	for i := range d.Copies {
		copied := &d.Copies[i]
		if i > 0 {
			copied.compare(d.Kind, newest)
		}
	}
	for i := range d.Copies[1:] {
		d.Copies[i+1].index.Close()
		d.Copies[i+1].index = nil
	}
}

func (c *Copy) compare(kind workdir.Kind, newest Copy) {
	if !c.Changed.IsZero() && !newest.Changed.IsZero() {
		c.Behind = newest.Changed.Sub(c.Changed).Seconds()
	}
	for _, table := range comparedTables()[kind] {
		own, other := c.index.UUIDs(table), newest.index.UUIDs(table)
		if n := onlyIn(own, other) + onlyIn(other, own); n > 0 {
			if c.Differs == nil {
				c.Differs = map[string]int{}
			}
			c.Differs[table] = n
		}
	}
}

// onlyIn returns the number of elements of a, which like b is sorted, that b lacks.
func onlyIn(a, b []string) (n int) {
	for _, element := range a {
		if _, found := slices.BinarySearch(b, element); !found {
			n++
		}
	}
	return n
}

// Sentences describes the differences between the copies of databases, for the user.
func Sentences(databases []Database) []string {
	var lines []string
	byKind := map[workdir.Kind][]Database{}
	for _, database := range databases {
		byKind[database.Kind] = append(byKind[database.Kind], database)
		for _, copied := range database.Copies[1:] {
			if copied.Behind != 0 || copied.Changed.IsZero() || copied.NBCfg != database.Copies[0].NBCfg || len(copied.Differs) > 0 {
				lines = append(lines, database.sentence(copied))
			}
		}
	}
	for _, kind := range workdir.Kinds() {
		if len(byKind[kind]) > 1 && !areZones(byKind[kind]) {
			var whose []string
			for _, database := range byKind[kind] {
				whose = append(whose, database.ownerNames())
			}
			lines = append(lines, fmt.Sprintf("the %s databases are of %d deployments, or of zones that OVN interconnects: %s", kind.Title(), len(whose), firstOwners(whose)))
		}
	}
	return lines
}

// areZones reports whether databases are those of zones that OVN interconnects: each has a name, and no
// two have the same (ovn-nb(5), NB_Global, name).
func areZones(databases []Database) bool {
	known := map[string]bool{"": true}
	for _, database := range databases {
		if known[database.Name] {
			return false
		}
		known[database.Name] = true
	}
	return true
}

// firstOwners lists the owners of the first ten databases: the table of databases has all.
func firstOwners(whose []string) string {
	const shown = 10
	if more := len(whose) - shown; more > 0 {
		whose = append(whose[:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(whose, "; ")
}

// ownerNames names the first nodes that have a copy of the database.
func (d Database) ownerNames() string {
	nodes := d.members()
	slices.Sort(nodes)
	text := phrase.FirstNames(nodes)
	if d.Name != "" {
		text = fmt.Sprintf("%q of %s", d.Name, text)
	}
	return text
}

// sentence describes a copy that is not the newest.
func (d Database) sentence(copied Copy) string {
	newest := d.Copies[0]
	text := fmt.Sprintf("the %s database of %s differs from the copy of %s, from which names are taken: ", d.Kind.Title(), phrase.FirstNames(copied.Nodes), phrase.FirstNames(newest.Nodes))
	switch behind := time.Duration(copied.Behind * float64(time.Second)).Round(time.Millisecond); {
	case copied.Changed.IsZero() || newest.Changed.IsZero():
		text += "the times of their last changes are not known"
	case behind < 0:
		text += fmt.Sprintf("its last change is %v later although its nb_cfg is lower, so the clocks of the servers differ", -behind)
	default:
		text += fmt.Sprintf("its last change is %v older", behind)
	}
	text += fmt.Sprintf("; nb_cfg %d and %d", copied.NBCfg, newest.NBCfg)
	var differs []string
	for _, table := range comparedTables()[d.Kind] {
		if n := copied.Differs[table]; n > 0 {
			differs = append(differs, fmt.Sprintf("%d of %s", n, table))
		}
	}
	if len(differs) == 0 {
		return text + "; no rows of ports and switches are in only one of them"
	}
	return text + "; rows in only one of them: " + strings.Join(differs, ", ")
}
