package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/svg"
	"ovs-offline/internal/webpage"
)

// The number of columns and lines to which texts are shortened. Tooltips have them whole.
const (
	maxLine  = 44
	maxLabel = 36
	maxLines = 4
	maxRules = 4
	maxPorts = 12 // that a copy comes out of, of one hop
)

func shorten(text string, limit int) string { return svg.Shorten(webpage.Plain(text), limit) }

// wrap returns a text as at most maxLines lines of some columns. A longer one is
// shortened in its middle.
func wrap(text string, columns int) []string {
	text = webpage.Plain(text)
	for limit := maxLines * columns; ; limit -= columns / 4 {
		if parts := show.Wrap(svg.Shorten(text, limit), columns); len(parts) <= maxLines {
			return parts
		}
	}
}

// addText adds a text as lines of a row.
func (r *row) addText(class, text string) {
	if text == "" {
		return
	}
	r.tooltip = append(r.tooltip, webpage.Plain(text))
	for _, part := range wrap(text, maxLine) {
		r.lines = append(r.lines, line{part, class})
	}
}

// describe writes what a packet meets in a hop. first is whether it is the hop's first bridge.
func (w *way) describe(r *row, first bool) {
	hop := &w.answer.Path[r.hop]
	number := w.number(r.hop)
	if !first {
		number += " continued"
	}
	r.class, r.title = "hop", number
	if !first {
		r.describeStages(hop)
		return
	}
	port := hop.Called()
	if port == "" && hop.Port != "" {
		port = "port " + hop.Port
	}
	if port != "" && r.parent == nil {
		r.title += "  " + shorten(port, maxLine-len(number)-2)
		r.tooltip = append(r.tooltip, webpage.Plain(hop.Location.String()))
	} else {
		via := cmp.Or(hop.Via, recirculated(hop))
		r.title += "  " + shorten(via, maxLine-len(number)-2)
		r.tooltip = append(r.tooltip, webpage.Plain(via))
	}
	if r.parent == nil && hop.Called() != "" && hop.Port != "" && hop.Port != hop.Called() {
		r.addText("note", "port "+hop.Port)
	}
	if r.parent != nil || r.bridge.from != nil {
		r.addText("name", w.answer.NewChoice(r.hop))
	}
	r.addText("note", hop.Connection)
	r.describeStages(hop)
}

// recirculated returns why a hop begins on the node where the one before ended.
func recirculated(hop *answer.Hop) string {
	if hop.Connection != "" {
		return "after conntrack"
	}
	return "recirculated"
}

// describeStages writes which switches, routers and rules a hop passes in the row's bridge.
func (r *row) describeStages(hop *answer.Hop) {
	var datapaths, rules []string
	stages := 0
	for _, stage := range hop.Stages {
		if cmp.Or(stage.OnBridge, hop.Bridge) != r.bridge.name {
			continue
		}
		stages++
		if stage.Datapath != "" && (len(datapaths) == 0 || datapaths[len(datapaths)-1] != stage.Datapath) {
			datapaths = append(datapaths, stage.Datapath)
		}
		if stage.IsRule() && !slices.Contains(rules, stage.Rule) {
			rules = append(rules, stage.Rule)
		}
	}
	r.addText("", strings.Join(datapaths, " > "))
	for i, rule := range rules {
		if i == maxRules-1 && len(rules) > maxRules {
			r.lines = append(r.lines, line{fmt.Sprintf("and %d more rules", len(rules)-i), "note"})
			r.tooltip = append(r.tooltip, rules[i:]...)
			break
		}
		r.addText("rule", rule)
	}
	if stages > 0 {
		r.lines = append(r.lines, line{phrase.Count(stages, "stage"), "note"})
	}
}

// addEnds adds the ends of a hop. Of many copies, only the first are drawn.
func (w *way) addEnds(hop int, rows []*row) {
	copies := 0
	for j, end := range w.answer.Path[hop].Ends {
		if end.Kind == answer.Delivered && !w.answer.Arrives(end) {
			if copies++; copies > maxPorts {
				continue
			}
		}
		w.addEnd(hop, j, rowOf(rows, end.Bridge))
	}
	if copies > maxPorts {
		rows[len(rows)-1].add(&row{hop: -1, class: "end", title: fmt.Sprintf("comes out at %d more ports", copies-maxPorts)})
	}
}

// endClass returns the colour and the words of an end.
func endClass(drawn *answer.Answer, end answer.End) (class, title string) {
	switch {
	case drawn.Arrives(end):
		return "arrived", "\u2713 arrives at "
	case end.Kind == answer.Delivered:
		return "", "comes out at "
	case end.Kind == answer.Dropped && (drawn.Verdict == answer.Reachable || drawn.Verdict == answer.OneWay):
		return "", "a copy is dropped"
	case end.Kind == answer.Dropped:
		return "dropped", "\u2717 dropped"
	case end.Kind == answer.Answered:
		return "answered", "OVN answers"
	}
	return "unknown", "? undetermined"
}

// addEnd adds the row of an end of a packet.
func (w *way) addEnd(hop, number int, from *row) {
	end := w.answer.Path[hop].Ends[number]
	added := &row{hop: -1}
	from.add(added)
	class, title := endClass(w.answer, end)
	added.class, added.title = "end "+class, title
	if end.Kind == answer.Delivered {
		added.title += shorten(cmp.Or(end.Called(), end.Port), maxLine-len(title))
	}
	added.tooltip = append(added.tooltip, webpage.Plain(end.String()))
	if end.Kind == answer.Delivered && end.Called() != "" && end.Port != "" && end.Port != end.Called() {
		added.addText("note", "port "+end.Port)
	}
	if node := from.bridge.visit.node; end.Node != "" && end.Node != node {
		added.addText("note", "on "+end.Node)
	}
	if end.Kind != answer.Delivered {
		added.addText("", end.Text)
	}
	if decidingHop, decidingEnd := w.answer.Deciding(); decidingHop == hop && decidingEnd == number && w.answer.Drop != nil && end.Kind == answer.Dropped {
		added.class += " deciding"
		added.addText("", w.answer.Drop.Name)
		added.addText("rule", w.answer.Drop.Rule)
	}
}
