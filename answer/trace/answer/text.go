package answer

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/snapshot/rules"
)

// Options select what Write prints.
type Options struct {
	Verbose bool      // every stage of every hop
	Raw     bool      // what ofproto/trace printed
	Width   int       // of a line, in columns of the terminal; 0 for any
	Call    show.Call // makes the command lines of the program; nil prints none
}

// Write prints the answer for people: the verdict and its reason first.
func (a *Answer) Write(w io.Writer, options Options) error {
	out := printer{bufio.NewWriter(w), options.Width}
	out.wrap(string(a.Verdict)+"  ", a.Headline())
	for _, fact := range a.Facts() {
		for i, line := range fact.Lines {
			label := fact.Label
			if i > 0 {
				label = ""
			}
			out.wrap(fmt.Sprintf("  %-9s", label), line)
		}
	}
	for _, way := range []*Answer{a, a.Return} {
		if node := way.Drifted(); node != "" && options.Call != nil {
			fmt.Fprintf(out, "  next     %s\n", terminal.Escape(options.Call(node, "drift")))
		}
	}
	out.writeHops(a, options, "")
	if a.Return != nil {
		out.writeHops(a.Return, options, "r")
	}
	return out.Flush()
}

// Drifted returns the node on the way whose flows differ from what its databases call for, "" for none.
func (a *Answer) Drifted() string {
	if a == nil {
		return ""
	}
	if a.Drop != nil && a.Drop.Reason == string(rules.MissingFlow) {
		return a.Drop.Node
	}
	hop, _ := a.Deciding()
	for _, i := range a.Chain(hop) {
		if slices.ContainsFunc(a.Path[i].Stages, func(s Stage) bool { return s.Stale }) {
			return a.Path[i].Node
		}
	}
	return ""
}

// printer writes lines that fit the terminal and contain no control characters.
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
		parts = show.Wrap(line, max(minText, p.width-width))
	}
	for _, part := range parts {
		fmt.Fprintln(p, strings.TrimRight(prefix+part, " "))
		prefix = strings.Repeat(" ", width)
	}
}

// writeHops prints the stages of all hops, or their raw text, or both, and the packets that
// come out. number is put before the number of a hop.
func (p printer) writeHops(shown *Answer, options Options, number string) {
	if !options.Verbose && !options.Raw {
		return
	}
	for i := range shown.Path {
		hop := &shown.Path[i]
		fmt.Fprintln(p)
		p.wrap(fmt.Sprintf("%s%d  ", number, i+1), shown.title(i, number))
		if options.Verbose {
			p.writeStages(shown, hop)
		}
		if options.Raw && hop.Raw != "" {
			p.wrap("     ", "ofproto/trace printed:")
			for line := range strings.Lines(hop.Raw) {
				fmt.Fprintln(p, strings.TrimRight("     "+terminal.Escape(strings.TrimRight(line, "\r\n")), " "))
			}
		}
	}
	if options.Verbose {
		p.writePackets(shown)
	}
}

// writePackets prints the packets that come out, and the packets that OVN or a kernel sends.
func (p printer) writePackets(shown *Answer) {
	if len(shown.Outcomes)+len(shown.Generated) > 0 {
		fmt.Fprintln(p)
	}
	for _, outcome := range shown.Outcomes {
		p.wrap("  ", join("comes out at "+outcome.String(), outcome.Choice))
		p.writeField("packet", outcome.Packet)
	}
	for _, made := range shown.Generated {
		p.wrap("  ", fmt.Sprintf("%s sends a packet %s: %s", made.by(), made.where(), made.Why))
		p.writeField("packet", made.Packet)
	}
}

// title returns where a packet enters, and what brought it there.
func (a *Answer) title(hop int, number string) string {
	entered := &a.Path[hop]
	title := entered.Location.String()
	if entered.From >= 0 {
		title += fmt.Sprintf(", from %s%d", number, entered.From+1)
	}
	if entered.Via != "" {
		title += " by " + entered.Via
	}
	return join(title, a.NewChoice(hop))
}

// writeStages prints what a packet is, the stages that it passes, and how it ends.
func (p printer) writeStages(shown *Answer, hop *Hop) {
	p.writeField("packet", hop.Packet)
	p.writeField("connection", hop.Connection)
	names := 0
	for _, stage := range hop.Stages {
		names = max(names, runewidth.StringWidth(stage.Name))
	}
	for _, group := range hop.Groups() {
		p.wrap("     ", group.Name)
		for _, stage := range group.Stages {
			number := fmt.Sprint(stage.Table)
			if stage.Chain != "" {
				number = ""
			}
			p.wrap(fmt.Sprintf("     %4s  %-*s  ", number, min(names, 32), stage.Name), stage.Reads())
		}
	}
	p.writeField("sends", hop.Datapath)
	for _, end := range hop.Ends {
		p.writeField("ends", shown.EndText(end))
	}
}

// writeField prints a value behind its label, if there is one.
func (p printer) writeField(label, value string) {
	if value != "" {
		p.wrap(fmt.Sprintf("     %-12s", label), value)
	}
}

// IsRule reports whether a stage carries out what a user configured and decides about the
// packet: those are the rules of an answer. A QoS rule only marks or limits it.
func (s *Stage) IsRule() bool {
	rows := []string{"ACL", "NAT", "Load_Balancer", "Logical_Router_Static_Route", "Logical_Router_Policy"}
	if s.Chain != "" {
		return s.Rule != ""
	}
	return s.Rule != "" && slices.Contains(rows, s.Row)
}

// Reads returns what a stage is about in the clearest words that it has: the words of a user,
// else its logical match, else the words of OVN and OpenFlow.
func (s *Stage) Reads() string {
	switch {
	case s.Rule != "" && (s.Row != "" || s.Chain != ""):
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
	if s.Chain != "" {
		return "the end of the chain: " + s.Actions
	}
	return "no flow matches"
}
