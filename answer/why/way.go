package why

import (
	"maps"
	"slices"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
)

// way is what a packet and the reply to it meet: the nodes, and the names of ports, networks, rows and addresses.
type way struct {
	nodes map[string]bool
	known map[string]bool // names that are the same on all nodes
	local map[string]bool // names of ports of the nodes
	other map[string]bool // names of endpoints that are not on the way
}

// closeness is how much a finding concerns the way of a packet.
type closeness int

const (
	elsewhere closeness = iota
	onANode             // it concerns a node on the way, or all
	ofTheWay            // it names something on the way
)

// newWay returns the way of a packet between two endpoints.
func newWay(traced *answer.Answer, all *names.Names, from, to names.Endpoint) *way {
	w := &way{nodes: map[string]bool{}, known: map[string]bool{}, local: map[string]bool{}, other: map[string]bool{}}
	for _, e := range []names.Endpoint{from, to} {
		w.add(w.known, namesOf(e)...)
		w.add(w.known, e.Balancer)
		w.add(w.known, e.Backends...)
		w.add(w.nodes, e.Node)
	}
	for _, one := range append([]*answer.Answer{traced, traced.Return}, traced.Replies...) {
		if one == nil {
			continue
		}
		for _, hop := range one.Path {
			w.meet(hop.Location)
			for _, stage := range hop.Stages {
				w.pass(stage)
			}
			for _, end := range hop.Ends {
				w.meet(end.Location)
			}
		}
		if one.Drop != nil {
			w.meet(one.Drop.Location)
			w.pass(one.Drop.Stage)
		}
	}
	for _, e := range all.All() {
		if !slices.ContainsFunc(namesOf(e), func(name string) bool { return w.known[name] }) {
			w.add(w.other, namesOf(e)...)
		}
	}
	return w
}

// namesOf returns the names and addresses of an endpoint.
func namesOf(e names.Endpoint) []string {
	list := []string{e.Name, e.LogicalPort, e.MAC, e.Parent}
	for _, ip := range e.IPs {
		list = append(list, ip.String())
	}
	return slices.DeleteFunc(list, func(name string) bool { return name == "" })
}

func (w *way) add(to map[string]bool, names ...string) {
	for _, name := range names {
		if name != "" {
			to[name] = true
		}
	}
}

// meet adds a port on the way.
func (w *way) meet(at answer.Location) {
	w.add(w.nodes, at.Node)
	w.add(w.local, at.Port)
	w.add(w.known, at.LogicalPort, at.Endpoint)
}

// pass adds a flow on the way, and what it is made from.
func (w *way) pass(s answer.Stage) {
	_, datapath, _ := strings.Cut(s.Datapath, " ") // behind its kind: "switch net1"
	w.add(w.known, datapath, s.RuleName)
	if s.ACL != nil {
		w.add(w.known, s.ACL.UUID, s.ACL.Name, s.ACL.PortGroup)
	}
}

// names returns the names of the nodes on the way.
func (w *way) names() []string { return slices.Sorted(maps.Keys(w.nodes)) }

// closeness returns how much a finding concerns the way.
func (w *way) closeness(f rule.Finding) closeness {
	here := len(f.Nodes) == 0 || slices.ContainsFunc(f.Nodes, func(node string) bool { return w.nodes[node] })
	words := wordsOf(f.What)
	has := func(names map[string]bool) bool {
		return slices.ContainsFunc(words, func(word string) bool { return names[word] })
	}
	switch {
	case has(w.known), here && has(w.local):
		return ofTheWay
	case here && !has(w.other):
		return onANode
	}
	return elsewhere
}

// wordsOf returns the words of a sentence that can be names, without the punctuation around them.
func wordsOf(sentence string) []string {
	words := strings.FieldsFunc(sentence, func(r rune) bool { return strings.ContainsRune(" ,;()\"'", r) })
	for i, word := range words {
		words[i] = strings.TrimRight(word, ".:")
	}
	return words
}
