package prove

import (
	"fmt"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
)

// print prints the proof for people.
func (p *Proof) print(page *show.Page) {
	page.Text("%s  %s\n", p.Verdict, p.headline())
	for _, family := range p.Families {
		for _, set := range family.Packets {
			text := set.text(p.own, p.known)
			if !set.Certain {
				text = "by some choices: " + text
			}
			switch {
			case set.Witness == "":
				text += " (not witnessed)"
			case !set.Arrived:
				text += " (no packet that was asked arrives)"
			}
			page.Text("  %-8s %s\n", family.Name, text)
		}
		if family.More {
			page.Text("  %-8s and smaller sets\n", family.Name)
		}
	}
	for _, text := range p.Missing {
		page.Text("  missing  %s\n", text)
	}
	page.Text("  proof    %s asked of the replicas: %d disagree\n", phrase.Count(p.Asked, "packet"), len(p.Disagree))
	for _, text := range p.Assumed {
		page.Text("  assumed  %s\n", text)
	}
	if flow := p.shown(); flow != "" {
		page.Text("  witness  %s\n", page.Call.Line("", "trace", "--node", p.Node, "--flow", fmt.Sprintf("%s in_port=%d,%s", p.Bridge, p.InPort, flow)))
	}
}

func (p *Proof) headline() string {
	switch p.Verdict {
	case Impossible:
		return p.Question + ": no packet gets there"
	case Possible:
		return p.Question + ": these packets get there"
	}
	return p.Question + ": " + p.Missing[0]
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
