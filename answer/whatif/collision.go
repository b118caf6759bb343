package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovn"
)

// Collision is a table of integration bridges that has flows of a stage of a logical pipeline beside flows that ovn-controller
// writes for itself: the pipelines of ovn-northd have more stages than an ovn-controller of another release has tables for. Of flows
// with the same priority that match the same packet, Open vSwitch takes any one (OpenFlow 1.5, section 5.4), so that what packets
// fare there is not known.
type Collision struct {
	Table  int      `json:"table"`
	Stages []string `json:"stages"`
	Nodes  []string `json:"nodes"`
}

func (c Collision) String() string {
	return fmt.Sprintf("table %d of %s has flows of %s beside flows that ovn-controller writes for itself: what becomes of packets there is not known", c.Table, strings.Join(c.Nodes, ", "), strings.Join(c.Stages, ", "))
}

// collisions returns the collisions of what is installed on nodes, in the order of tables.
func (m *moment) collisions(nodes []ovn.Node) ([]Collision, error) {
	found := map[int]*Collision{}
	for _, node := range nodes {
		own, logical := map[int]bool{}, map[int]string{}
		for _, flow := range m.states[node.Name].Flows {
			key := flow.Key()
			switch _, ofDatapath := key.Field("metadata"); {
			case !ofDatapath && !openflow.IsClause(flow.Actions()):
				own[key.Table] = true
			case logical[key.Table] == "" && key.Cookie != 0 && len(m.sb.Begins(ovn.LogicalFlowTable, uint32(key.Cookie))) > 0:
				logical[key.Table] = flow.Text
			}
		}
		for table, flow := range logical {
			if !own[table] {
				continue
			}
			if err := m.addCollision(found, node.Name, table, flow); err != nil {
				return nil, err
			}
		}
	}
	var all []Collision
	for _, table := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[table])
	}
	return all, nil
}

// addCollision adds a table of a node that has a flow of a logical flow.
func (m *moment) addCollision(found map[int]*Collision, node string, table int, flow string) error {
	uuid := m.sb.Begins(ovn.LogicalFlowTable, uint32(openflow.Flow{Text: flow}.Key().Cookie))[0]
	row, _, err := m.sb.Row(ovn.LogicalFlowTable, uuid)
	if err != nil {
		return err
	}
	if found[table] == nil {
		found[table] = &Collision{Table: table}
	}
	collision, stage := found[table], row.Map("external_ids")["stage-name"]
	collision.Nodes = append(collision.Nodes, node)
	if !slices.Contains(collision.Stages, stage) {
		collision.Stages = append(collision.Stages, stage)
	}
	return nil
}
