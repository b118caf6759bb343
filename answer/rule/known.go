package rule

import (
	"fmt"
	"strings"

	"ovs-offline/internal/phrase"
)

// InPart reports whether of a database of the deployment only some tables, rows or columns are known.
func (d *Deployment) InPart() bool { return d.NB.InPart() || d.SB.InPart() }

// Knows reports whether what a rule reads is known of some nodes: it must not take what is not known for empty.
func (d *Deployment) Knows(r *Rule, nodes ...*Node) bool {
	if !d.InPart() {
		return true
	}
	missing, err := r.Missing(nodes...)
	return err == nil && len(missing) == 0 // an error is that of the count of rules
}

// Knowing returns the case without the deployments of which a rule lacks data.
func (c *Case) Knowing(r *Rule) *Case {
	known := &Case{}
	for _, d := range c.Deployments {
		if d.Knows(r, d.Nodes...) {
			known.Deployments = append(known.Deployments, d)
		}
	}
	return known
}

// OnlySome says of which tables a rule could look at some rows alone, "" for none.
func (r *Rule) OnlySome(d *Deployment) string {
	if !d.InPart() {
		return ""
	}
	var found []string
	for _, data := range r.Needs {
		if data.ofSwitch {
			continue
		}
		for _, table := range data.tables {
			index := d.NB
			if data.Name == nameOfSB {
				index = d.SB
			}
			known, part := index.Known(table.name)
			switch lacks := index.Lacks(table.name, true, table.columns...); {
			case lacks == "":
			case part && known.Has(table.columns...):
				found = append(found, fmt.Sprintf("%s of the table %s", phrase.Count(known.Rows, "row"), table.name))
			default:
				found = append(found, "nothing of the table "+table.name)
			}
		}
	}
	return strings.Join(found, ", ")
}

// OnlySomeOf says of which tables of the OVS database of a node a rule could look at some rows alone, "" for none.
func (r *Rule) OnlySomeOf(n *Node) string {
	var found []string
	for _, data := range r.Needs {
		for _, table := range data.tables {
			if known, part, err := n.known(table.name); data.ofSwitch && n.OVS == nil && part && err == nil && !known.All && known.Has(table.columns...) {
				found = append(found, fmt.Sprintf("%s of the table %s", phrase.Count(known.Rows, "row"), table.name))
			}
		}
	}
	return strings.Join(found, ", ")
}
