package rule

import (
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Data is something that rules read, and that may not have been collected.
type Data struct {
	Name  string // for people: "database of Open vSwitch"
	lacks func(n *Node) (string, error)
	// tables are those that are read of a database, which is that of Open vSwitch for ofSwitch; nil for other data.
	tables   []Table
	ofSwitch bool
}

const (
	nameOfNB = "OVN NB database"
	nameOfSB = "OVN SB database"
)

// dataOf returns data that a node has or has not.
func dataOf(name string, has func(n *Node) (bool, error)) Data {
	return Data{Name: name, lacks: func(n *Node) (string, error) {
		if ok, err := has(n); ok || err != nil {
			return "", err
		}
		return name, nil
	}}
}

// Table is what a rule reads of a table of an OVN database, of which only some rows or some columns may be known.
type Table struct {
	name    string
	rows    bool
	columns []string
}

// All is all rows of a table with these columns.
func All(table string, columns ...string) Table { return Table{table, true, columns} }

// Some is any rows of a table with these columns: what a rule finds in one of them, it finds whatever the others are.
func Some(table string, columns ...string) Table { return Table{table, false, columns} }

// lacking names what is not known of tables of a database, "" for nothing.
func lacking(index *file.Index, database string, tables []Table) string {
	if index == nil {
		return database
	}
	for _, table := range tables {
		if what := index.Lacks(table.name, table.rows, table.columns...); what != "" {
			return what + " of the " + database
		}
	}
	if len(tables) == 0 && index.OnlyInPart() {
		return database
	}
	return ""
}

// OVS is the database of Open vSwitch, as a file or printed.
func OVS() Data {
	return dataOf("database of Open vSwitch", func(n *Node) (bool, error) { return n.OVS != nil, nil })
}

// NB is what a rule reads of the OVN NB database, as a file or printed.
func NB(tables ...Table) Data {
	return Data{nameOfNB, func(n *Node) (string, error) { return lacking(n.Deployment.NB, nameOfNB, tables), nil }, tables, false}
}

// SB is what a rule reads of the OVN SB database, as a file or printed.
func SB(tables ...Table) Data {
	return Data{nameOfSB, func(n *Node) (string, error) { return lacking(n.Deployment.SB, nameOfSB, tables), nil }, tables, false}
}

// Output is what a command of a whole node printed.
func Output(name recording.Name) Data {
	return dataOf(titleOf(name), func(n *Node) (bool, error) { return collected(n.Dir, n.Dir.Recorded(string(name))) })
}

// Printed is a table of the OVS database as ovs-vsctl list printed it, or of it rows with these columns.
func Printed(table string, columns ...string) Data {
	name := titleOf(recording.Name(workdir.RecordedList(table)))
	printed := dataOf(name, func(n *Node) (bool, error) {
		if ok, err := collected(n.Dir, n.Dir.Recorded(workdir.RecordedList(table))); ok || err != nil {
			return ok, err
		}
		known, part, err := n.known(table)
		return part && known.Has(columns...), err
	})
	printed.tables, printed.ofSwitch = []Table{{table, false, columns}}, true
	return printed
}

// BridgeOutput is what a command printed for a bridge.
func BridgeOutput(name recording.Name) Data {
	return dataOf(titleOf(name), func(n *Node) (bool, error) {
		bridges, err := n.RecordedBridges()
		for _, bridge := range bridges {
			if ok, err := collected(n.Dir, n.Dir.BridgeRecorded(bridge, string(name))); ok || err != nil {
				return ok, err
			}
		}
		return false, err
	})
}

// HostOutput is what tells about the machine. title names it for people.
func HostOutput(name, title string) Data {
	return dataOf(title, func(n *Node) (bool, error) { return collected(n.Dir, n.Dir.HostRecorded(name)) })
}

// Dumps are the OpenFlow flows of bridges.
func Dumps() Data {
	return dataOf("dump of OpenFlow flows", func(n *Node) (bool, error) {
		bridges, err := n.Dir.DumpedBridges(workdir.Flows)
		return len(bridges) > 0, err
	})
}

// Namespaces are the named network namespaces of nodes.
func Namespaces() Data {
	return dataOf("network namespace", func(n *Node) (bool, error) {
		names, err := n.Dir.RecordedNamespaces()
		return len(names) > 0, err
	})
}

// Logs are the logs of daemons and of the machine.
func Logs() Data {
	return dataOf("log", func(n *Node) (bool, error) {
		files, err := n.Dir.HostLogs()
		return len(files) > 0, err
	})
}

// Either is one of several.
func Either(all ...Data) Data {
	var names []string
	var tables []Table
	var either Data
	for _, one := range all {
		if !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
		tables, either.ofSwitch = append(tables, one.tables...), either.ofSwitch || one.ofSwitch
	}
	ofSwitch := either.ofSwitch
	either = dataOf(strings.Join(names, " or "), func(n *Node) (bool, error) {
		for _, one := range all {
			if lacks, err := one.lacks(n); lacks == "" || err != nil {
				return err == nil, err
			}
		}
		return false, nil
	})
	either.tables, either.ofSwitch = tables, ofSwitch
	return either
}

// titleOf returns a command as people know it.
func titleOf(name recording.Name) string {
	if command, ok := recording.Find(name); ok {
		return "output of " + command.Line
	}
	return "output of " + string(name)
}

// collected reports whether a file was collected and holds something.
func collected(wd *workdir.Dir, path string) (bool, error) {
	file, ok, err := wd.Collected(path)
	if !ok {
		return false, err
	}
	defer file.Close()
	return file.Size() > 0, nil
}

// Lacks returns the names of what a rule needs and a case does not have, nil if the rule could look at something.
func (r *Rule) Lacks(c *Case) (lacking []string, err error) {
	for _, data := range r.Needs {
		lacking = append(lacking, data.Name)
	}
	for _, d := range c.Deployments {
		nodes := [][]*Node{d.Nodes}
		if r.Node != nil { // all of it on one node
			nodes = nil
			for _, n := range d.Nodes {
				nodes = append(nodes, []*Node{n})
			}
		}
		for _, among := range nodes {
			missing, err := r.Missing(among...)
			if err != nil || len(missing) == 0 {
				return nil, err
			}
			if len(missing) <= len(lacking) {
				lacking = missing
			}
		}
	}
	return lacking, nil
}

// Missing returns the names of what a rule needs and none of some nodes has.
func (r *Rule) Missing(nodes ...*Node) (missing []string, err error) {
	for _, data := range r.Needs {
		name := data.Name
		for _, n := range nodes {
			lacks, failed := data.lacks(n)
			if name = lacks; failed != nil {
				return nil, failed
			}
			if lacks == "" {
				break
			}
		}
		if name != "" {
			missing = append(missing, name)
		}
	}
	return missing, nil
}
