package ovsdb

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PartForm is the form in which some columns or some rows of a table were printed (ovs-vsctl(8), "Table Formatting Options").
type PartForm struct {
	Columns    []string // that were asked for, as a person spelled them; nil for all
	Format     string   // "list", "table", "csv", "json"; "" for what the text is in
	Bare       bool     // values without quotes and brackets
	NoHeadings bool
}

// columnOrder is a part of a table whose rows have their values in the order of the columns.
type columnOrder struct {
	names []string
	rows  [][]string
	cut   bool // the last row lacks columns
}

// ReadPart reads the rows of a part of a table. columns are those that each row has; a row that lacks one has a value that can't be read.
// identified reports that _uuid is among them; without it, the rows get UUIDs of their own, which nothing refers to. cut reports that
// the text ends within a row, which is left out. ok is false for a text in another form.
func ReadPart(text, table string, form PartForm) (rows []Record, columns []string, identified, cut, ok bool) {
	text = strings.Trim(text, "\n")
	part, ok := readOrder(text, form)
	if !ok || len(part.names) == 0 || len(part.names) > maxColumns {
		return nil, nil, false, false, false
	}
	identified = part.names[0] == "_uuid" || slices.Contains(part.names, "_uuid")
	for n, values := range part.rows {
		record := Record{UUID: UUIDOf(fmt.Sprintf("%s\x00%d\x00%s", table, n, strings.Join(values, "\x00")))}
		seen := map[string]string{}
		for i, name := range part.names {
			if i >= len(values) {
				break
			}
			text := values[i]
			if form.Bare {
				if text, ok = bareText(table, name, text); !ok && name == "_uuid" {
					return nil, nil, false, false, false
				} else if !ok {
					continue // of which type the value is can't be told
				}
			}
			if earlier, twice := seen[name]; twice {
				if earlier != text {
					record.Columns = slices.DeleteFunc(record.Columns, func(v Value) bool { return v.Column == name })
				}
				continue
			}
			seen[name] = text
			if name == "_uuid" {
				record.UUID = text
				continue
			}
			record.Columns = append(record.Columns, Value{name, text})
		}
		if !IsUUID(record.UUID) {
			return nil, nil, false, false, false
		}
		rows = append(rows, record)
	}
	columns = slices.Clone(part.names)
	slices.Sort(columns)
	return rows, slices.Compact(columns), identified, part.cut, len(rows) > 0 || !part.cut
}

// readOrder reads a text in any of the forms.
func readOrder(text string, form PartForm) (part columnOrder, ok bool) {
	first, rest, _ := strings.Cut(text, "\n")
	switch {
	case form.NoHeadings:
		return readValues(text, form)
	case strings.HasPrefix(first, `{"`) && strings.Contains(text, `"headings"`):
		part.names, part.rows, ok = readJSON(text)
		return part, ok
	case columnLine.MatchString(first) && (form.Format == "" || form.Format == "list"):
		return readList(text, form.Columns, form.Bare), true
	case strings.HasPrefix(strings.TrimLeft(rest, " "), "---"):
		return readRuled(first, rest)
	case form.Format == "csv":
		return readComma(text, nil)
	}
	return part, false
}

// readList reads the format list. Each row has the same columns in the same order, as the tool writes them; other lines are skipped.
func readList(text string, asked []string, bare bool) (part columnOrder) {
	var lines []Value
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if bare && strings.HasSuffix(line, ":") { // programs take blanks at the ends of lines away
			line += " "
		}
		match := columnLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		value := match[2]
		if cell, ok := asText(json.RawMessage(value)); ok && strings.HasPrefix(value, `["`) {
			value = cell
		}
		lines = append(lines, Value{match[1], value})
	}
	length := len(asked)
	if length == 0 {
		length = 1
		for length < len(lines) && lines[length].Column != lines[0].Column {
			length++
		}
	}
	for _, line := range lines[:min(length, len(lines))] {
		part.names = append(part.names, line.Column)
	}
	var row []string
	for _, line := range lines {
		if line.Column != part.names[len(row)] { // a row without one of its lines, or other text
			row, part.cut = nil, true
			if line.Column != part.names[0] {
				continue
			}
		}
		if row = append(row, line.Text); len(row) == len(part.names) {
			part.rows, row = append(part.rows, row), nil
		}
	}
	part.cut = part.cut || len(row) > 0
	return part
}

// readRuled reads the format table, whose first column may be any.
func readRuled(first, rest string) (part columnOrder, ok bool) {
	rule, rest, _ := strings.Cut(rest, "\n")
	part.names = strings.Fields(first)
	if strings.Trim(rule, "- ") != "" || len(strings.Fields(rule)) != len(part.names) {
		return part, false
	}
	for line := range strings.Lines(rest) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" {
			break
		}
		row, fits := ruledRow(line, rule)
		if !fits {
			part.cut = true
			break
		}
		part.rows = append(part.rows, row)
	}
	return part, true
}

// ruledRow separates the cells of a line, which begin where the lines of the rule do (lib/table.c pads to bytes, not to characters). fits
// is false for a line with something between the cells.
func ruledRow(line, rule string) (row []string, fits bool) {
	for start := 0; start < len(rule); {
		width := strings.IndexByte(rule[start:], ' ')
		if width < 0 {
			width = len(line)
		}
		cell := ""
		if start < len(line) {
			end := min(start+width, len(line))
			cell = strings.TrimRight(line[start:end], " ")
			if end < len(line) && line[end] != ' ' {
				return nil, false
			}
		}
		row = append(row, cell)
		start += width + 1
	}
	return row, true
}

// readComma reads the format csv. Without names, the first line has them.
func readComma(text string, names []string) (part columnOrder, ok bool) {
	reader := csv.NewReader(bufio.NewReader(strings.NewReader(text)))
	reader.FieldsPerRecord = max(len(names), 0)
	part.names = names
	for {
		row, err := reader.Read()
		switch {
		case err != nil:
			part.cut = err.Error() != "EOF"
			return part, len(part.names) > 0 && !hasBreak(part.rows)
		case part.names == nil:
			part.names = row
			for _, name := range row {
				if !columnName.MatchString(name) {
					return part, false
				}
			}
		default:
			part.rows = append(part.rows, row)
		}
	}
}

// readValues reads values without the names of their columns, which the command line has.
func readValues(text string, form PartForm) (part columnOrder, ok bool) {
	for _, name := range form.Columns {
		if !columnName.MatchString(name) {
			return part, false
		}
	}
	part.names = form.Columns
	switch form.Format {
	case "csv":
		return readComma(text, form.Columns)
	case "", "list":
	default: // where cells begin is not known
		return part, false
	}
	lines := strings.Split(text, "\n")
	for len(part.names) > 0 && len(lines) > 0 {
		for len(lines) < len(part.names) && len(lines) > 0 { // the ends of texts are trimmed
			lines = append(lines, "")
		}
		part.rows = append(part.rows, lines[:len(part.names)])
		if lines = lines[len(part.names):]; len(lines) > 0 && lines[0] != "" {
			return part, false
		}
		lines = lines[min(1, len(lines)):]
	}
	return part, len(part.names) > 0
}

// valueKind is what a column holds.
type valueKind int

const (
	aString valueKind = iota
	aNumber           // or a boolean
	aReference
)

// valueKinds returns what the columns hold that people ask for and of which a value without quotes and brackets tells all: one string,
// one number, or references (the schemas of Open vSwitch 3.1 and OVN 23.03). But for action, a name has the same kind in all of their tables.
func valueKinds() map[string]valueKind {
	kinds := map[string]valueKind{}
	for kind, names := range map[valueKind]string{
		aString: "name match action direction severity type hostname logical_port external_ip logical_ip external_mac ip_prefix nexthop policy output_port " +
			"route_table protocol peer parent_name error datapath_type fail_mode bridge_name eth_ip mac_in_use admin_state link_state",
		aNumber: "priority label log tunnel_key tag ofport ofport_request enabled up nb_cfg is_connected tier",
		aReference: "_uuid acls ports load_balancer load_balancer_group qos_rules nat static_routes policies interfaces bridges datapath chassis encaps gateway_chassis " +
			"ha_chassis_group dhcpv4_options dhcpv6_options health_check",
	} {
		for name := range strings.FieldsSeq(names) {
			kinds[name] = kind
		}
	}
	return kinds
}

// bareText returns a value that was printed without quotes and brackets as ovs-vsctl prints it with them. ok is false if they can't be told.
func bareText(table, column, text string) (quoted string, ok bool) {
	kind, known := valueKinds()[column]
	switch {
	case !known, column == "action" && strings.EqualFold(table, "QoS"): // a map
		return "", false
	case text == "":
		return "[]", column != "_uuid"
	case kind == aString:
		return strconv.Quote(text), true
	case kind == aNumber:
		return text, json.Valid([]byte(text))
	}
	words := strings.Fields(text)
	for _, word := range words {
		if !IsUUID(word) {
			return "", false
		}
	}
	if len(words) == 1 {
		return words[0], true
	}
	return "[" + strings.Join(words, ", ") + "]", true
}
