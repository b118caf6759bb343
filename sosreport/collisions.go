package sosreport

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
	dbfile "ovs-offline/internal/ovsdb/file"
)

// Bridges whose names mangle alike have files that only a number tells apart,
// in the order in which sos asked. In an OpenFlow version it asks only those
// that speak it, so without a manifest one has to know which those were.

// settle numbers the arguments of one command. Where it can't be known whose a
// file is, none of the bridges that it may be of gets it.
func (c *contents) settle(ctx context.Context, p pattern, r *Report) []actual {
	var files []string // in the order of their first bridges
	alike := map[string][]string{}
	for _, b := range r.Bridges {
		name := mangle(p.command + b)
		if alike[name] == nil {
			files = append(files, name)
		}
		alike[name] = append(alike[name], b)
	}
	var list []actual
	for _, name := range files {
		bridges := alike[name]
		if len(bridges) > 1 && p.openflow != "" && c.manifest == nil {
			asked, sure := c.asked(ctx, p, name, bridges)
			if !sure {
				c.doubt(p, bridges, r)
				continue
			}
			bridges = asked
		}
		for n, b := range bridges {
			file := name
			if n > 0 {
				file += "." + strconv.Itoa(n)
			}
			list = append(list, actual{value: b, bridge: b, file: file})
		}
	}
	return list
}

// asked are those of the bridges that sos asked in the pattern's version: all
// that have it among their protocols, and perhaps those that have none, which
// the number of files tells.
func (c *contents) asked(ctx context.Context, p pattern, name string, bridges []string) (asked []string, sure bool) {
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
	protocols := c.bridgeProtocols(ctx)
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

// doubt says once of a command and bridges that nobody knows whose an output is.
func (c *contents) doubt(p pattern, bridges []string, r *Report) {
	const mostNames, mostRemarks = 5, 100
	some, more := bridges, ""
	if len(bridges) > mostNames {
		some, more = bridges[:mostNames], fmt.Sprintf(" and %d more", len(bridges)-mostNames)
	}
	remark := fmt.Sprintf("bridges %q%s have files of the same name for %q, and it can't be known whose is whose: not taken", some, more, strings.TrimSpace(p.command))
	if c.doubted[remark] {
		return
	}
	c.doubted[remark] = true
	if len(c.doubted) == mostRemarks {
		remark = "other bridges as well have files of the same name: not taken"
	}
	if len(c.doubted) <= mostRemarks {
		r.Remarks = append(r.Remarks, remark)
	}
}

// bridgeProtocols reads the bridges' protocols from the database, or from what
// was printed of it.
func (c *contents) bridgeProtocols(ctx context.Context) map[string][]string {
	if c.protocols != nil {
		return c.protocols
	}
	c.protocols = map[string][]string{}
	for _, rel := range c.list {
		if !isDatabasePlace(rel) {
			continue
		}
		if _, f, ok := c.resolve(rel); ok {
			if content, _, err := dbfile.Read(ctx, f.Spooled, "Bridge"); err == nil {
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
