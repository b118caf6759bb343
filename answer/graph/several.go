package graph

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// Join returns the graph of several nodes, whose names precede those of their boxes. A tunnel
// between two of them joins their ports; any other remote is one box for all nodes.
func Join(names []string, graphs []*Graph) *Graph {
	j := &Graph{one: graphs[0].one, many: graphs[0].many}
	outside := map[string]*Box{} // remotes and physical networks by kind and name
	for i, graph := range graphs {
		for _, remark := range graph.Remarks {
			j.Remarks = append(j.Remarks, names[i]+": "+remark)
		}
		for _, box := range graph.Boxes {
			if box.Kind == Remote || box.Kind == Network {
				continue
			}
			box.Node = names[i]
			j.Boxes = append(j.Boxes, box)
		}
		for _, edge := range graph.Edges {
			other, known := peerOf(graphs, i, edge)
			switch {
			case edge.To.Kind != Remote && edge.To.Kind != Network:
			case known && slices.ContainsFunc(j.Edges, func(have *Edge) bool { return have.FromPort == other.FromPort && have.ToPort == edge.FromPort }):
				continue
			case known:
				edge.To, edge.ToPort = other.From, other.FromPort
				if other.State.isDown() {
					edge.State = other.State
				}
			default:
				key := string(edge.To.Kind) + " " + edge.To.Name
				if outside[key] == nil {
					outside[key] = edge.To
					j.Boxes = append(j.Boxes, edge.To)
				}
				edge.To = outside[key]
			}
			j.Edges = append(j.Edges, edge)
		}
	}
	j.Title = fmt.Sprintf("%s: %s", phrase.FirstNames(names), j.size())
	return j
}

// peerOf returns the edge of another node that is the other end of a tunnel of node i.
func peerOf(graphs []*Graph, i int, tunnel *Edge) (*Edge, bool) {
	if tunnel.To.Kind != Remote {
		return nil, false
	}
	for index, graph := range graphs {
		if index == i || !slices.Contains(graph.addresses, tunnel.To.address) {
			continue
		}
		for _, edge := range graph.Edges {
			back := edge.To.Kind == Remote && slices.Contains(graphs[i].addresses, edge.To.address) || edge.ToPort == tunnel.FromPort
			if edge.Kind == Tunnel && back && tunnelType(edge) == tunnelType(tunnel) {
				return edge, true
			}
		}
	}
	return nil, false
}

// tunnelType returns the detail of a tunnel's port that is its type.
func tunnelType(edge *Edge) string {
	at := slices.IndexFunc(edge.FromPort.Detail, func(detail string) bool { return strings.HasPrefix(detail, "type: ") })
	if at < 0 {
		return ""
	}
	return edge.FromPort.Detail[at]
}
