package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/svg"
	"ovs-offline/internal/terminal"
	"ovs-offline/trace/answer"
)

// The number of columns and lines to which texts are shortened. Tooltips have them whole.
const (
	maxLine  = 44
	maxLabel = 36
	maxLines = 4
	maxRules = 4
	maxPorts = 12 // that a copy comes out of, of one hop
)

// plain returns a text as one line without control characters.
func plain(text string) string {
	return strings.ReplaceAll(terminal.Escape(text), "\t", " ")
}

func short(text string, limit int) string { return svg.Shorten(plain(text), limit) }

// wrapped returns a text as at most maxLines lines of some columns. A longer one is
// shortened in its middle.
func wrapped(text string, columns int) []string {
	text = plain(text)
	for limit := maxLines * columns; ; limit -= columns / 4 {
		if parts := answer.Wrap(svg.Shorten(text, limit), columns); len(parts) <= maxLines {
			return parts
		}
	}
}

// say adds a text as lines of a row.
func (r *row) say(class, text string) {
	if text == "" {
		return
	}
	r.tooltip = append(r.tooltip, plain(text))
	for _, part := range wrapped(text, maxLine) {
		r.lines = append(r.lines, line{part, class})
	}
}

// describe writes what a packet meets in a hop. first is whether it is the hop's first bridge.
func (w *way) describe(r *row, first bool) {
	h := &w.answer.Path[r.hop]
	number := w.number(r.hop)
	if !first {
		number += " continued"
	}
	r.class, r.title = "hop", number
	if !first {
		r.passes(h)
		return
	}
	port := h.Called()
	if port == "" && h.Port != "" {
		port = "port " + h.Port
	}
	if port != "" && r.parent == nil {
		r.title += "  " + short(port, maxLine-len(number)-2)
		r.tooltip = append(r.tooltip, plain(h.Place.String()))
	} else {
		via := cmp.Or(h.Via, recirculated(h))
		r.title += "  " + short(via, maxLine-len(number)-2)
		r.tooltip = append(r.tooltip, plain(via))
	}
	if r.parent == nil && h.Called() != "" && h.Port != "" && h.Port != h.Called() {
		r.say("note", "port "+h.Port)
	}
	if r.parent != nil || r.bridge.from != nil {
		r.say("name", w.answer.NewChoice(r.hop))
	}
	r.say("note", h.Connection)
	r.passes(h)
}

// recirculated returns why a hop begins on the node where the one before ended.
func recirculated(h *answer.Hop) string {
	if h.Connection != "" {
		return "after conntrack"
	}
	return "recirculated"
}

// passes writes which switches, routers and rules a hop passes in the row's bridge.
func (r *row) passes(h *answer.Hop) {
	var datapaths, rules []string
	stages := 0
	for _, s := range h.Stages {
		if cmp.Or(s.OnBridge, h.Bridge) != r.bridge.name {
			continue
		}
		stages++
		if s.Datapath != "" && (len(datapaths) == 0 || datapaths[len(datapaths)-1] != s.Datapath) {
			datapaths = append(datapaths, s.Datapath)
		}
		if s.IsRule() && !slices.Contains(rules, s.Rule) {
			rules = append(rules, s.Rule)
		}
	}
	r.say("", strings.Join(datapaths, " > "))
	for i, rule := range rules {
		if i == maxRules-1 && len(rules) > maxRules {
			r.lines = append(r.lines, line{fmt.Sprintf("and %d more rules", len(rules)-i), "note"})
			r.tooltip = append(r.tooltip, rules[i:]...)
			break
		}
		r.say("rule", rule)
	}
	if stages > 0 {
		r.lines = append(r.lines, line{countOf(stages, "stage"), "note"})
	}
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ends adds the ends of a hop. Of many copies, only the first are drawn.
func (w *way) ends(hop int, rows []*row) {
	copies := 0
	for j, e := range w.answer.Path[hop].Ends {
		if e.Kind == answer.Delivered && !w.answer.Arrives(e) {
			if copies++; copies > maxPorts {
				continue
			}
		}
		w.end(hop, j, rowOf(rows, e.Bridge))
	}
	if copies > maxPorts {
		rows[len(rows)-1].add(&row{hop: -1, class: "end", title: fmt.Sprintf("comes out at %d more ports", copies-maxPorts)})
	}
}

// endClass returns the colour and the words of an end.
func endClass(a *answer.Answer, e answer.End) (class, title string) {
	switch {
	case a.Arrives(e):
		return "arrived", "\u2713 arrives at "
	case e.Kind == answer.Delivered:
		return "", "comes out at "
	case e.Kind == answer.Dropped:
		return "dropped", "\u2717 dropped"
	case e.Kind == answer.Answered:
		return "answered", "OVN answers"
	}
	return "unknown", "? undetermined"
}

// end adds the row of an end of a packet.
func (w *way) end(hop, number int, from *row) {
	e := w.answer.Path[hop].Ends[number]
	r := &row{hop: -1}
	from.add(r)
	class, title := endClass(w.answer, e)
	r.class, r.title = "end "+class, title
	if e.Kind == answer.Delivered {
		r.title += short(cmp.Or(e.Called(), e.Port), maxLine-len(title))
	}
	r.tooltip = append(r.tooltip, plain(e.String()))
	if e.Kind == answer.Delivered && e.Called() != "" && e.Port != "" && e.Port != e.Called() {
		r.say("note", "port "+e.Port)
	}
	if node := from.bridge.visit.node; e.Node != "" && e.Node != node {
		r.say("note", "on "+e.Node)
	}
	if e.Kind != answer.Delivered {
		r.say("", e.Text)
	}
	if h, j := w.answer.Deciding(); h == hop && j == number && w.answer.Drop != nil && e.Kind == answer.Dropped {
		r.class += " deciding"
		r.say("", w.answer.Drop.Name)
		r.say("rule", w.answer.Drop.Rule)
	}
}
