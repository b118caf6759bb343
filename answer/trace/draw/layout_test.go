package draw

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/svg"
	"ovs-offline/test/generate/answers"
)

// random returns an answer of any shape: hops on few nodes and bridges, with forks, patch
// ports, long texts and ends of every kind.
func random(seed uint64) answer.Answer {
	r := rand.New(rand.NewPCG(seed, 1))
	words := func(n int) string {
		return strings.TrimSpace(strings.Repeat(strings.Repeat("w", 1+r.IntN(12))+" ", r.IntN(n)))
	}
	kinds := []answer.EndKind{answer.Delivered, answer.Dropped, answer.Answered, answer.Unknown}
	a := answer.Answer{Question: words(9), Verdict: answer.Ambiguous}
	for i := range 1 + r.IntN(14) {
		h := answer.Hop{From: r.IntN(i+1) - 1, Via: words(6), Choice: words(6), Connection: words(9)}
		h.Node, h.Bridge, h.Port = fmt.Sprint("node", r.IntN(4)), fmt.Sprint("br", r.IntN(3)), words(5)
		for range r.IntN(6) {
			h.Stages = append(h.Stages, answer.Stage{OnBridge: []string{"", "br1", "br2"}[r.IntN(3)], Datapath: words(4),
				Rule: words(12), Row: "ACL"})
		}
		for range r.IntN(4) {
			p := answer.Location{Node: h.Node, Bridge: fmt.Sprint("br", r.IntN(3)), Port: words(3)}
			h.Ends = append(h.Ends, answer.End{Kind: kinds[r.IntN(4)], Location: p, Text: words(20)})
		}
		a.Path = append(a.Path, h)
	}
	return a
}

// samples returns the pictures of all answers, and of many random ones.
func samples() map[string]*picture {
	all := map[string]*picture{}
	for name, a := range answers.All() {
		all[name], all[name+" in a page"] = newPicture(&a, false), newPicture(&a, true)
	}
	for seed := range uint64(120) {
		a, reply := random(seed), random(seed+1000)
		a.Return = &reply
		all[fmt.Sprint("random ", seed)] = newPicture(&a, false)
	}
	return all
}

// area is a rectangle with something in it.
type area struct {
	what       string
	x, y, w, h float64
}

func (a area) overlaps(b area) bool {
	const touch = 0.01
	return a.x+touch < b.x+b.w && b.x+touch < a.x+a.w && a.y+touch < b.y+b.h && b.y+touch < a.y+a.h
}

func (a area) holds(b area) bool {
	const touch = 0.01
	return b.x >= a.x-touch && b.y >= a.y-touch && b.x+b.w <= a.x+a.w+touch && b.y+b.h <= a.y+a.h+touch
}

// checkInside checks that areas are in an outer one, and that none overlaps another.
func checkInside(t *testing.T, name string, outer area, inner []area) {
	t.Helper()
	for i, a := range inner {
		if !outer.holds(a) {
			t.Errorf("%s: %s leaves %s: %+v, %+v", name, a.what, outer.what, a, outer)
		}
		for _, b := range inner[i+1:] {
			if a.overlaps(b) {
				t.Errorf("%s: %s and %s overlap: %+v, %+v", name, a.what, b.what, a, b)
			}
		}
	}
}

// line returns the area of a line of text on a baseline.
func (a area) line(text string, x, baseline float64) area {
	return area{fmt.Sprintf("%q", text), a.x + x, baseline - 11, float64(svg.Width(text)) * svg.CharWidth, 13}
}

func TestNothingOverlapsAndNoTextLeavesItsBox(t *testing.T) {
	for name, p := range samples() {
		for _, w := range p.ways {
			checkWay(t, name, w)
		}
	}
}

func checkWay(t *testing.T, name string, w *way) {
	t.Helper()
	var boxes []area
	for _, v := range w.visits {
		box := area{"node " + v.node, v.x, v.y, v.w, v.h}
		boxes = append(boxes, box)
		parts := []area{box.line(v.title(), padding, v.y+19)}
		for _, b := range v.bridges {
			part := area{"bridge " + b.name, v.x + b.x, v.y + b.y, b.w, b.h}
			parts = append(parts, part)
			if b.from != nil {
				parts = append(parts, part.line(b.label(), padding, part.y-8))
			}
			checkBridge(t, name, part, b)
		}
		checkInside(t, name, box, parts)
	}
	for _, l := range w.links {
		for i, text := range l.label {
			width := float64(svg.Width(text)) * svg.CharWidth
			boxes = append(boxes, area{"label " + text, l.to.x - padding - width, l.enterY() - 18 + float64(i)*(lineHeight+5),
				width, 13})
		}
	}
	checkInside(t, name, area{"the picture", 0, 0, w.w, w.h + lineHeight}, boxes)
	checkLinks(t, name, w)
}

func checkBridge(t *testing.T, name string, outer area, b *bridge) {
	t.Helper()
	parts := []area{outer.line(b.title(), padding, outer.y+18)}
	for _, r := range b.rows {
		x, y := r.position()
		box := area{"row " + r.title, x, y, r.w, r.h}
		parts = append(parts, box)
		lines := []area{box.line(r.title, rowPadding, y+lineHeight-1)}
		for i, l := range r.lines {
			lines = append(lines, box.line(l.text, rowPadding, y+float64(i+2)*lineHeight-1))
		}
		checkInside(t, name, box, lines)
	}
	checkInside(t, name, outer, parts)
}

// checkLinks checks that no link passes a node that it does not join, and that links of
// different rows don't lie on each other.
func checkLinks(t *testing.T, name string, w *way) {
	t.Helper()
	var turns []area
	owner := map[int]*row{}
	for _, l := range w.links {
		x1, _ := l.from.position()
		x1 += l.from.w
		top, bottom := min(l.leaveY(), l.enterY()), max(l.leaveY(), l.enterY())
		turn := area{"a link", l.bus - 1, top - 1, 2, bottom - top + 2}
		for _, part := range []area{turn, {"a link", x1, l.leaveY() - 1, l.bus - x1, 2},
			{"a link", l.bus, l.enterY() - 1, l.to.x - l.bus, 2}} {
			for _, v := range w.visits {
				if v != l.from.bridge.visit && v != l.to && part.overlaps(area{"", v.x, v.y, v.w, v.h}) {
					t.Errorf("%s: a link to %s passes the node %s", name, l.to.node, v.node)
				}
			}
		}
		for i, other := range turns {
			if owner[i] != l.from && turn.overlaps(other) {
				t.Errorf("%s: two links turn at the same place: %+v, %+v", name, turn, other)
			}
		}
		owner[len(turns)] = l.from
		turns = append(turns, turn)
	}
}

// TestEveryHopAndEndIsDrawn counts rows: each hop has one for each of its bridges.
func TestEveryHopAndEndIsDrawn(t *testing.T) {
	for name, p := range samples() {
		for _, w := range p.ways {
			hops, ends, want := map[int]bool{}, 0, 0
			for _, v := range w.visits {
				for _, b := range v.bridges {
					for _, r := range b.rows {
						if r.hop >= 0 {
							hops[r.hop] = true
						} else {
							ends++
						}
					}
				}
			}
			for _, h := range w.answer.Path {
				want += len(h.Ends)
			}
			if len(hops) != len(w.answer.Path) || ends != want {
				t.Errorf("%s: %d hops of %d and %d ends of %d are drawn", name, len(hops), len(w.answer.Path), ends, want)
			}
		}
	}
}

// TestManyCopiesAreCounted floods a packet to 500 ports, of which one was asked for.
func TestManyCopiesAreCounted(t *testing.T) {
	a := answer.Answer{Verdict: answer.Reachable,
		Path: []answer.Hop{{From: -1, Location: answer.Location{Node: "n", Bridge: "b"}}}}
	for i := range 500 {
		place := answer.Location{Node: "n", Bridge: "b", Port: fmt.Sprint("tap", i)}
		a.Path[0].Ends = append(a.Path[0].Ends, answer.End{Kind: answer.Delivered, Location: place})
		a.Outcomes = append(a.Outcomes, answer.Outcome{Location: place, Destination: i == 400})
	}
	var drawn []string
	for _, r := range newPicture(&a, false).ways[0].visits[0].bridges[0].rows {
		drawn = append(drawn, r.title)
	}
	text := strings.Join(drawn, "\n")
	if len(drawn) > 20 || !strings.Contains(text, "arrives at tap400") ||
		!strings.HasSuffix(text, "comes out at 487 more ports") {
		t.Errorf("the rows are:\n%s", text)
	}
}

// TestChainsMakeNoStaircase draws twelve hops on three nodes: the picture is not taller
// than its tallest node needs.
func TestChainsMakeNoStaircase(t *testing.T) {
	a := answers.All()["twelve-hops"]
	w := newPicture(&a, true).ways[0]
	tallest := 0.0
	for _, v := range w.visits {
		tallest = max(tallest, v.h)
	}
	if w.h > tallest {
		t.Errorf("the picture is %.0f pixels tall, its tallest node %.0f", w.h, tallest)
	}
}
