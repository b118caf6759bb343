package sosreport

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// Bridges whose names mangle alike have files that only a number tells apart,
// in the order in which sos asked. In an OpenFlow version it asks only those
// that speak it, so without a manifest one has to know which those were.

// settle numbers the arguments of one command. Where it can't be known whose a
// file is, none of the bridges that it may be of gets it.
func (c *contents) settle(p pattern, bridges []string, r *Report) []actual {
	groups := map[string][]string{}
	for _, b := range bridges {
		name := mangle(p.command + b)
		groups[name] = append(groups[name], b)
	}
	var list []actual
	for _, b := range bridges {
		name := mangle(p.command + b)
		if alike := groups[name]; len(alike) == 1 || p.openflow == "" || c.manifest != nil {
			list = append(list, numbered(name, b, alike))
			continue
		}
		asked, sure := c.asked(p, name, groups[name])
		if !sure {
			r.doubt(p, groups[name])
		} else if slices.Contains(asked, b) {
			list = append(list, numbered(name, b, asked))
		}
	}
	return list
}

func numbered(name, bridge string, alike []string) actual {
	if n := slices.Index(alike, bridge); n > 0 {
		name += "." + strconv.Itoa(n)
	}
	return actual{value: bridge, bridge: bridge, file: name}
}

// asked are those of the bridges that sos asked in the pattern's version: all
// that have it among their protocols, and perhaps those that have none, which
// the number of files tells.
func (c *contents) asked(p pattern, name string, bridges []string) (asked []string, sure bool) {
	files := 0
	for n := range bridges {
		file := path.Join(p.folder(), name)
		if n > 0 {
			file += "." + strconv.Itoa(n)
		}
		if _, found := slices.BinarySearch(c.list, file); found {
			files++
		}
	}
	protocols := c.bridgeProtocols()
	var explicit, all []string
	for _, b := range bridges {
		speaks, known := protocols[b]
		if !known {
			return bridges, files == len(bridges)
		}
		if slices.Contains(speaks, p.openflow) {
			explicit = append(explicit, b)
		}
		if slices.Contains(speaks, p.openflow) || len(speaks) == 0 {
			all = append(all, b)
		}
	}
	if files == len(all) {
		return all, true
	}
	return explicit, files == len(explicit)
}

// doubt says once for each command and bridges that nobody knows whose an output is.
func (r *Report) doubt(p pattern, bridges []string) {
	remark := fmt.Sprintf("bridges %q have files of the same name for %q, and it can't be known whose is whose: not taken", bridges, strings.TrimSpace(p.command))
	if !slices.Contains(r.Remarks, remark) {
		r.Remarks = append(r.Remarks, remark)
	}
}

// bridgeProtocols reads the bridges' protocols from the database, or from what
// was printed of it.
func (c *contents) bridgeProtocols() map[string][]string {
	if c.protocols != nil {
		return c.protocols
	}
	c.protocols = map[string][]string{}
	for _, rel := range c.list {
		if !isDatabasePlace(rel) {
			continue
		}
		if _, f, ok := c.resolve(rel); ok {
			if content, _, err := ovsdb.Read(context.Background(), f.Spooled, "Bridge"); err == nil {
				for _, row := range content.Rows("Bridge") {
					c.protocols[row.String("name")] = row.Strings("protocols")
				}
			}
		}
	}
	for _, name := range bridgeLists() {
		tables, err := ovsdb.Tables(strings.NewReader(c.text("sos_commands/openvswitch/"+name)), "Bridge")
		if err != nil || len(c.protocols) > 0 {
			continue
		}
		for _, row := range tables["Bridge"] {
			columns := map[string]string{}
			for _, v := range row.Columns {
				columns[v.Column] = v.Text
			}
			c.protocols[unquoted(columns["name"])] = strings.FieldsFunc(columns["protocols"], func(r rune) bool { return strings.ContainsRune(`[], "`, r) })
		}
	}
	return c.protocols
}
