package graph

import (
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// builder makes a graph from the rows of a database.
type builder struct {
	graph     *Graph
	rows      map[string]ovsdb.Row // ports and interfaces by UUID
	endpoints map[string]endpoint  // of the ports that have edges to other ports, by name
	pairs     [][2]string          // of the names of a port and its peer
	outside   map[string]*Box      // remotes or physical networks, by name
}

// endpoint is an end of an edge: a port and its box, or a box.
type endpoint struct {
	box  *Box
	port *Port
}

// newBuilder returns a builder that has the rows of some tables.
func newBuilder(content *file.Content, remarks []string, tables ...string) builder {
	builder := builder{graph: &Graph{Remarks: remarks}, rows: map[string]ovsdb.Row{}, endpoints: map[string]endpoint{}, outside: map[string]*Box{}}
	for _, table := range tables {
		for _, row := range content.Rows(table) {
			builder.rows[row.UUID] = row
		}
	}
	return builder
}

func (b *builder) join(from, to endpoint, kind Kind, state State) {
	b.graph.Edges = append(b.graph.Edges, &Edge{From: from.box, FromPort: from.port, To: to.box, ToPort: to.port, Kind: kind, State: state})
}

// joinOutside joins a port with a remote or a physical network.
func (b *builder) joinOutside(from endpoint, to Box, kind Kind, state State) {
	box := b.outside[to.Name]
	if box == nil {
		box = &to
		b.outside[to.Name] = box
		b.graph.Boxes = append(b.graph.Boxes, box)
	}
	b.join(from, endpoint{box: box}, kind, state)
}

// joinPeers joins ports that are peers of each other, each pair once. It calls alone
// with each port whose peer is not one of the ports.
func (b *builder) joinPeers(kind Kind, alone func(*Port)) {
	joined := map[[2]string]bool{}
	for _, pair := range b.pairs {
		from, to := b.endpoints[pair[0]], b.endpoints[pair[1]]
		switch {
		case to.port == nil:
			alone(from.port)
		case !joined[[2]string{pair[1], pair[0]}]:
			joined[pair] = true
			state := Up
			if from.port.State == Failed || to.port.State == Failed {
				state = Failed
			}
			b.join(from, to, kind, state)
		}
	}
}
