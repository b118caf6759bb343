package ovsdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
)

// Unknown is the key in the external_ids of an interface, a bridge or a switch that a start made from what
// commands printed. Its value is what was not recorded: of a port its name, its number or its type, of a bridge the
// VLANs or the numbers of some ports, of the switch its settings. A port has an UnusedNumber if its number was not
// recorded and flows name ports by names.
const (
	Unknown         = "ovs-offline-unknown"
	UnknownName     = "name"
	UnknownNumber   = "number"
	UnusedNumber    = "unused number"
	UnknownType     = "type"
	UnknownPorts    = "ports"
	UnknownSettings = "external_ids"
)

// SetUnknown sets what was not recorded of a row.
func (o *Outline) SetUnknown(what string) {
	o.Set("external_ids", "{"+quoted(Unknown)+"="+quoted(what)+"}")
}

// Outline is a row of which the name and some columns are known, with the rows below it:
// bridges below Open_vSwitch, ports below a bridge, interfaces below a port.
type Outline struct {
	Table   string
	Name    string // the target of a Controller or Manager
	Columns []Value
	Rows    []*Outline
}

// NewOutline returns the row of the table Open_vSwitch, without anything below it.
func NewOutline() *Outline { return &Outline{Table: OVS} }

// Row returns the row of a name below o, which it adds if it is missing.
func (o *Outline) Row(table, name string) *Outline {
	if row := o.Find(table, name); row != nil {
		return row
	}
	row := &Outline{Table: table, Name: name}
	o.Rows = append(o.Rows, row)
	return row
}

// Find returns the row of a name directly below o, nil for none.
func (o *Outline) Find(table, name string) *Outline {
	for _, row := range o.Rows {
		if row.Table == table && row.Name == name {
			return row
		}
	}
	return nil
}

// Set sets a column to a text in the notation of ovs-vsctl.
func (o *Outline) Set(column, text string) {
	o.Columns = append(o.Columns, Value{Column: column, Text: text})
}

// Has reports whether a column is known.
func (o *Outline) Has(column string) bool {
	for _, value := range o.Columns {
		if value.Column == column {
			return true
		}
	}
	return false
}

// Text returns a column that is a string or a number, "" where it is not known.
func (o *Outline) Text(column string) string {
	for _, value := range o.Columns {
		if value.Column == column {
			return unquoted(value.Text)
		}
	}
	return ""
}

// Below returns the rows of a table anywhere below o.
func (o *Outline) Below(table string) (rows []*Outline) {
	for _, row := range o.Rows {
		if row.Table == table {
			rows = append(rows, row)
		}
		rows = append(rows, row.Below(table)...)
	}
	return rows
}

// Records returns the row and all rows below it as records, by table. An outline knows no
// UUIDs: they are numbered.
func (o *Outline) Records() map[string][]Record {
	tables := map[string][]Record{}
	count := 0
	o.record(tables, &count)
	return tables
}

// record adds the rows to tables and returns the UUID of the first.
func (o *Outline) record(tables map[string][]Record, count *int) string {
	*count++
	record := Record{UUID: fmt.Sprintf("00000000-0000-4000-8000-%012x", *count), Columns: append([]Value(nil), o.Columns...)}
	if o.Name != "" {
		record.Columns = append(record.Columns, Value{nameColumn(o.Table), quoted(o.Name)})
	}
	references := map[string][]string{}
	for _, row := range o.Rows {
		column := referringColumn(row.Table)
		references[column] = append(references[column], row.record(tables, count))
	}
	for column, list := range references {
		record.Columns = append(record.Columns, Value{column, "[" + strings.Join(list, ", ") + "]"})
	}
	tables[o.Table] = append(tables[o.Table], record)
	return record.UUID
}

// quoted returns a string in the notation of ovs-vsctl, which is JSON's.
func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return string(encoded)
}

// nameColumn returns the column by which ovs-vsctl show names the rows of a table.
func nameColumn(table string) string {
	if table == "Controller" || table == "Manager" {
		return "target"
	}
	return "name"
}

// referringColumn returns the column that refers to the rows of a table.
func referringColumn(table string) string {
	return map[string]string{"Bridge": "bridges", "Port": "ports", "Interface": "interfaces",
		"Controller": "controller", "Manager": "manager_options"}[table]
}

// parents are the tables whose rows ovs-vsctl show prints, each with the table of the row
// above it (cmd_show_tables in utilities/ovs-vsctl.c).
func parents() map[string]string {
	return map[string]string{"Bridge": OVS, "Manager": OVS, "Port": "Bridge", "Controller": "Bridge", "Interface": "Port"}
}

var (
	outlineRow    = lazyregexp.New(`^(Bridge|Port|Interface|Controller|Manager) (".*"|\S+)$`)
	outlineColumn = lazyregexp.New(`^([a-z_][a-z0-9_]*): (.+)$`)
)

// maxOutline is the number of rows that Shown reads: more than the ports of any switch.
const maxOutline = 1 << 17

// Shown reads the output of `ovs-vsctl show`, nil if the text has no bridge. It skips other
// lines, such as warnings.
func Shown(r io.Reader) (*Outline, error) {
	root := NewOutline()
	reading := shown{open: []*Outline{root}}
	_, err := lines.Read(r, func(line []byte) error { reading.add(string(line)); return nil })
	if err != nil {
		return nil, err
	}
	if len(root.Below("Bridge")) == 0 {
		return nil, nil
	}
	return root, nil
}

// ShownIn works like Shown for a file, nil also if there is none.
func ShownIn(path string) (*Outline, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Shown(file)
}

// shown is an output of `ovs-vsctl show` that is being read.
type shown struct {
	open []*Outline // from the root to the row of the last line
	rows int
}

// holders are the tables whose columns ovs-vsctl show prints (cmd_show_tables in utilities/ovs-vsctl.c), by column.
func holders() map[string][]string {
	return map[string][]string{
		"ovs_version": {OVS}, "fail_mode": {"Bridge"}, "datapath_type": {"Bridge"}, "tag": {"Port"}, "trunks": {"Port"},
		"type": {"Interface"}, "options": {"Interface"}, "error": {"Interface"}, "is_connected": {"Controller", "Manager"},
	}
}

// add adds a row or a column. The names of tables and columns tell what a line belongs to: texts from web pages have lost the indentation
// of their lines.
func (s *shown) add(line string) {
	text := strings.TrimSpace(line)
	if match := outlineRow.FindStringSubmatch(text); match != nil && s.rows < maxOutline {
		if parent := s.last(parents()[match[1]]); parent != nil {
			s.rows++
			row := &Outline{Table: match[1], Name: unquoted(match[2])}
			parent.Rows = append(parent.Rows, row)
			s.open = append(s.open, row)
		}
		return
	}
	match := outlineColumn.FindStringSubmatch(text)
	if match == nil {
		return
	}
	row := s.open[len(s.open)-1]
	if tables, known := holders()[match[1]]; known {
		row = s.last(tables...)
	}
	if row != nil && !row.Has(match[1]) && len(row.Columns) < maxColumns {
		row.Set(match[1], match[2])
	}
}

// last returns the last open row of one of the tables, and closes the rows below it; nil, and nothing is closed, if none is open.
func (s *shown) last(tables ...string) *Outline {
	for i, row := range slices.Backward(s.open) {
		if slices.Contains(tables, row.Table) {
			s.open = s.open[:i+1]
			return row
		}
	}
	return nil
}

func unquoted(text string) string {
	var name string
	if json.Unmarshal([]byte(text), &name) == nil {
		return name
	}
	return text
}
