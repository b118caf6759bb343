package reach

import "fmt"

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
}

// Count counts a cell.
func (d *Document) Count(c Cell) {
	if d.Shown == nil {
		d.Shown = map[Shown]int{}
	}
	d.Answered += len(c.Asked)
	for _, a := range c.Asked {
		switch a.Family {
		case 4:
			d.IPv4++
		case 6:
			d.IPv6++
		}
	}
	d.Shown[c.Shown()]++
	if c.Undetermined() {
		d.Undetermined++
	}
}

// At returns the cells of each pair of groups, by their indexes in From and To.
func (d *Document) At() map[[2]int][]Cell {
	cells := map[[2]int][]Cell{}
	for _, c := range d.Cells {
		at := [2]int{c.Row, c.Column}
		cells[at] = append(cells[at], c)
	}
	return cells
}

// Alone reports whether two groups are one endpoint, which is asked nothing.
func (d *Document) Alone(row, column int) bool {
	return d.From[row].Name == d.To[column].Name && len(d.From[row].Members) == 1
}

// Wanted returns the number of ports that a destination is asked with.
func (d *Document) Wanted(column int) int { return len(d.To[column].portsOf(d.Ports)) }

// Over says over which IP versions the questions were asked, "" if none was.
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
