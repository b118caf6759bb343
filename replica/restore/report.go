package restore

import (
	"fmt"
	"slices"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// Report says how faithful a replica is. It is report.json.
type Report struct {
	Steps     []Result                `json:"steps"`
	Bridges   []BridgeReport          `json:"bridges"`
	SetAside  []Item                  `json:"set_aside,omitempty"`
	Mended    []Item                  `json:"mended,omitempty"`
	Placeheld []Item                  `json:"placeheld,omitempty"`
	Ports     []PortRow               `json:"ports,omitempty"`
	Remarks   []string                `json:"remarks,omitempty"`
	Lost      []string                `json:"lost,omitempty"` // what the source held and could not be read
	Recorded  Versions                `json:"recorded"`
	Running   Versions                `json:"running"`
	aside     map[dumpOf]map[int]bool // the lines of all that was set aside, also where SetAside doesn't name them
}

// Versions are those of OVS and OVN, "" where unknown.
type Versions struct {
	OVS string `json:"ovs,omitempty"`
	OVN string `json:"ovn,omitempty"`
}

// BridgeReport counts one bridge's dumps.
type BridgeReport struct {
	Name   string                   `json:"name"`
	Counts map[workdir.Dump]*Counts `json:"counts"`
	// OpenFlow is the version of the dump that was used, by dump.
	OpenFlow map[workdir.Dump]string `json:"openflow,omitempty"`
}

// Counts says what became of the entries of a dump. Restored ones were read
// back from the replica and are the same; mended ones are among them.
type Counts struct {
	Collected int `json:"collected"`
	Restored  int `json:"restored"`
	Mended    int `json:"mended"`
	Placeheld int `json:"placeheld"`
	SetAside  int `json:"set_aside"`
	Different int `json:"different"` // loaded, but read back otherwise
}

// Item is one entry that was not simply restored.
type Item struct {
	Bridge string       `json:"bridge"`
	Dump   workdir.Dump `json:"dump"`
	File   string       `json:"file,omitempty"` // in the workdir
	Line   int          `json:"line,omitempty"`
	Text   string       `json:"text,omitempty"`
	Reason string       `json:"reason"`
}

// PortRow is one port, with its number in the live datapath and in the
// replica's; a patch port has none.
type PortRow struct {
	Bridge  string `json:"bridge"`
	Port    string `json:"port"`
	OfPort  int    `json:"ofport"`
	Live    string `json:"live_datapath_port"`
	Replica string `json:"replica_datapath_port"`
}

// Complete tells whether everything that was collected was restored.
func (r *Report) Complete() bool {
	if len(r.SetAside) > 0 || len(r.Lost) > 0 {
		return false
	}
	for _, s := range r.Steps {
		if s.Status == Failed {
			return false
		}
	}
	for _, b := range r.Bridges {
		for _, c := range b.Counts {
			if c.Different > 0 {
				return false
			}
		}
	}
	return true
}

// Strict tells whether nothing was approximated, placeheld or unknown either.
func (r *Report) Strict() bool {
	for _, s := range r.Steps {
		if s.Status == Approximated || s.Status == Unknown {
			return false
		}
	}
	return r.Complete() && len(r.Placeheld) == 0
}

// bridge returns the part of the report on a bridge, new where there is none.
func (r *Report) bridge(name string) *BridgeReport {
	for i := range r.Bridges {
		if r.Bridges[i].Name == name {
			return &r.Bridges[i]
		}
	}
	r.Bridges = append(r.Bridges, BridgeReport{Name: name, Counts: map[workdir.Dump]*Counts{}, OpenFlow: map[workdir.Dump]string{}})
	return &r.Bridges[len(r.Bridges)-1]
}

func (r *Report) counts(bridge string, dump workdir.Dump) *Counts {
	b := r.bridge(bridge)
	if b.Counts[dump] == nil {
		b.Counts[dump] = &Counts{}
	}
	return b.Counts[dump]
}

// dumpOf is a dump of a bridge.
type dumpOf struct {
	bridge string
	dump   workdir.Dump
}

// mostItems bounds what the report names one by one: a dump can be a million
// lines of anything. All are counted.
const mostItems = 10000

func (r *Report) setAside(i Item) {
	of := dumpOf{i.Bridge, i.Dump}
	if r.aside == nil {
		r.aside = map[dumpOf]map[int]bool{}
	}
	if r.aside[of] == nil {
		r.aside[of] = map[int]bool{}
	}
	r.aside[of][i.Line] = true
	if len(r.SetAside) < mostItems {
		r.SetAside = append(r.SetAside, i.shortened())
	} else {
		r.remarkOnce(fmt.Sprintf("only the first %d of what is set aside are named", mostItems))
	}
	r.counts(i.Bridge, i.Dump).SetAside++
}

// shortened is an item to be read by people: a line can have 15 MB, and
// ovs-ofctl says it again.
func (i Item) shortened() Item {
	const text, reason = 4096, 500
	i.Text, i.Reason = openflow.Shorten(i.Text, text), openflow.Shorten(i.Reason, reason)
	return i
}

// lost counts lines that could not be used, beyond those that are named.
func (r *Report) lost(bridge string, dump workdir.Dump, lines int) {
	r.remarkOnce(fmt.Sprintf("only the first %d of what is set aside are named", mostItems))
	counts := r.counts(bridge, dump)
	counts.Collected += lines
	counts.SetAside += lines
}

func (r *Report) mended(i Item) {
	if len(r.Mended) < mostItems {
		r.Mended = append(r.Mended, i.shortened())
	} else {
		r.remarkOnce(fmt.Sprintf("only the first %d of what was mended are named", mostItems))
	}
	r.counts(i.Bridge, i.Dump).Mended++
}

func (r *Report) placeheld(i Item) {
	r.Placeheld = append(r.Placeheld, i.shortened())
	r.counts(i.Bridge, i.Dump).Placeheld++
}

// DatapathPorts maps the replica's datapath port numbers to the live node's, or
// the other way. Ports of which either is unknown are not in it.
func (r *Report) DatapathPorts(toReplica bool) map[string]string {
	ports := map[string]string{}
	for _, p := range r.Ports {
		if p.Live == "none" || p.Live == "unknown" || p.Replica == "none" {
			continue
		}
		if toReplica {
			ports[p.Live] = p.Replica
		} else {
			ports[p.Replica] = p.Live
		}
	}
	return ports
}

// remarkOnce adds a remark that several steps could make.
func (r *Report) remarkOnce(text string) {
	if !slices.Contains(r.Remarks, text) {
		r.Remarks = append(r.Remarks, text)
	}
}
