package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/test/oracle/sets"
)

const (
	traceSet  = "openstack"
	questions = 20000 // of the matrix
)

// trace measures a question that crosses two nodes, and the questions of a matrix. The
// nodes are those of a set of the lab, which runs first.
func (s sizes) trace() bench {
	nodes, matrix := s.path("nodes"), s.path("matrix.yaml")
	const one, many, plain = "trace vm1 vm2:22", "trace --file, 20,000 questions", "ovs-appctl ofproto/trace"
	return bench{
		name: "trace over nodes",
		prepare: func(ctx context.Context) error {
			if err := s.startSet(ctx, traceSet, nodes, sets.Run); err != nil {
				return err
			}
			return writeMatrix(matrix)
		},
		targets: []target{
			duration("a trace over two nodes, and its reply", one, 300),
			duration("20,000 traces of a matrix", many, 30000),
			memory("20,000 traces of a matrix: peak memory", peak, many, 256),
		},
		ways: []way{
			{name: one, steps: func() []step { return []step{{s.ours(nodes, "trace", "vm1", "vm2:22")}} }},
			{name: plain, steps: func() []step {
				return []step{{command{argv: []string{"ovs-appctl", "ofproto/trace", "br-int", "in_port=1,icmp"}, env: []string{"OVS_RUNDIR=" + filepath.Join(nodes, "compute1", "var-run/ovs")}}}}
			}},
			{name: many, steps: func() []step { return []step{{s.ours(nodes, "trace", "--file", matrix)}} }},
		},
		finish: s.stop(nodes),
	}
}

// startSet records a set of the lab and starts the replicas of its nodes in a folder.
func (s sizes) startSet(ctx context.Context, name, folder string, record func(context.Context, sets.Options, string) (*sets.Set, error)) error {
	recorded := s.path("set-" + name)
	if err := os.MkdirAll(recorded, 0o755); err != nil {
		return err
	}
	set, err := record(ctx, sets.Options{Lab: "scripts/lab/lab", Name: name}, recorded)
	if err != nil {
		return err
	}
	for _, node := range set.Nodes {
		report, err := set.Report(node)
		if err != nil {
			return err
		}
		if err := do(ctx, s.program, "-w", filepath.Join(folder, node), "collect", report); err != nil {
			return err
		}
	}
	return do(ctx, s.program, "-w", folder, "start")
}

// writeMatrix writes the questions between some virtual machines of the set, over many
// ports.
func writeMatrix(file string) error {
	names := []string{"vm1", "vm2", "vm3", "vm4", "vm5", "vm6", "vm7", "vm8"}
	var b strings.Builder
	b.WriteString("checks:\n")
	for i := range questions {
		from, distance := i%len(names), 1+i/len(names)%(len(names)-1)
		to, port := (from+distance)%len(names), 1+i/len(names)/(len(names)-1)
		fmt.Fprintf(&b, "- {from: %s, to: '%s:%d', protocol: tcp}\n", names[from], names[to], port)
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
