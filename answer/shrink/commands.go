package shrink

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// writer writes a database as runs of ovn-nbctl, as a person would: with the commands for switches, ports, ACLs and so on
// where these say all that a row has, and with "create" elsewhere.
type writer struct {
	*file.Whole
	commands [][]string
	remarks  []string
	owners   map[string][]owner // of a row, by its UUID
}

// owner is a named row that refers to another row.
type owner struct{ table, name, column string }

// commandsOf returns the runs of ovn-nbctl that make a database, each without the name of the program.
func commandsOf(whole *file.Whole) (commands [][]string, remarks []string) {
	w := &writer{Whole: whole, owners: map[string][]owner{}}
	for _, row := range whole.Rows("") {
		for column, uuids := range whole.Row(row).References() {
			for _, uuid := range uuids {
				w.owners[uuid] = append(w.owners[uuid], owner{row.Table, whole.Name(row), column})
			}
		}
	}
	order := []string{"NB_Global", "Logical_Switch", "Logical_Switch_Port", "Logical_Router", "Logical_Router_Port", "Port_Group", "Address_Set", "ACL", "Load_Balancer"}
	for _, table := range order {
		w.table(table)
	}
	for _, row := range whole.Rows("") {
		if !slices.Contains(order, row.Table) {
			w.row(row)
		}
	}
	return w.commands, w.remarks
}

func (w *writer) table(name string) {
	for _, row := range w.Rows(name) {
		w.row(row)
	}
}

func (w *writer) add(words ...string) { w.commands = append(w.commands, words) }

// row writes a row.
func (w *writer) row(part file.Part) {
	row := w.Row(part)
	switch part.Table {
	case "NB_Global":
		w.set(part, ".", "nb_cfg")
	case "Logical_Switch":
		w.add("ls-add", row.String("name"))
		w.set(part, row.String("name"), "name")
	case "Logical_Router":
		w.add("lr-add", row.String("name"))
		w.set(part, row.String("name"), "name")
	case "Logical_Switch_Port":
		w.switchPort(part, row)
	case "Logical_Router_Port":
		w.add(append([]string{"lrp-add", w.ownerOf(part, "Logical_Router"), row.String("name"), row.String("mac")}, row.Strings("networks")...)...)
		w.set(part, row.String("name"), "name", "mac", "networks")
	case "Port_Group":
		words := []string{"pg-add", row.String("name")}
		for _, uuid := range row.UUIDs("ports") {
			words = append(words, w.Name(file.Part{Table: "Logical_Switch_Port", UUID: uuid}))
		}
		w.add(words...)
		w.set(part, row.String("name"), "name")
	case "ACL":
		w.acl(part, row)
	case "Load_Balancer":
		w.balancer(part, row)
	case "Logical_Router_Static_Route":
		w.route(part, row)
	case "NAT":
		w.nat(part, row)
	default:
		w.create(part)
	}
}

// ownerOf returns the name of the row of a table that refers to a row.
func (w *writer) ownerOf(part file.Part, table string) string {
	for _, of := range w.owners[part.UUID] {
		if of.table == table {
			return of.name
		}
	}
	return ""
}

func (w *writer) switchPort(part file.Part, row ovsdb.Row) {
	name := row.String("name")
	w.add("lsp-add", w.ownerOf(part, "Logical_Switch"), name)
	for _, of := range []struct{ command, column string }{{"lsp-set-type", "type"}, {"lsp-set-addresses", "addresses"}, {"lsp-set-port-security", "port_security"}} {
		if values := row.Strings(of.column); len(values) > 0 && values[0] != "" {
			w.add(append([]string{of.command, name}, values...)...)
		}
	}
	if options := pairs(row, "options"); len(options) > 0 {
		w.add(append([]string{"lsp-set-options", name}, options...)...)
	}
	w.set(part, name, "name", "type", "addresses", "port_security", "options", "dynamic_addresses", "up")
}

// acl writes an ACL. ovn-nbctl finds a switch or a port group of the name, unless --type says which.
func (w *writer) acl(part file.Part, row ovsdb.Row) {
	owners := w.owners[part.UUID]
	if len(owners) != 1 || !w.hasOnly(part, "priority", "direction", "match", "action") {
		w.create(part)
		return
	}
	kind := map[string]string{"Logical_Switch": "switch", "Port_Group": "port-group"}[owners[0].table]
	priority, _ := row.Int("priority")
	w.add("--type="+kind, "acl-add", owners[0].name, row.String("direction"), strconv.Itoa(priority), row.String("match"), row.String("action"))
}

func (w *writer) balancer(part file.Part, row ovsdb.Row) {
	name := row.String("name")
	if name == "" || !w.hasOnly(part, "name", "vips", "protocol") {
		w.create(part)
		return
	}
	vips := row.Map("vips")
	for _, vip := range sortedKeys(vips) {
		words := []string{"lb-add", name, vip, vips[vip]}
		if protocol := row.String("protocol"); protocol != "" && strings.Contains(strings.TrimPrefix(vip, "["), ":") {
			words = append(words, protocol)
		}
		w.add(words...)
	}
	for _, of := range w.owners[part.UUID] {
		switch of.table {
		case "Logical_Switch":
			w.add("ls-lb-add", of.name, name)
		case "Logical_Router":
			w.add("lr-lb-add", of.name, name)
		}
	}
}

func (w *writer) route(part file.Part, row ovsdb.Row) {
	if len(w.owners[part.UUID]) != 1 || !w.hasOnly(part, "ip_prefix", "nexthop", "output_port", "policy") || row.String("policy") == "src-ip" {
		w.create(part)
		return
	}
	words := []string{"lr-route-add", w.ownerOf(part, "Logical_Router"), row.String("ip_prefix"), row.String("nexthop")}
	if port := row.String("output_port"); port != "" {
		words = append(words, port)
	}
	w.add(words...)
}

func (w *writer) nat(part file.Part, row ovsdb.Row) {
	words := []string{"lr-nat-add", w.ownerOf(part, "Logical_Router"), row.String("type"), row.String("external_ip"), row.String("logical_ip")}
	port, mac := row.String("logical_port"), row.String("external_mac")
	if len(w.owners[part.UUID]) != 1 || !w.hasOnly(part, "type", "external_ip", "logical_ip", "logical_port", "external_mac") || (port == "") != (mac == "") {
		w.create(part)
		return
	}
	if port != "" {
		words = append(words, port, mac)
	}
	w.add(words...)
}

// hasOnly reports whether a row has values in these columns only.
func (w *writer) hasOnly(part file.Part, columns ...string) bool {
	return len(w.values(part, columns...)) == 0
}

// set writes the columns of a row that its command does not.
func (w *writer) set(part file.Part, name string, written ...string) {
	if values := w.values(part, written...); len(values) > 0 {
		w.add(append([]string{"set", part.Table, name}, values...)...)
	}
}

// create writes a row with all its columns, and adds it to the rows that refer to it.
func (w *writer) create(part file.Part) {
	owners := w.owners[part.UUID]
	words := append([]string{"create", part.Table}, w.values(part)...)
	if len(owners) > 0 {
		words = append([]string{"--id=@row"}, words...)
	}
	for _, of := range owners {
		if of.name == "" {
			w.remarks = append(w.remarks, fmt.Sprintf("a row of %s refers to one of %s, and has no name by which ovn-nbctl finds it", of.table, part.Table))
			continue
		}
		words = append(words, "--", "add", of.table, of.name, of.column, "@row")
	}
	w.add(words...)
}

// values returns the columns of a row as ovn-nbctl takes them, without some columns, and without references to other rows.
func (w *writer) values(part file.Part, without ...string) (words []string) {
	row := w.Row(part)
	references := row.References()
	for _, column := range w.Columns(part) {
		if len(references[column.Column]) > 0 || slices.Contains(without, column.Column) || isDefault(w.Text(column)) {
			continue
		}
		if list := pairs(row, column.Column); len(list) > 0 {
			for _, pair := range list {
				words = append(words, column.Column+":"+pair)
			}
			continue
		}
		var texts []string
		for _, element := range (ovsdb.Names{}).Elements(row, column.Column) {
			texts = append(texts, atom(element.Value))
		}
		words = append(words, column.Column+"="+strings.Join(texts, ","))
	}
	return words
}

// isDefault reports whether a column has the value that a new row has: numbers are 0 and booleans false.
func isDefault(text string) bool { return text == "0" || text == "false" }

// pairs returns the pairs of a column that is a map, as key=value.
func pairs(row ovsdb.Row, column string) (list []string) {
	values := row.Map(column)
	for _, key := range sortedKeys(values) {
		list = append(list, atom(key)+"="+atom(values[key]))
	}
	return list
}

// atom returns a value as ovn-nbctl reads it: one that is more than a word in the quotes of JSON.
func atom(text string) string {
	isPlain := func(char rune) bool {
		return char >= '0' && char <= '9' || char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || strings.ContainsRune("_-./", char)
	}
	if text != "" && !strings.ContainsFunc(text, func(char rune) bool { return !isPlain(char) }) {
		return text
	}
	return ovsdb.Quote(text)
}

func sortedKeys(m map[string]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
