package reach

import "ovs-offline/trace/answer"

// Document is a matrix with its answers: what "reach -o json" prints.
type Document struct {
	*Matrix
	Cells    []Cell                 `json:"cells"`
	Verdicts map[answer.Verdict]int `json:"verdicts"` // the number of cells by verdict
	// Answered is the number of questions that were asked, less than Questions after an
	// interruption.
	Answered int `json:"answered"`
	// Undetermined is the number of cells in which an answer is undetermined.
	Undetermined int `json:"undetermined"`
}

// Add adds a cell.
func (d *Document) Add(c Cell) {
	if d.Verdicts == nil {
		d.Verdicts = map[answer.Verdict]int{}
	}
	d.Cells = append(d.Cells, c)
	d.Answered += len(c.Asked)
	d.Verdicts[c.Verdict]++
	if c.Undetermined() {
		d.Undetermined++
	}
}
