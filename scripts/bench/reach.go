package main

import (
	"context"

	"ovs-offline/test/oracle/sets"
)

// matrixSet is a set of the lab without packets: 100 namespaces whose pods are on each of its
// nodes, and ACLs that name two ports.
const matrixSet = "matrix"

// reach measures a matrix of 100 x 100 groups and three ports.
func (s sizes) reach() bench {
	nodes := s.path("matrix")
	const all = "reach -o csv, 120,000 questions"
	return bench{
		name:    "reach over nodes",
		prepare: func(ctx context.Context) error { return s.startSet(ctx, matrixSet, nodes, sets.Capture) },
		targets: []target{
			duration("a matrix of 100 x 100 groups, 3 ports", all, 120000),
			memory("a matrix of 100 x 100 groups, 3 ports: peak memory", peak, all, 256),
		},
		ways: []way{{
			name:    all,
			once:    true,
			steps:   func() []step { return []step{{s.ours(nodes, "reach", "-o", "csv")}} },
			daemons: []string{nodes},
		}},
		finish: s.stop(nodes),
	}
}
