package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/restore"
)

// escape makes text from outside safe for a terminal.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\x%02x", r)
		}
	}
	return b.String()
}

func headline(w io.Writer, line string) {
	fmt.Fprintf(w, "%s\n%s\n", line, strings.Repeat("*", len(line)))
}

func printJSON(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", raw)
	return err
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
func printCounts(w io.Writer, r *restore.Report) {
	t := newTable(w, "bridge", "what", "collected", "restored", "mended", "placeheld", "set aside", "different", "from")
	rows := 0
	for _, b := range r.Bridges {
		for _, dump := range []workdir.Dump{workdir.TLV, workdir.Meters, workdir.Groups, workdir.Flows} {
			if c := b.Counts[dump]; c != nil {
				t.AppendRow(table.Row{escape(b.Name), dump, c.Collected, c.Restored, c.Mended, c.Placeheld, c.SetAside, c.Different, b.OpenFlow[dump]})
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
func printSteps(w io.Writer, r *restore.Report) {
	for _, s := range r.Steps {
		if s.Status == restore.Restored || s.Status == restore.Idle {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", s.Status, s.Step)
		for _, d := range s.Details {
			fmt.Fprintf(w, "  - %s\n", escape(d))
		}
	}
}

func printPorts(w io.Writer, r *restore.Report) {
	if len(r.Ports) == 0 {
		return
	}
	t := newTable(w, "bridge", "port", "ofport", "live datapath port", "replica datapath port")
	for _, p := range r.Ports {
		t.AppendRow(table.Row{escape(p.Bridge), escape(p.Port), p.OfPort, p.Live, p.Replica})
	}
	t.Render()
	fmt.Fprintln(w)
}

// progress writes to stderr: on a terminal one line that redraws, elsewhere nothing but
// a line for what takes longer than a second.
type progress struct {
	o     *options
	last  time.Time
	drawn bool
}

func (o *options) progress() *progress { return &progress{o: o, last: time.Now()} }

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
	line := escape(fmt.Sprintf(format, args...))
	if p.o.Terminal {
		fmt.Fprintf(p.o.Err, "\r\033[K%s", line)
		p.drawn = true
	} else {
		fmt.Fprintln(p.o.Err, line)
	}
}

func (p *progress) bytes(read, total int64) {
	const mega = 1 << 20
	if total > 0 {
		p.say("reading: %d of %d MiB (%d %%)", read/mega, total/mega, read*100/total)
		return
	}
	p.say("reading: %d MiB", read/mega)
}

func (p *progress) end() {
	if p.drawn {
		fmt.Fprint(p.o.Err, "\r\033[K")
	}
}
