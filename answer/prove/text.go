package prove

import (
	"fmt"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
)

// print prints the proof for people.
func (p *Proof) print(page *show.Page) {
	p.printSets(page, p.Question)
	p.printBasis(page)
	p.printWitness(page)
}

// printSets prints which packets get there, and what is missing. Question is that of one sender, or of several with the same sets.
func (p *Proof) printSets(page *show.Page, question string) {
	page.Text("%s  %s: %s\n", p.Verdict, question, p.headline())
	for _, line := range p.sets() {
		page.Text("  %s\n", line)
	}
	for _, text := range p.Missing {
		page.Text("  missing  %s\n", text)
	}
}

// sets returns a line for each set of packets.
func (p *Proof) sets() (lines []string) {
	for _, family := range p.Families {
		for _, set := range family.Packets {
			text := set.text(p.own, p.known)
			if !set.Certain {
				text = "by some choices: " + text
			}
			switch {
			case p.NotWitnessed != "":
			case set.Witness == "":
				text += " (not witnessed)"
			case !set.Arrived:
				text += " (no packet that was asked arrives)"
			}
			lines = append(lines, fmt.Sprintf("%-8s %s", family.Name, text))
		}
		if family.More {
			lines = append(lines, fmt.Sprintf("%-8s and smaller sets", family.Name))
		}
	}
	return lines
}

// printBasis prints what the verdict rests on.
func (p *Proof) printBasis(page *show.Page) {
	if p.NotWitnessed != "" {
		page.Text("  proof    not witnessed, by the recorded flows alone: %s\n", p.NotWitnessed)
	}
	if p.NotWitnessed == "" || p.Asked > 0 {
		page.Text("  proof    %s asked of the replicas: %d disagree\n", phrase.Count(p.Asked, "packet"), len(p.Disagree))
	}
	for _, text := range p.Assumed {
		page.Text("  assumed  %s\n", text)
	}
}

func (p *Proof) printWitness(page *show.Page) {
	if flow := p.shown(); flow != "" {
		page.Text("  witness  %s\n", page.Call.Line("", "trace", "--node", p.Node, "--flow", fmt.Sprintf("%s in_port=%d,%s", p.Bridge, p.InPort, flow)))
	}
}

func (p *Proof) headline() string {
	switch p.Verdict {
	case Impossible:
		return "no packet gets there"
	case Possible:
		return "these packets get there"
	}
	return p.Missing[0]
}

// shown returns the packet that shows the verdict best, "" for none.
func (p *Proof) shown() string {
	if len(p.Disagree) > 0 {
		return p.Disagree[0]
	}
	for _, family := range p.Families {
		for _, set := range family.Packets {
			if set.Arrived {
				return set.Witness
			}
		}
	}
	return ""
}
