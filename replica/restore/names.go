package restore

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// numbered keeps ovs-ofctl from asking a switch for the names of all its ports
// and tables before it sends flows or groups: a megabyte, and two thirds of the
// time that a small change takes (measured, OVS 3.1). Dumps hold numbers, unless
// a person made them on a terminal, or asked for names.
const numbered = "--no-names"

// named lets it print names: what a person dumped so is read back so.
const named = "--names"

// withNames sends flows or groups: without names, and where that fails for a
// text that may hold some, again with them. failed tells which text that is, ""
// for none. It returns how the replica has to print them to be compared.
func (n *Node) withNames(ctx context.Context, b *Bridge, send func(option string) error, failed func(error) string) (spelling string, err error) {
	err = send(numbered)
	if err == nil || ctx.Err() != nil {
		return numbered, err
	}
	may, failure := n.mayName(ctx, b, failed(err))
	if failure != nil || !may {
		return numbered, errors.Join(failure, err)
	}
	return named, send(named)
}

// portName is how much of a port's name OpenFlow has room for, in bytes
// (OpenFlow 1.0 to 1.5, ofp_port).
const portName = 15

// mayName tells whether a text could hold the name of a port or a table.
func (n *Node) mayName(ctx context.Context, b *Bridge, text string) (bool, error) {
	if strings.Contains(text, `"`) { // names of other signs than usual stand in quotes, some with escapes
		return true, nil
	}
	if n.tables == nil {
		rows, err := n.DB.Select(ctx, "Flow_Table", "name")
		if err != nil {
			return false, err
		}
		n.tables = make([]string, 0, len(rows))
		for _, r := range rows {
			n.tables = append(n.tables, r.String("name"))
		}
	}
	names := slices.Clone(n.tables)
	for _, i := range b.Interfaces() {
		names = append(names, i.Name[:min(len(i.Name), portName)])
	}
	return slices.ContainsFunc(names, func(name string) bool { return name != "" && strings.Contains(text, name) }), nil
}
