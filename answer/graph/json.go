package graph

import (
	"encoding/json"
	"slices"
)

// document is a graph as JSON has it: boxes and ports by their indexes.
type document struct {
	Title   string         `json:"title"`
	Boxes   []*Box         `json:"boxes"`
	Edges   []documentEdge `json:"edges"`
	Remarks []string       `json:"remarks,omitempty"`
}

type documentEdge struct {
	From  documentEnd `json:"from"`
	To    documentEnd `json:"to"`
	Kind  Kind        `json:"kind"`
	State State       `json:"state,omitempty"`
}

// documentEnd is the index of a box, and of its port: -1 where the edge ends at the box itself.
type documentEnd struct {
	Box  int `json:"box"`
	Port int `json:"port"`
}

// MarshalJSON implements json.Marshaler.
func (g *Graph) MarshalJSON() ([]byte, error) {
	index := map[*Box]int{}
	for i, box := range g.Boxes {
		index[box] = i
	}
	d := document{Title: g.Title, Boxes: g.Boxes, Edges: []documentEdge{}, Remarks: g.Remarks}
	end := func(box *Box, port *Port) documentEnd {
		return documentEnd{index[box], slices.Index(box.Ports, port)}
	}
	for _, e := range g.Edges {
		d.Edges = append(d.Edges, documentEdge{end(e.From, e.FromPort), end(e.To, e.ToPort), e.Kind, e.State})
	}
	return json.Marshal(d)
}
