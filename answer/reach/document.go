package reach

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/answer/trace/answer"
)

// Document is a matrix with its answers: what "reach -o json" prints.
type Document struct {
	*Matrix
	Cells []Cell `json:"cells"`
	// Shown is the number of cells by what is shown of them.
	Shown map[Shown]int `json:"shown"`
	// Answered is the number of questions that were asked, less than Questions after an
	// interruption.
	Answered int `json:"answered"`
	// IPv4 and IPv6 are the numbers of questions that were asked over each.
	IPv4 int `json:"ipv4"`
	IPv6 int `json:"ipv6"`
	// Undetermined is the number of cells in which an answer is undetermined.
	Undetermined int `json:"undetermined"`
	// Causes counts the answers that keep a cell from being plain, by their text.
	Causes map[Shown]map[string]int `json:"causes,omitempty"`
}

// Cause is the text that some answers of cells share.
type Cause struct {
	Text  string
	Count int
}

// CausesOf returns why cells are shown as they are, the most frequent first.
func (d *Document) CausesOf(shown Shown) (list []Cause) {
	for _, text := range slices.Sorted(maps.Keys(d.Causes[shown])) {
		list = append(list, Cause{text, d.Causes[shown][text]})
	}
	slices.SortStableFunc(list, func(a, b Cause) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// count counts the causes of a cell that is not plain.
func (d *Document) count(cell Cell) {
	shown := cell.Shown()
	if shown != ReplyUnknown && shown != Shown(Mixed) && shown != Shown(answer.Undetermined) && shown != Shown(answer.Ambiguous) {
		return
	}
	if d.Causes == nil {
		d.Causes = map[Shown]map[string]int{}
	}
	if d.Causes[shown] == nil {
		d.Causes[shown] = map[string]int{}
	}
	for _, answer := range cell.Asked {
		if answer.Reason != "" {
			d.Causes[shown][answer.Reason]++
		}
	}
}

// Count counts a cell.
func (d *Document) Count(cell Cell) {
	if d.Shown == nil {
		d.Shown = map[Shown]int{}
	}
	d.Answered += len(cell.Asked)
	for _, answer := range cell.Asked {
		switch answer.Family {
		case 4:
			d.IPv4++
		case 6:
			d.IPv6++
		}
	}
	d.Shown[cell.Shown()]++
	d.count(cell)
	if cell.Undetermined() {
		d.Undetermined++
	}
}

// At returns the cells of each pair of groups, by their indexes in From and To.
func (d *Document) At() map[[2]int][]Cell {
	cells := map[[2]int][]Cell{}
	for _, cell := range d.Cells {
		at := [2]int{cell.Row, cell.Column}
		cells[at] = append(cells[at], cell)
	}
	return cells
}

// Unasked reports whether nothing is asked about two groups: both are the same endpoint, or they are in
// different networks, one of which is secondary at least.
func (d *Document) Unasked(row, column int) bool {
	return d.isApart(row, column) || d.From[row].Name == d.To[column].Name && len(d.From[row].Members) == 1
}

// Wanted returns the number of ports that a destination is asked with.
func (d *Document) Wanted(column int) int { return len(d.To[column].portsOf(d.Ports)) }

// Over returns the IP versions over which the questions were asked, "" if none was.
func (d *Document) Over() string {
	switch {
	case d.IPv6 == 0 && d.IPv4 == 0:
		return ""
	case d.IPv6 == 0:
		return "Asked over IPv4."
	case d.IPv4 == 0:
		return "Asked over IPv6."
	}
	return fmt.Sprintf("Asked over IPv4, and %d questions over IPv6, whose ends have no IPv4 addresses in common.", d.IPv6)
}
