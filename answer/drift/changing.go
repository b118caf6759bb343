package drift

import (
	"slices"
	"strconv"
	"time"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// lag is how long ovn-controller may take to add the flows of a change. It takes seconds for a
// whole network.
const lag = 3 * time.Second

// installing returns the age up to which a recorded flow may be newer than the collected databases.
func (n *recordedNode) installing() time.Duration {
	databases, switched := n.manifest.DatabasesRecorded(workdir.OVS, workdir.SB), n.manifest.Collection(workdir.OVS)
	if databases.IsZero() || switched == nil || switched.Collected.Before(databases) {
		return lag
	}
	return switched.Collected.Sub(databases) + lag
}

// young returns the flows that may be newer than the databases, by their lines in the recorded dump.
func (n *recordedNode) young() map[int]bool {
	young, installing := map[int]bool{}, n.installing()
	for _, f := range n.state.Flows {
		if f.Age > 0 && f.Age < installing {
			young[f.Line] = true
		}
	}
	return young
}

// setChangingApart removes from a difference what may have been on its way, and returns it. That is each flow
// that ovn-controller had just added and that does not follow from the collected databases, and whatever else
// differs of its row or its datapath.
func (c *comparison) setChangingApart(diff *flowdiff.Diff) (changing []flowdiff.Change, err error) {
	added, err := c.justAdded(slices.Concat(diff.OnlyA, diff.Changed))
	if err != nil {
		return nil, err
	}
	cookies, datapaths := map[uint64]bool{}, map[uint64]bool{}
	for _, change := range added {
		cookies[cookieOf(change)], datapaths[datapathKey(change)] = true, true
	}
	delete(cookies, 0)   // of no row
	delete(datapaths, 0) // of no or of all datapaths
	isChanging := func(change flowdiff.Change) bool {
		found := cookies[cookieOf(change)] || datapaths[datapathKey(change)] || added[change.LineA] == change
		if found {
			changing = append(changing, change)
		}
		return found
	}
	for _, list := range []*[]flowdiff.Change{&diff.OnlyA, &diff.OnlyB, &diff.Changed} {
		*list = slices.DeleteFunc(*list, isChanging)
	}
	return changing, nil
}

// justAdded returns the flows that ovn-controller added when the node was collected, or seconds before it, by
// their lines in the recorded dump.
func (c *comparison) justAdded(differing []flowdiff.Change) (map[int]flowdiff.Change, error) {
	young, added := c.node.young(), map[int]flowdiff.Change{}
	for _, change := range differing {
		if change.Kind != flowdiff.KindFlow || !young[change.LineA] {
			continue
		}
		cause, _, err := c.recordedNames.CauseOf(change.A)
		if err != nil {
			return nil, err
		}
		if cause.Words != rules.Foreign {
			added[change.LineA] = change
		}
	}
	return added, nil
}

// flowOf returns the flow that differs, or the one that uses the group or the meter.
func flowOf(change flowdiff.Change) openflow.Flow {
	if change.Kind == flowdiff.KindFlow {
		return openflow.Flow{Text: change.Text()}
	}
	return openflow.Flow{Text: change.User}
}

func cookieOf(change flowdiff.Change) uint64 { return flowOf(change).Key().Cookie }

// datapathKey returns the tunnel key of the logical datapath of a flow, or of the flow that uses a group or
// a meter; 0 if it is for none or for all. A flow for packets from an interface does not match the key, but sets it.
func datapathKey(change flowdiff.Change) (key uint64) {
	flow := flowOf(change)
	if key = flow.Key().Number("metadata"); key != 0 {
		return key
	}
	for action := range openflow.Split(flow.Actions()) {
		if value, field, ok := openflow.Assignment(action); ok && field == "metadata" {
			key, _ = strconv.ParseUint(value, 0, 64) // a masked value is no key
		}
	}
	return key
}
