package shrink

import (
	"context"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb/file"
)

// reduce leaves out parts of the database as long as the answer is the same: rows, then columns, then elements. It
// begins with the guess if that has the same answer, or else with the whole database.
func (s *search) reduce(ctx context.Context, whole *file.Whole) error {
	same, err := s.same(ctx, s.whole)
	if err != nil {
		return err
	}
	if !same {
		s.whole = whole
	}
	rows := s.rows()
	if err := s.without(ctx, rows, (len(rows)+1)/2); err != nil {
		return err
	}
	unlikely, likely := s.columns()
	if err := s.without(ctx, unlikely, len(unlikely)); err != nil {
		return err
	}
	if err := s.without(ctx, likely, 1); err != nil {
		return err
	}
	elements := s.elements()
	return s.without(ctx, elements, (len(elements)+1)/2)
}

// without leaves out as many parts as it can (after Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing
// Input, 2002): chunks of a size, then of half of it, and so on down to each part.
func (s *search) without(ctx context.Context, parts []file.Part, size int) error {
	for ; size > 0; size /= 2 {
		for at := 0; at < len(parts); {
			chunk := parts[at:min(at+size, len(parts))]
			smaller, err := s.try(ctx, chunk)
			if err != nil {
				return err
			}
			if !smaller {
				at += len(chunk)
				continue
			}
			rest := slices.Concat(parts[:at], parts[at+len(chunk):])
			parts = slices.DeleteFunc(rest, func(p file.Part) bool { return !s.whole.Has(p) })
		}
	}
	return nil
}

// try leaves out parts, and reports whether the answer is the same.
func (s *search) try(ctx context.Context, parts []file.Part) (bool, error) {
	removed := map[file.Part]bool{}
	for _, part := range parts {
		removed[part] = true
	}
	smaller, err := s.whole.Without(ctx, removed)
	if err != nil {
		return false, err
	}
	same, err := s.same(ctx, smaller)
	if same && err == nil {
		s.whole = smaller
	}
	return same, err
}

// rows returns the rows that can be left out: those that hold others last, because others go with them.
func (s *search) rows() []file.Part {
	list := slices.DeleteFunc(s.whole.Rows(""), isAlways)
	slices.SortStableFunc(list, func(a, b file.Part) int { return rank(a) - rank(b) })
	return list
}

// rank returns where the rows of a table are in the order in which they are tried.
func rank(row file.Part) int {
	switch row.Table {
	case "Logical_Switch", "Logical_Router":
		return 2
	case "Logical_Switch_Port", "Logical_Router_Port":
		return 1
	}
	return 0
}

// columns returns the columns that can be left out: those that hardly ever decide about a packet, and others. A name says
// what a row is, but for an ACL, which ovn-nbctl acl-add --name would let log. ovn-northd needs a number of NB_Global.
func (s *search) columns() (unlikely, likely []file.Part) {
	for _, row := range s.whole.Rows("") {
		for _, column := range s.whole.Columns(row) {
			switch {
			case row.Table == "ACL" && column.Column == "name":
				unlikely = append(unlikely, column)
			case slices.Contains([]string{"name", "match", "action", "direction", "priority", "networks", "mac", "nb_cfg", "type"}, column.Column):
			case slices.Contains([]string{"addresses", "external_ids", "vips", "ip_prefix", "nexthop", "peer"}, column.Column),
				strings.HasPrefix(row.Table, "Logical_Switch_Port") && column.Column == "options",
				len(s.whole.Row(row).References()[column.Column]) > 0:
				likely = append(likely, column)
			default:
				unlikely = append(unlikely, column)
			}
		}
	}
	return unlikely, likely
}

// elements returns the elements that can be left out, of columns that have several.
func (s *search) elements() (list []file.Part) {
	for _, row := range s.whole.Rows("") {
		for _, column := range s.whole.Columns(row) {
			list = append(list, s.whole.Elements(column)...)
		}
	}
	return list
}
