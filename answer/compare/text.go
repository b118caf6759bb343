package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// Line describes a finding in one line, with its values.
func (f Finding) Line() string {
	text := f.Title()
	if details := f.Details(); details != "" {
		text += ": " + details
	}
	return text
}

// Title names what differs: "gone: port vm1 (switch blue)", "changed: interface eth1 of node compute1".
func (f Finding) Title() string {
	text := fmt.Sprintf("%s: %s", f.Change, f.Subject())
	if f.Node != "" {
		text += " of node " + f.Node
	}
	return text
}

// Place names the node, or the zones, that have the object; "" for the only zone.
func (f Finding) Place() string {
	switch len(f.Zones) {
	case 0:
		return f.Node
	case 1:
		return f.Zones[0]
	}
	return phrase.FirstNames(f.Zones)
}

// Subject names the object with what it is a part of: "port vm1 (switch blue)".
func (f Finding) Subject() string {
	if f.Of == "" {
		return f.Name
	}
	return fmt.Sprintf("%s (%s)", f.Name, f.Of)
}

// Details describes what differs of an object that changed, and the parts of one that was
// added or is gone.
func (f Finding) Details() string {
	var parts []string
	if f.Match != "" {
		parts = append(parts, f.Match)
	}
	for _, column := range f.Columns {
		if f.Change == Changed {
			parts = append(parts, column.String())
		} else {
			parts = append(parts, column.Name+" "+column.Old+column.New) // only one side has the object
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(f.With)) {
		parts = append(parts, fmt.Sprintf("with %s", phrase.Count(f.With[kind], kind)))
	}
	return strings.Join(parts, "; ")
}

// String returns the value before and after, or the elements of only one side.
func (c Column) String() string {
	if len(c.Removed)+len(c.Added) == 0 {
		return fmt.Sprintf("%s %s -> %s", c.Name, cmp.Or(c.Old, "none"), cmp.Or(c.New, "none"))
	}
	text := c.Name
	for _, list := range []struct {
		sign   string
		values []string
	}{{" -", c.Removed}, {" +", c.Added}} {
		const most = 5
		for i, value := range list.values {
			if i == most {
				text += fmt.Sprintf("%s%d more", list.sign, len(list.values)-most)
				break
			}
			text += list.sign + value
		}
	}
	return text
}

// String counts the flows: "3 added, 1 gone".
func (f FlowCount) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what Change
	}{{f.Added, Added}, {f.Gone, Gone}, {f.Changed, Changed}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// KindCount counts the findings of a kind.
type KindCount struct {
	Kind  string
	Added int
	Gone  int
	// Changed counts the objects with other values.
	Changed int
	// Flows counts the flows that differ because of them.
	Flows int
}

// Kinds counts the findings by kind, in the order of the findings.
func (c *Comparison) Kinds() []KindCount {
	var all []KindCount
	for _, finding := range c.Findings {
		if n := len(all); n == 0 || all[n-1].Kind != finding.Kind {
			all = append(all, KindCount{Kind: finding.Kind})
		}
		count := &all[len(all)-1]
		switch finding.Change {
		case Added:
			count.Added++
		case Gone:
			count.Gone++
		case Changed:
			count.Changed++
		}
		if finding.Flows != nil {
			count.Flows += finding.Flows.Added + finding.Flows.Gone + finding.Flows.Changed
		}
	}
	return all
}
