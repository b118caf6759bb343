package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot"
)

// Collision is a table of integration bridges in which flows of a stage of a logical pipeline stand beside flows that
// ovn-controller writes for itself. It occurs if ovn-northd is of another release and its pipelines have more stages than
// ovn-controller has tables for. If two flows of the same priority match a packet, OpenFlow leaves open which of them applies
// (ovs-ofctl(8), "priority"), so the result for that packet is not known.
type Collision struct {
	Table  int      `json:"table"`
	Stages []string `json:"stages"`
	Nodes  []string `json:"nodes"`
}

func (c Collision) String() string {
	return fmt.Sprintf("table %d of %s has flows of %s beside flows that ovn-controller writes for itself: which of them apply to a packet is not known", c.Table, strings.Join(c.Nodes, ", "), strings.Join(c.Stages, ", "))
}

// collisions returns the collisions of what is installed on nodes, in the order of tables.
func (m *moment) collisions(nodes []snapshot.Member) ([]Collision, error) {
	found := map[int]*Collision{}
	for _, node := range nodes {
		own, logical := map[int]bool{}, map[int]string{} // the tables of flows, and the UUID of a logical flow of each table
		for _, flow := range m.states[node.Name].Flows {
			key := flow.Key()
			switch _, ofDatapath := key.Field("metadata"); {
			case !ofDatapath && !openflow.IsClause(flow.Actions()):
				own[key.Table] = true
			case logical[key.Table] == "" && key.Cookie != 0:
				for _, uuid := range m.sb.Begins(ovn.LogicalFlowTable, uint32(key.Cookie)) {
					logical[key.Table] = uuid
				}
			}
		}
		for table, uuid := range logical {
			if !own[table] {
				continue
			}
			row, _, err := m.sb.Row(ovn.LogicalFlowTable, uuid)
			if err != nil {
				return nil, err
			}
			if found[table] == nil {
				found[table] = &Collision{Table: table}
			}
			found[table].add(node.Name, row.Map("external_ids")["stage-name"])
		}
	}
	var all []Collision
	for _, table := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[table])
	}
	return all, nil
}

// add adds a node whose table has flows of a stage.
func (c *Collision) add(node, stage string) {
	c.Nodes = append(c.Nodes, node)
	if !slices.Contains(c.Stages, stage) {
		c.Stages = append(c.Stages, stage)
	}
}
