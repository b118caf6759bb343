package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/restore"
)

// escape makes text from outside safe for a terminal, on one line.
func escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\x%02x", r)
		}
	}
	return b.String()
}

// escapeLines is escape for text of several lines. All but the first are
// indented: none of them can pass for a message of ours.
func escapeLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i := range lines {
		lines[i] = escape(lines[i])
	}
	return strings.Join(lines, "\n    ")
}

func headline(w io.Writer, line string) {
	fmt.Fprintf(w, "%s\n%s\n", line, strings.Repeat("*", len(line)))
}

// printJSON writes JSON that is safe for a terminal too: encoding/json leaves
// DEL, C1 controls and characters that turn the direction of text as they are.
func printJSON(w io.Writer, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(raw) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	_, err = fmt.Fprintln(w, b.String())
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
				t.AppendRow(table.Row{escape(b.Name), dump, c.Collected, c.Restored, c.Mended, c.Placeheld, c.SetAside, c.Different, escape(b.OpenFlow[dump])})
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
			fmt.Fprintf(w, "  - %s\n", escapeLines(d))
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
