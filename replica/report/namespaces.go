package report

import (
	"fmt"

	"ovs-offline/internal/phrase"
)

// Namespace is the part of the report about one network namespace of the node.
type Namespace struct {
	Name   string           `json:"name"` // "" for the node's own
	Counts map[Part]*Parted `json:"counts"`
	// Named are the entries that were not restored as they were recorded, the first of each part.
	Named []NamedEntry `json:"named,omitempty"`
	// Remarks are about what the kernel or this machine lacks, and what stands in for it.
	Remarks []string `json:"remarks,omitempty"`
}

// Part is a part of a network namespace.
type Part string

// The parts of a network namespace.
const (
	Devices     Part = "devices"
	Addresses   Part = "addresses"
	Routes      Part = "routes"
	PolicyRules Part = "rules"
	Neighbours  Part = "neighbours"
	Settings    Part = "settings"
	FilterRules Part = "filter_rules" // of iptables, ip6tables and nft
	Sets        Part = "sets"
	Connections Part = "connections"
)

// Parts lists the parts of a network namespace in the order in which they are restored.
func Parts() []Part {
	return []Part{Devices, Settings, Addresses, Routes, PolicyRules, Neighbours, Sets, FilterRules, Connections}
}

// Parted counts the entries of one part by their outcome.
type Parted struct {
	Recorded  int `json:"recorded"`
	Restored  int `json:"restored"`            // read back from the kernel unchanged
	Different int `json:"different,omitempty"` // in the kernel, but read back differently
	Rejected  int `json:"rejected,omitempty"`  // not in the kernel

	named int
}

// NamedEntry is an entry that was not restored as it was recorded.
type NamedEntry struct {
	Part   Part   `json:"part"`
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// NewNamespace returns the part of a report about a network namespace, with nothing in it yet.
func NewNamespace(name string) *Namespace {
	n := &Namespace{Name: name, Counts: map[Part]*Parted{}}
	for _, part := range Parts() {
		n.Counts[part] = &Parted{}
	}
	return n
}

// Record counts recorded entries.
func (n *Namespace) Record(part Part, entries int) { n.Counts[part].Recorded += entries }

// Restore counts entries that were read back unchanged.
func (n *Namespace) Restore(part Part, entries int) { n.Counts[part].Restored += entries }

// Reject counts and names an entry that is not in the kernel.
func (n *Namespace) Reject(part Part, text, format string, args ...any) {
	n.Counts[part].Rejected++
	n.name(part, text, fmt.Sprintf(format, args...))
}

// Differ counts and names an entry that was read back differently.
func (n *Namespace) Differ(part Part, text, format string, args ...any) {
	n.Counts[part].Different++
	n.name(part, text, fmt.Sprintf(format, args...))
}

// RejectUnnamed counts entries that are not in the kernel for one reason, which a remark gives.
func (n *Namespace) RejectUnnamed(part Part, entries int, format string, args ...any) {
	if entries > 0 {
		n.Counts[part].Rejected += entries
		n.Remark(format, args...)
	}
}

// Named entries of each part are bounded; all are counted.
const (
	maxNamed   = 500
	maxRemarks = 200
)

func (n *Namespace) name(part Part, text, reason string) {
	const maxText, maxReason = 1000, 500
	counts := n.Counts[part]
	if counts.named++; counts.named > maxNamed {
		n.Remark("only the first %d entries of %s that are not as they were recorded are named", maxNamed, part.Title())
		return
	}
	n.Named = append(n.Named, NamedEntry{Part: part, Text: phrase.Shorten(text, maxText), Reason: phrase.Shorten(reason, maxReason)})
}

// Remark adds a remark unless there is the same.
func (n *Namespace) Remark(format string, args ...any) {
	const maxRemark = 1000
	text := phrase.Shorten(fmt.Sprintf(format, args...), maxRemark)
	if len(n.Remarks) == maxRemarks {
		return
	}
	for _, other := range n.Remarks {
		if other == text {
			return
		}
	}
	n.Remarks = append(n.Remarks, text)
}

// Title returns the name of a part for people.
func (p Part) Title() string {
	if p == FilterRules {
		return "filter rules"
	}
	return string(p)
}

// Complete reports whether everything that was recorded of the namespace is in the kernel and was read back
// unchanged.
func (n *Namespace) Complete() bool {
	for _, counts := range n.Counts {
		if counts.Rejected+counts.Different > 0 {
			return false
		}
	}
	return true
}
