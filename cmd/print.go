package cmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/report"
)

func headline(w io.Writer, line string) {
	fmt.Fprintf(w, "%s\n%s\n", line, strings.Repeat("*", len(line)))
}

func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatUpper
	t.AppendHeader(header)
	return t
}

// printCounts writes what became of each dump.
func printCounts(w io.Writer, r *report.Report) {
	t := newTable(w, "bridge", "what", "collected", "restored", "mended", "placeheld", "set aside", "different", "from")
	rows := 0
	for _, b := range r.Bridges {
		for _, command := range recording.Dumps() {
			dump := command.Dump
			if c := b.Counts[dump]; c != nil {
				t.AppendRow(table.Row{terminal.Escape(b.Name), dump, c.Collected, c.Restored, c.Rewritten, c.Placeholders, c.Rejected, c.Different, b.OpenFlow[dump].String()})
				rows++
			}
		}
	}
	if rows > 0 {
		t.Render()
		fmt.Fprintln(w)
	}
}

// printSteps writes the steps that could not simply restore what was there.
func printSteps(w io.Writer, r *report.Report) {
	for _, s := range r.Steps {
		if s.Status == report.Restored || s.Status == report.Idle {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", s.Status, s.Step)
		for _, d := range details(s) {
			fmt.Fprintf(w, "  - %s\n", terminal.EscapeLines(d))
		}
	}
}

// details are the first of what a step says, and how many more there are.
func details(s report.Result) []string {
	const most = 100
	named := min(most, len(s.Details))
	list := slices.Clone(s.Details[:named])
	if more := len(s.Details) - named + s.More; more > 0 {
		list = append(list, fmt.Sprintf("and %d more; ovs-offline report -o json has the first %d", more, len(s.Details)))
	}
	return list
}

func printPorts(w io.Writer, r *report.Report) {
	if len(r.Ports) == 0 {
		return
	}
	t := newTable(w, "bridge", "port", "ofport", "live datapath port", "replica datapath port")
	for _, p := range r.Ports {
		t.AppendRow(table.Row{terminal.Escape(p.Bridge), terminal.Escape(p.Port), p.OfPort, p.Live, p.Replica})
	}
	t.Render()
	fmt.Fprintln(w)
}

// progress writes to stderr: on a terminal one line that redraws, elsewhere nothing but
// a line for what takes longer than a second.
type progress struct {
	o     *options
	began time.Time
	last  time.Time
	read  int64 // of the source that is being read, when it was last told
	drawn bool
}

func (o *options) progress() *progress { return &progress{o: o, began: time.Now(), last: time.Now()} }

func (p *progress) say(format string, args ...any) {
	now := time.Now()
	interval := time.Second
	if p.o.Terminal {
		interval = 100 * time.Millisecond
	}
	if now.Sub(p.last) < interval {
		return
	}
	p.last = now
	line := terminal.Escape(fmt.Sprintf(format, args...))
	if p.o.Terminal {
		fmt.Fprintf(p.o.Err, "\r\033[K%s", line)
		p.drawn = true
	} else {
		fmt.Fprintln(p.o.Err, line)
	}
}

func (p *progress) bytes(read, total int64) {
	const mega = 1 << 20
	if read < p.read { // the next source
		p.began = time.Now()
	}
	p.read = read
	spent := time.Since(p.began)
	rate := float64(read) / mega / max(spent.Seconds(), 1e-3)
	if total > 0 && read > 0 && read <= total {
		left := time.Duration(float64(spent) / float64(read) * float64(total-read))
		p.say("reading: %d of %d MiB (%d %%), %.0f a second, %v left", read/mega, total/mega, read*100/total, rate, left.Round(time.Second))
		return
	}
	p.say("reading: %d MiB, %.0f a second", read/mega, rate)
}

// end clears the line that was drawn, before anything else is printed.
func (p *progress) end() {
	if p.drawn {
		fmt.Fprint(p.o.Err, "\r\033[K")
		p.drawn = false
	}
}
