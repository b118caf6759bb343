package appctl

import (
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/lines"
)

// EngineNode is a node of the incremental engine of ovn-controller or ovn-northd, with the numbers of its
// runs (inc-engine/show-stats, lib/inc-proc-eng.c of OVN).
type EngineNode struct {
	Name      string `json:"name"`
	Recompute int    `json:"recompute"` // it computed everything again
	Compute   int    `json:"compute"`   // it computed what changed
	Cancel    int    `json:"cancel"`    // it was stopped
}

// Engine reads the output of inc-engine/show-stats.
func Engine(r io.Reader) (nodes []EngineNode, err error) {
	_, err = lines.Read(r, func(raw []byte) error {
		name, value, _ := strings.Cut(strings.TrimSpace(string(raw)), ":")
		value = strings.TrimSpace(value)
		if name == "Node" {
			nodes = append(nodes, EngineNode{Name: value})
			return nil
		}
		n, err := strconv.Atoi(value)
		if err != nil || len(nodes) == 0 {
			return nil // a heading
		}
		node := &nodes[len(nodes)-1]
		switch strings.TrimPrefix(name, "- ") {
		case "recompute":
			node.Recompute = n
		case "compute":
			node.Compute = n
		case "cancel", "abort", "cancel/abort":
			node.Cancel = n
		}
		return nil
	})
	return nodes, err
}
