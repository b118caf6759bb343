package retrace

import (
	"cmp"
	"fmt"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// Options choose what Print prints.
type Options struct {
	Detail bool   // every flow that matched
	Raw    bool   // what was pasted
	Start  string // the command that starts the replica
}

// Print prints the traces for people.
func (d *Document) Print(page *show.Page, options Options) {
	for i, t := range d.Traces {
		if i > 0 {
			page.Printf("\n")
		}
		t.print(page, options)
	}
	page.WarnEach("", d.Remarks)
}

func (t *Traced) print(page *show.Page, options Options) {
	line := func(title, text string) {
		if text != "" {
			page.Printf("  %-9s%s\n", title, terminal.Escape(text))
		}
	}
	page.Printf("%s\n", terminal.Escape(strings.TrimPrefix(strings.Join([]string{t.Origin, cmp.Or(t.Command, t.Tool+", without its command line")}, ": "), ": ")))
	page.Printf("%s  %s\n", t.Verdict, terminal.Escape(t.summary()))
	line("packet", t.Packet)
	line("enters", t.enters())
	if t.Where != nil {
		line("ends", t.Where.String())
		line("rule", t.Where.Rule)
	}
	line("reason", strings.TrimSuffix(t.Reason+": "+t.Why, ": "))
	for _, text := range t.Lacks {
		line("not whole", " "+text)
	}
	for _, text := range t.Assumed {
		line("assumed", text)
	}
	if options.Detail {
		for _, place := range t.Stages {
			line("stage", place.String())
			line("", place.Rule)
		}
	}
	for _, text := range t.Again.sentences(t, options.Start) {
		line("replica", text)
	}
	if options.Raw {
		page.Printf("%s\n", terminal.EscapeLines(t.trace.Text))
	}
}

// summary says in a line what becomes of the packet.
func (t *Traced) summary() string {
	switch {
	case t.Verdict == Undetermined:
		return strings.Join(append(t.Missing, t.Ends...), "; ")
	case t.Verdict != Dropped:
		return strings.Join(t.Ends, "; ")
	case t.Where == nil:
		return "it is dropped"
	}
	return strings.Join(append([]string{"in " + t.Where.place()}, t.Ends...), "; ")
}

func (t *Traced) enters() string {
	kind := "bridge"
	if t.Tool == "ovn-trace" {
		kind = "logical datapath"
	}
	return strings.Trim(fmt.Sprintf("%s %s, port %s", kind, t.Bridge, t.InPort), ", ")
}

// place names the table of a place.
func (p *Place) place() string {
	switch {
	case p.Bridge == "" && p.Pipeline == "":
		return fmt.Sprintf("table %d of a bridge behind a patch port, which this form of a trace does not name", p.Table)
	case p.Bridge == "":
		return strings.TrimSpace(fmt.Sprintf("%s table %d of %s %s", p.Pipeline, p.Table, p.Datapath, inParentheses(p.Stage)))
	}
	text := fmt.Sprintf("table %d of bridge %s %s", p.Table, p.Bridge, inParentheses(p.Stage))
	if p.Datapath != "" {
		text += " of " + p.Datapath
	}
	return strings.TrimSpace(text)
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

// String names a place with its flow.
func (p *Place) String() string {
	if p.Flow == "" {
		return p.place() + ": no flow matches"
	}
	text := fmt.Sprintf("%s: flow %s", p.place(), p.Flow)
	if p.Cookie != "" {
		text += ", cookie " + p.Cookie
	}
	return text
}

// sentences says what the replica says about a packet.
func (a *Again) sentences(t *Traced, start string) []string {
	var list []string
	switch {
	case a.NotAsked != "" && a.Start:
		return []string{"not asked again: no replica runs; start one with: " + start}
	case a.NotAsked != "":
		return []string{"not asked again: " + a.NotAsked}
	case a.Result == Same:
		list = append(list, fmt.Sprintf("same: %s", a.Verdict))
	default:
		list = append(list, strings.TrimRight(fmt.Sprintf("DIFFERS: %s  %s", a.Verdict, strings.Join(a.Ends, "; ")), " "))
		if a.What == "end" {
			list = append(list, "the flows that match are the same: what differs is where the packet leaves")
			break
		}
		list = append(list, "first difference: pasted  "+a.describe(a.Recorded), "                  replica "+a.describe(a.Replica))
	}
	for _, text := range a.Uncompared {
		list = append(list, "not compared: "+text)
	}
	return list
}

// describe describes a place with its actions where these differ.
func (a *Again) describe(p *Place) string {
	if p == nil {
		return "no further flow"
	}
	text := p.String()
	if a.What == "actions" {
		text += ", actions " + strings.ReplaceAll(p.Actions, "\n", ",")
	}
	return text
}
