package ovn

import (
	"encoding/json"
	"io"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/pkg/ovsdb"
)

// maxShown is the number of rows that Shown reads: more than any deployment has.
const maxShown = 1 << 20

// shownOwner matches the first line of a switch or a router. Names of a CMS may follow: "(aka web)".
var shownOwner = lazyregexp.New(`^(switch|router) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?: \((.*)\))?$`)

// Shown reads the outputs of ovn-nbctl show and ovn-sbctl show (ovn-nbctl(8), ovn-sbctl(8)) as rows of the tables Logical_Switch,
// Logical_Switch_Port, Logical_Router, Logical_Router_Port, NAT, Chassis and Port_Binding. The rows have only the columns that are printed,
// and UUIDs made of their names where none is. It skips other lines.
func Shown(r io.Reader) (map[string][]ovsdb.Record, error) {
	s := shown{tables: map[string][]ovsdb.Record{}}
	_, err := lines.Read(r, func(line []byte) error {
		if s.rows < maxShown {
			s.add(strings.TrimSpace(string(line)))
		}
		return nil
	})
	s.end()
	return s.tables, err
}

// shown is an output that is being read.
type shown struct {
	tables map[string][]ovsdb.Record
	owner  *ovsdb.Record // the switch, router or chassis that is open
	table  string        // of owner
	ports  []string      // the UUIDs of its ports
	nats   []string
	part   *ovsdb.Record // the port or the NAT rule that is open
	of     string        // the table of part
	rows   int
}

// add adds a line. Its first word tells what it begins or which column it has, whatever its indentation.
func (s *shown) add(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "switch" || word == "router":
		if match := shownOwner.FindStringSubmatch(line); match != nil {
			s.end()
			s.table = map[string]string{"switch": "Logical_Switch", "router": "Logical_Router"}[match[1]]
			s.owner = &ovsdb.Record{UUID: match[2]}
			set(s.owner, "name", nameIn(match[3]))
		}
	case word == "Chassis" && rest != "":
		s.end()
		s.table, s.owner = "Chassis", &ovsdb.Record{UUID: ovsdb.UUIDOf("Chassis " + rest)}
		set(s.owner, "name", rest)
	case s.owner == nil:
	case word == "port" && rest != "" && s.table != "Chassis":
		s.endPart()
		s.of = s.table + "_Port"
		s.part = &ovsdb.Record{UUID: ovsdb.UUIDOf(s.of + " " + rest)}
		set(s.part, "name", nameIn(rest))
		s.ports = append(s.ports, s.part.UUID)
	case word == "nat" && ovsdb.IsUUID(rest) && s.table == "Logical_Router":
		s.endPart()
		s.of, s.part = "NAT", &ovsdb.Record{UUID: rest}
		s.nats = append(s.nats, rest)
	case word == "Port_Binding" && rest != "" && s.table == "Chassis":
		s.endPart()
		s.of, s.part = "Port_Binding", &ovsdb.Record{UUID: ovsdb.UUIDOf("Port_Binding " + rest)}
		set(s.part, "logical_port", rest)
		s.part.Columns = append(s.part.Columns, ovsdb.Value{Column: "chassis", Text: s.owner.UUID})
	default:
		s.addColumn(line)
	}
}

// nameIn returns a name without those of a CMS behind it: "p1 (aka web)", and "sw0) (aka web" between the brackets of a switch.
func nameIn(text string) string {
	name, _, found := strings.Cut(text, " (aka ")
	if found {
		name = strings.TrimSuffix(name, ")")
	}
	return name
}

// addColumn adds a line with the value of a column.
func (s *shown) addColumn(line string) {
	label, value, found := strings.Cut(line, ": ")
	if !found || value == "" {
		return
	}
	if s.part == nil {
		if label == "hostname" && s.table == "Chassis" {
			set(s.owner, label, value)
		}
		return
	}
	column, known := map[string]string{"type": "type", "addresses": "addresses", "mac": "mac", "networks": "networks", "parent": "parent_name", "tag": "tag",
		"external ip": "external_ip", "logical ip": "logical_ip", "external port(s)": "external_port_range"}[label]
	switch {
	case label == "router-port":
		s.part.Columns = append(s.part.Columns, ovsdb.Value{Column: "options", Text: "{router-port=" + quoted(value) + "}"})
	case known && (strings.HasPrefix(value, "[") || label == "tag"):
		s.part.Columns = append(s.part.Columns, ovsdb.Value{Column: column, Text: value})
	case known:
		set(s.part, column, value)
	}
}

// set sets a column to a string, whose quotes may be printed.
func set(record *ovsdb.Record, column, value string) {
	record.Columns = append(record.Columns, ovsdb.Value{Column: column, Text: quoted(value)})
}

// quoted returns a string in the notation of ovn-nbctl list.
func quoted(value string) string {
	var text string
	if strings.HasPrefix(value, `"`) && json.Unmarshal([]byte(value), &text) == nil {
		return value
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return `""`
	}
	return string(encoded)
}

// endPart adds the open port or NAT rule to its table.
func (s *shown) endPart() {
	if s.part != nil {
		s.tables[s.of] = append(s.tables[s.of], *s.part)
		s.rows++
	}
	s.part = nil
}

// end adds the open switch, router or chassis to its table.
func (s *shown) end() {
	s.endPart()
	if s.owner == nil {
		return
	}
	for column, list := range map[string][]string{"ports": s.ports, "nat": s.nats} {
		if len(list) > 0 {
			s.owner.Columns = append(s.owner.Columns, ovsdb.Value{Column: column, Text: "[" + strings.Join(list, ", ") + "]"})
		}
	}
	s.tables[s.table] = append(s.tables[s.table], *s.owner)
	s.rows++
	s.owner, s.ports, s.nats = nil, nil, nil
}
