package ovsdb

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// headings matches the first line of a table in the formats "table" and "csv" (ovs-vsctl(8), --format): names of columns, of which
// the first is _uuid.
var headings = lazyregexp.New(`^_uuid(?:(?: +|,)[a-z_][a-zA-Z0-9_]*)*$`)

// AsListing returns a printed table in the format "list", whichever of the formats list, table, csv and json of ovs-vsctl and its like
// it is in; "" for one without rows. ok is false for another text, and for rows without UUIDs.
func AsListing(text string) (listing string, ok bool) {
	text = strings.TrimLeft(text, "\n")
	first, rest, _ := strings.Cut(text, "\n")
	var names []string
	var rows [][]string
	switch {
	case columnLine.MatchString(first) && strings.HasPrefix(first, "_uuid "):
		return asStrings(text), true
	case strings.HasPrefix(first, `{"`) && strings.Contains(text, `"headings"`):
		names, rows, ok = readJSON(text)
	case !headings.MatchString(first):
		return "", false
	case strings.Contains(first, ","):
		names, rows, ok = readCSV(text)
	default:
		names, rows, ok = readColumns(first, rest)
	}
	if !ok || len(names) == 0 || names[0] != "_uuid" || len(names) > maxColumns {
		return "", false
	}
	var b strings.Builder
	for _, row := range rows {
		for i, name := range names {
			fmt.Fprintf(&b, "%-20s: %s\n", name, row[i])
		}
		b.WriteByte('\n')
	}
	return b.String(), true
}

// asStrings returns a listing of which no cell is in the notation of RFC 7047 (--data=json).
func asStrings(text string) string {
	if !strings.Contains(text, `: ["`) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		if cell, ok := asText(json.RawMessage(value)); found && strings.HasPrefix(value, `["`) && ok {
			line = name + ": " + cell + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// wordCharacters are the characters of numbers, UUIDs and strings without quotes.
const wordCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.:"

// References returns the UUIDs of rows in a value as ovs-vsctl prints it. Those in strings are in quotes.
func References(text string) (list []string) {
	for text != "" {
		at := strings.IndexAny(text, `"`+wordCharacters)
		if at < 0 {
			return list
		}
		text = text[at:]
		if text[0] == '"' {
			quoted, err := strconv.QuotedPrefix(text)
			if err != nil {
				return list
			}
			text = text[len(quoted):]
			continue
		}
		word := text[:len(text)-len(strings.TrimLeft(text, wordCharacters))]
		if IsUUID(word) {
			list = append(list, word)
		}
		text = text[len(word):]
	}
	return list
}

// readCSV reads a table in the format csv. Cells have no line breaks in the notation of ovs-vsctl.
func readCSV(text string) (names []string, rows [][]string, ok bool) {
	reader := csv.NewReader(strings.NewReader(text))
	names, err := reader.Read()
	for err == nil {
		var row []string
		if row, err = reader.Read(); err == nil && IsUUID(row[0]) {
			rows = append(rows, row)
		}
	}
	return names, rows, err == io.EOF && !hasBreak(rows)
}

func hasBreak(rows [][]string) bool {
	for _, row := range rows {
		for _, cell := range row {
			if strings.ContainsAny(cell, "\r\n") {
				return true
			}
		}
	}
	return false
}

// readColumns reads a table in the format table, whose columns begin where the lines below their names do.
func readColumns(first, rest string) (names []string, rows [][]string, ok bool) {
	rule, rest, _ := strings.Cut(rest, "\n")
	names = strings.Fields(first)
	if strings.Trim(rule, "- ") != "" || len(strings.Fields(rule)) != len(names) {
		return nil, nil, false
	}
	var starts []int
	for i := range rule {
		if rule[i] == '-' && (i == 0 || rule[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\r\n") // lib/table.c pads to bytes, not to characters
		if len(line) < 36 || !IsUUID(line[:36]) {
			continue
		}
		row := make([]string, len(names))
		for i, start := range starts {
			end := len(line)
			if i+1 < len(starts) {
				end = min(starts[i+1]-1, len(line))
			}
			if start < end {
				row[i] = strings.TrimRight(line[start:end], " ")
			}
		}
		rows = append(rows, row)
	}
	return names, rows, true
}

// readJSON reads a table in the format json, whose cells are in the notation of RFC 7047.
func readJSON(text string) (names []string, rows [][]string, ok bool) {
	var table struct {
		Headings []string
		Data     [][]json.RawMessage
	}
	if json.NewDecoder(strings.NewReader(text)).Decode(&table) != nil {
		return nil, nil, false
	}
	for _, cells := range table.Data {
		if len(cells) != len(table.Headings) {
			return nil, nil, false
		}
		row := make([]string, len(cells))
		for i, cell := range cells {
			if row[i], ok = asText(cell); !ok {
				return nil, nil, false
			}
		}
		rows = append(rows, row)
	}
	return table.Headings, rows, true
}

// asText returns a value in the notation of RFC 7047 as ovs-vsctl prints it.
func asText(value json.RawMessage) (text string, ok bool) {
	var pair [2]json.RawMessage
	var kind string
	if json.Unmarshal(value, &pair) != nil || json.Unmarshal(pair[0], &kind) != nil {
		return atomText(value)
	}
	var members []json.RawMessage
	switch kind {
	case "uuid":
		return atomText(value)
	case "set", "map":
		if json.Unmarshal(pair[1], &members) != nil {
			return "", false
		}
	default:
		return "", false
	}
	var list []string
	for _, member := range members {
		element, ok := "", false
		if kind == "set" {
			element, ok = atomText(member)
		} else {
			element, ok = pairText(member)
		}
		if !ok {
			return "", false
		}
		list = append(list, element)
	}
	if kind == "map" {
		return "{" + strings.Join(list, ", ") + "}", true
	}
	return "[" + strings.Join(list, ", ") + "]", true
}

func pairText(value json.RawMessage) (text string, ok bool) {
	var pair [2]json.RawMessage
	if json.Unmarshal(value, &pair) != nil {
		return "", false
	}
	key, keyOK := atomText(pair[0])
	element, ok := atomText(pair[1])
	return key + "=" + element, ok && keyOK
}

// atomText returns an atom as ovs-vsctl prints it, strings always in quotes.
func atomText(value json.RawMessage) (text string, ok bool) {
	value = bytes.TrimSpace(value)
	var pair [2]string
	if json.Unmarshal(value, &pair) == nil {
		return pair[1], pair[0] == "uuid" && IsUUID(pair[1])
	}
	return string(value), len(value) > 0 && value[0] != '[' && value[0] != '{'
}
