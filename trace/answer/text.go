package answer

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"ovs-offline/internal/terminal"
)

// Options select what Write prints.
type Options struct {
	Verbose bool // every stage of every hop
	Raw     bool // what ofproto/trace printed
	Width   int  // of a line, in columns of the terminal; 0 for any
}

// Write prints the answer for people: the verdict and its reason first.
func (a *Answer) Write(w io.Writer, o Options) error {
	p := printer{bufio.NewWriter(w), o.Width}
	p.wrap(string(a.Verdict)+"  ", a.Headline())
	for _, f := range a.Facts() {
		for i, line := range f.Lines {
			label := f.Label
			if i > 0 {
				label = ""
			}
			p.wrap(fmt.Sprintf("  %-9s", label), line)
		}
	}
	p.long(a, o, "")
	if a.Return != nil {
		p.long(a.Return, o, "r")
	}
	return p.Flush()
}

// printer writes lines that fit the terminal and that can't control it.
type printer struct {
	*bufio.Writer
	width int
}

// minText is the least width of wrapped text: narrower terminals wrap it themselves.
const minText = 24

// wrap prints a text behind a prefix, below which it continues.
func (p printer) wrap(prefix, line string) {
	line = strings.ReplaceAll(terminal.Escape(line), "\t", " ")
	prefix = terminal.Escape(prefix)
	parts := []string{line}
	width := runewidth.StringWidth(prefix)
	if p.width > 0 && width+minText > p.width { // a long name
		words := strings.TrimLeft(prefix, " ")
		prefix, line = prefix[:len(prefix)-len(words)], words+line
		width = len(prefix)
	}
	if p.width > 0 {
		parts = Wrap(line, max(minText, p.width-width))
	}
	for _, part := range parts {
		fmt.Fprintln(p, strings.TrimRight(prefix+part, " "))
		prefix = strings.Repeat(" ", width)
	}
}

// long prints the stages of all hops, or their raw text, or both, and the packets that
// come out. number is put before the number of a hop.
func (p printer) long(a *Answer, o Options, number string) {
	if !o.Verbose && !o.Raw {
		return
	}
	for i := range a.Path {
		h := &a.Path[i]
		fmt.Fprintln(p)
		p.wrap(fmt.Sprintf("%s%d  ", number, i+1), a.title(i, number))
		if o.Verbose {
			p.stages(a, h)
		}
		if o.Raw && h.Raw != "" {
			p.wrap("     ", "ofproto/trace printed:")
			for line := range strings.Lines(h.Raw) {
				fmt.Fprintln(p, strings.TrimRight("     "+terminal.Escape(strings.TrimRight(line, "\r\n")), " "))
			}
		}
	}
	if o.Verbose {
		p.packets(a)
	}
}

// packets prints the packets that come out, and those that OVN sends itself.
func (p printer) packets(a *Answer) {
	if len(a.Outcomes)+len(a.Generated) > 0 {
		fmt.Fprintln(p)
	}
	for _, o := range a.Outcomes {
		p.wrap("  ", joined("comes out at "+o.String(), o.Choice))
		p.field("packet", o.Packet)
	}
	for _, g := range a.Generated {
		p.wrap("  ", fmt.Sprintf("OVN sends at %s: %s", g.Place, g.Why))
		p.field("packet", g.Packet)
	}
}

// title returns where a packet enters, and what brought it there.
func (a *Answer) title(hop int, number string) string {
	h := &a.Path[hop]
	title := h.Place.String()
	if h.From >= 0 {
		title += fmt.Sprintf(", from %s%d", number, h.From+1)
	}
	if h.Via != "" {
		title += " by " + h.Via
	}
	return joined(title, a.NewChoice(hop))
}

// stages prints what a packet is, the stages that it passes, and how it ends.
func (p printer) stages(a *Answer, h *Hop) {
	p.field("packet", h.Packet)
	p.field("connection", h.Connection)
	names := 0
	for _, s := range h.Stages {
		names = max(names, runewidth.StringWidth(s.Name))
	}
	for _, g := range h.Groups() {
		p.wrap("     ", g.Name)
		for _, s := range g.Stages {
			p.wrap(fmt.Sprintf("     %4d  %-*s  ", s.Table, min(names, 32), s.Name), s.Reads())
		}
	}
	p.field("sends", h.Datapath)
	for _, e := range h.Ends {
		p.field("ends", a.EndText(e))
	}
}

func (p printer) field(label, value string) {
	if value != "" {
		p.wrap(fmt.Sprintf("     %-12s", label), value)
	}
}

// IsRule reports whether a stage carries out what a user configured and decides about the
// packet: those are the rules of an answer. A QoS rule only marks or limits it.
func (s *Stage) IsRule() bool {
	rows := []string{"ACL", "NAT", "Load_Balancer", "Logical_Router_Static_Route", "Logical_Router_Policy"}
	return s.Rule != "" && slices.Contains(rows, s.Row)
}

// Reads returns what a stage is about in the clearest words that it has: those of a user,
// else its logical match, else those of OVN and OpenFlow.
func (s *Stage) Reads() string {
	switch {
	case s.Rule != "" && s.Row != "":
		return s.Rule
	case s.Match == "1":
		return "any packet"
	case s.Match != "":
		return s.Match
	case s.Rule != "" && s.Rule != s.Name:
		return s.Rule
	case s.Flow != "":
		return s.Flow
	}
	return "no flow matches"
}
