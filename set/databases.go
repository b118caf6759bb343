package set

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// Database is one OVN database, of which nodes of a set have copies.
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
	// Behind is the time from its last transaction to that of the newest copy, in
	// seconds. It is negative if the clocks of the servers differ.
	Behind float64 `json:"behind_seconds,omitempty"`
	// Differs counts, by table, the rows that only one of this and the newest copy has.
	Differs map[string]int `json:"differs,omitempty"`

	content *file.Content
}

// comparedTables lists the tables whose rows are compared, by kind. They name what a user
// asks about; logical flows, which are most of a database, are left out.
func comparedTables() map[workdir.Kind][]string {
	return map[workdir.Kind][]string{
		workdir.NB: {"ACL", "Load_Balancer", "Logical_Router", "Logical_Router_Port", "Logical_Switch", "Logical_Switch_Port", "NAT"},
		workdir.SB: {"Chassis", "Datapath_Binding", "Encap", "Load_Balancer", "Port_Binding"},
	}
}

func globalTable(k workdir.Kind) string {
	return map[workdir.Kind]string{workdir.NB: "NB_Global", workdir.SB: "SB_Global"}[k]
}

// Databases returns the OVN databases of the selected nodes: those of one deployment are
// copies of one database, at one or several moments. problems names the databases that
// can't be read.
func (s *Set) Databases(ctx context.Context) (databases []Database, problems []string, err error) {
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		found, failed := s.databases(ctx, k)
		databases, problems = append(databases, found...), append(problems, failed...)
	}
	return databases, problems, ctx.Err()
}

func (s *Set) databases(ctx context.Context, k workdir.Kind) (databases []Database, problems []string) {
	same := map[*Node]*Node{} // the first of the nodes that have the same file
	for _, nodes := range s.bySum(ctx, k) {
		for _, n := range nodes {
			same[n] = nodes[0]
		}
	}
	read := map[*Node]*reading{}
	var distinct []*reading
	for _, n := range s.nodes {
		wd, err := n.Workdir()
		if err != nil {
			continue // every action on the node returns the error
		}
		if _, err := os.Stat(wd.Database(k)); err != nil {
			continue
		}
		first := cmp.Or(same[n], n)
		if read[first] == nil {
			read[first] = &reading{node: n, path: wd.Database(k)}
			distinct = append(distinct, read[first])
		}
		read[first].names = append(read[first].names, n.Name)
	}
	byID := map[string]int{}
	for _, r := range readAll(ctx, k, distinct) {
		if r.err != nil {
			problems = append(problems, fmt.Sprintf("the %s database of %s: %v", k.Title(), strings.Join(r.names, ", "), r.err))
			continue
		}
		i, known := byID[r.database.ID]
		if !known {
			i = len(databases)
			byID[r.database.ID] = i
			databases = append(databases, Database{Kind: k, ID: r.database.ID})
		}
		databases[i].Name = cmp.Or(databases[i].Name, r.database.Name)
		databases[i].Copies = append(databases[i].Copies, r.database.Copies...)
	}
	for i := range databases {
		databases[i].order()
	}
	return databases, problems
}

// reading is a database file that one or several nodes have.
type reading struct {
	node     *Node
	path     string
	names    []string
	database Database // with one copy
	err      error
}

func readAll(ctx context.Context, k workdir.Kind, readings []*reading) []*reading {
	byNode := map[*Node]*reading{}
	var nodes []*Node
	for _, r := range readings {
		byNode[r.node] = r
		nodes = append(nodes, r.node)
	}
	each(ctx, nodes, func(ctx context.Context, n *Node) (struct{}, error) {
		byNode[n].read(ctx, k)
		return struct{}{}, nil
	})
	return readings
}

func (r *reading) read(ctx context.Context, k workdir.Kind) {
	global := globalTable(k)
	content, _, err := file.Read(ctx, r.path, append(comparedTables()[k], global)...)
	if err != nil {
		r.err = err
		return
	}
	rows := content.Rows(global)
	if len(rows) != 1 {
		r.err = fmt.Errorf("%d rows in %s, not 1: it is not known of which deployment it is", len(rows), global)
		return
	}
	c := Copy{Nodes: r.names, Changed: content.Changed.UTC(), content: content}
	if content.Changed.IsZero() {
		c.Changed = time.Time{}
	}
	c.NBCfg, _ = rows[0].Int("nb_cfg")
	r.database = Database{Kind: k, ID: rows[0].UUID, Name: cmp.Or(rows[0].String("name"), rows[0].Map("options")["name"]), Copies: []Copy{c}}
}

// order puts the newest copy first and compares the others with it. The counter nb_cfg
// decides, because the clocks of servers can differ; then the time of the last
// transaction.
func (d *Database) order() {
	slices.SortStableFunc(d.Copies, func(a, b Copy) int {
		return cmp.Or(cmp.Compare(b.NBCfg, a.NBCfg), b.Changed.Compare(a.Changed))
	})
	newest := d.Copies[0]
	for i := range d.Copies {
		c := &d.Copies[i]
		if i > 0 {
			c.compare(d.Kind, newest)
		}
	}
	for i := range d.Copies {
		d.Copies[i].content = nil
	}
}

func (c *Copy) compare(k workdir.Kind, newest Copy) {
	if !c.Changed.IsZero() && !newest.Changed.IsZero() {
		c.Behind = newest.Changed.Sub(c.Changed).Seconds()
	}
	for _, table := range comparedTables()[k] {
		own, other := c.content.UUIDs(table), newest.content.UUIDs(table)
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

// Sentences describes in what the copies of databases differ, for the user.
func Sentences(databases []Database) []string {
	var lines []string
	byKind := map[workdir.Kind][]Database{}
	for _, d := range databases {
		byKind[d.Kind] = append(byKind[d.Kind], d)
		for _, c := range d.Copies[1:] {
			if c.Behind != 0 || c.Changed.IsZero() || c.NBCfg != d.Copies[0].NBCfg || len(c.Differs) > 0 {
				lines = append(lines, d.sentence(c))
			}
		}
	}
	for _, k := range workdir.Kinds() {
		if len(byKind[k]) > 1 {
			var whose []string
			for _, d := range byKind[k] {
				whose = append(whose, d.owners())
			}
			lines = append(lines, fmt.Sprintf("the %s databases are of %d deployments, or of zones that OVN interconnects: %s", k.Title(), len(whose), firstOwners(whose)))
		}
	}
	return lines
}

// firstOwners lists the owners of the first ten databases: the table of databases has all.
func firstOwners(whose []string) string {
	const shown = 10
	if more := len(whose) - shown; more > 0 {
		whose = append(whose[:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(whose, "; ")
}

// owners names the first nodes that have a copy of the database.
func (d Database) owners() string {
	var nodes []string
	for _, c := range d.Copies {
		nodes = append(nodes, c.Nodes...)
	}
	slices.Sort(nodes)
	text := recording.FirstNames(nodes)
	if d.Name != "" {
		text = fmt.Sprintf("%q of %s", d.Name, text)
	}
	return text
}

// sentence describes a copy that is not the newest.
func (d Database) sentence(c Copy) string {
	newest := d.Copies[0]
	text := fmt.Sprintf("the %s database of %s differs from that of %s, from which names are taken: ", d.Kind.Title(), recording.FirstNames(c.Nodes), recording.FirstNames(newest.Nodes))
	switch behind := time.Duration(c.Behind * float64(time.Second)).Round(time.Millisecond); {
	case c.Changed.IsZero() || newest.Changed.IsZero():
		text += "the times of their last changes are not known"
	case behind < 0:
		text += fmt.Sprintf("its last change is %v later although its nb_cfg is lower, so the clocks of the servers differ", -behind)
	default:
		text += fmt.Sprintf("its last change is %v older", behind)
	}
	text += fmt.Sprintf("; nb_cfg %d and %d", c.NBCfg, newest.NBCfg)
	var differs []string
	for _, table := range comparedTables()[d.Kind] {
		if n := c.Differs[table]; n > 0 {
			differs = append(differs, fmt.Sprintf("%d of %s", n, table))
		}
	}
	if len(differs) == 0 {
		return text + "; no rows of ports and switches are in only one of them"
	}
	return text + "; rows in only one of them: " + strings.Join(differs, ", ")
}
