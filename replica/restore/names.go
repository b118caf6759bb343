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

// withNames sends so many flows or groups: without names, and where ovs-ofctl can't
// read one whose text may hold some, again with them. It returns how the replica
// has to print them to be compared.
func (n *Node) withNames(ctx context.Context, b *Bridge, count int, text func(i int) string, send func(option string) error) (spelling string, err error) {
	err = send(numbered)
	bad, _, ok := unparsed(err)
	if !ok || bad >= count || ctx.Err() != nil {
		return numbered, err
	}
	may, failed := n.mayName(ctx, b, text(bad))
	if failed != nil || !may {
		return numbered, errors.Join(failed, err)
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
