package replica

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/report"
)

// Readiness returns whether the replica is ready, for people.
func (s Status) Readiness() string {
	if s.Ready {
		return "ready"
	}
	return "NOT READY"
}

// Print prints the status: a line for each daemon, and for each bridge with flows.
func (s Status) Print(p *show.Page) {
	p.Printf("Working directory %s, runtime %s: %s\n\n", terminal.Escape(s.Workdir), s.Runtime, s.Readiness())
	t := p.Table("daemon", "state", "since", "pid", "container", "version", "last error")
	for _, d := range s.Daemons {
		state, pid := "answers", ""
		switch {
		case !d.Running:
			state = "down"
		case !d.Answers:
			state = "silent"
		}
		if d.PID != 0 {
			pid = strconv.Itoa(d.PID)
		}
		t.AppendRow([]any{terminal.Escape(d.Role), state, show.Time(d.Since), pid, d.Container, terminal.Escape(d.Version), terminal.Escape(cmp.Or(d.Problem, d.LastError))})
	}
	t.Render()
	if len(s.Flows) == 0 {
		return
	}
	p.Printf("\n")
	t = p.Table("bridge", "flows loaded", "flows now", "")
	for _, f := range s.Flows {
		t.AppendRow([]any{terminal.Escape(f.Bridge), f.Loaded, f.Now, terminal.Escape(f.Problem)})
	}
	t.Render()
}

// PrintDifferences prints a line for each difference.
func PrintDifferences(p *show.Page, found []Difference) {
	const maxWidth = 60 // of a value; -o json has all of it
	if len(found) == 0 {
		p.Printf("No differences.\n")
		return
	}
	short := func(s string) string { return runewidth.Truncate(terminal.Escape(s), maxWidth, "...") }
	t := p.Table("table", "record", "column", "recorded", "running")
	for _, d := range found {
		t.AppendRow([]any{d.Table, short(d.Record), d.Column, short(d.Recorded), short(d.Running)})
	}
	t.Render()
}

// PrintList prints a line for each replica.
func PrintList(p *show.Page, list []Listed) {
	if len(list) == 0 {
		p.Printf("No replica is running.\n")
		return
	}
	header := []any{"workdir", "node", "runtime", "daemons", "started", "recorded", "running", "from"}
	t := p.Table(header...)
	var rows [][]any
	for _, l := range list {
		from := ""
		if len(l.Sources) > 0 {
			from = filepath.Base(l.Sources[0])
		}
		rows = append(rows, []any{terminal.Escape(l.Workdir), terminal.Escape(strings.Join(l.Hosts, ", ")), l.Runtime, l.Daemons, cmp.Or(show.Time(l.Started), "unknown"), show.Versions(l.Recorded), show.Versions(l.Running), terminal.Escape(from)})
		t.AppendRow(rows[len(rows)-1])
	}
	if t.Fits() {
		t.Render()
		return
	}
	for _, row := range rows {
		p.Printf("%s\n%s\n", row[0], inLine(header[1:], row[1:], p.Width))
	}
}

// inLine returns as many of the cells of a row as fit a line, from the first, each behind its title.
func inLine(header, row []any, width int) string {
	line := ""
	for i, cell := range row {
		next := line + fmt.Sprintf("  %s %v", header[i], cell)
		if i > 0 && runewidth.StringWidth(next) > width {
			break
		}
		line = next
	}
	return line
}

// Shown is what show prints of a replica.
type Shown struct {
	Ports    []report.PortRow `json:"ports"`
	Recorded versions.Pair    `json:"recorded"`
	Running  versions.Pair    `json:"running"`
	Sockets  Sockets          `json:"sockets"`
}

// Print prints the sockets, with the command lines that use them, and the ports.
func (s Shown) Print(p *show.Page) {
	s.Sockets.Print(p.Out)
	p.Printf("Recorded: %s; running: %s\n", show.Versions(s.Recorded), show.Versions(s.Running))
	s.Sockets.PrintNotes(p)
	p.Printf("\n")
	printPorts(p, s.Ports)
}

func printPorts(p *show.Page, ports []report.PortRow) {
	if len(ports) == 0 {
		return
	}
	t := p.Table("bridge", "port", "ofport", "live datapath port", "replica datapath port")
	for _, port := range ports {
		t.AppendRow([]any{terminal.Escape(port.Bridge), terminal.Escape(port.Port), port.OfPort, terminal.Escape(port.Live), terminal.Escape(port.Replica)})
	}
	t.Render()
	p.Printf("\n")
}
