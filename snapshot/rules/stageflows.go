package rules

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb"
)

// stageFlow is what decides whether a logical flow of a stage is for a packet.
type stageFlow struct {
	uuid      string
	priority  int
	match     string
	datapaths []uint64 // the tunnel keys of its datapaths; flows of one group share them
}

// isFor reports whether the flow is for the datapath with a tunnel key; 0 stands for any.
func (f stageFlow) isFor(key uint64) bool { return key == 0 || slices.Contains(f.datapaths, key) }

// stageID identifies a table of a pipeline.
type stageID struct {
	pipeline string
	table    int
}

// stageFlows keeps the flows of stages, because a matrix of questions asks for the same ones again
// and again.
type stageFlows struct {
	mu    sync.Mutex
	known map[stageID][]stageFlow
	count int // of all flows in known
}

// maxStageFlows bounds the flows that are kept, some 300 bytes each.
const maxStageFlows = 100_000

// flowsOf returns the flows of a table of a pipeline.
func (r *Rules) flowsOf(pipeline string, table int) ([]stageFlow, error) {
	kept, id := &r.stages, stageID{pipeline, table}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if flows, known := kept.known[id]; known {
		return flows, nil
	}
	flows, err := r.readStage(id)
	if err != nil || len(flows) > maxStageFlows {
		return flows, err
	}
	if kept.known == nil || kept.count+len(flows) > maxStageFlows {
		kept.known, kept.count = map[stageID][]stageFlow{}, 0
	}
	kept.known[id] = flows
	kept.count += len(flows)
	return flows, nil
}

func (r *Rules) readStage(id stageID) (flows []stageFlow, err error) {
	ofGroup := map[string][]uint64{} // the tunnel keys of the members of a group of datapaths
	err = r.inStage(id.pipeline, id.table, func(row ovsdb.Row) bool {
		flow := stageFlow{uuid: row.UUID, match: row.String("match")}
		flow.priority, _ = row.Int("priority")
		flow.datapaths = r.keysOf(row.UUIDs("logical_datapath"))
		for _, group := range row.UUIDs("logical_dp_group") {
			if _, known := ofGroup[group]; !known {
				members, _, _ := r.sb.Row(ovn.DatapathGroupTable, group, "datapaths") // a group that can't be read has no members
				ofGroup[group] = r.keysOf(members.UUIDs("datapaths"))
			}
			if flow.datapaths == nil {
				flow.datapaths = ofGroup[group]
			} else {
				flow.datapaths = slices.Concat(flow.datapaths, ofGroup[group])
			}
		}
		flows = append(flows, flow)
		return true
	})
	return flows, err
}

// keysOf returns the tunnel keys of datapaths, nil for none.
func (n *Network) keysOf(ids []string) (keys []uint64) {
	for _, id := range ids {
		keys = append(keys, n.datapaths().byUUID[id].Key)
	}
	return keys
}

// inStage calls use with the logical flows of a table of a pipeline until it returns
// false. It parses no others: of half a million flows a stage has some thousands.
func (r *Rules) inStage(pipeline string, table int, use func(row ovsdb.Row) bool) error {
	// ovsdb-server writes JSON without blanks, but other writers may not.
	quoted := []byte(strconv.Quote(pipeline))
	number := regexp.MustCompile(`"table_id"\s*:\s*` + strconv.Itoa(table) + `\b`)
	accept := func(text []byte) bool {
		// A database file leaves out a column with its default, 0 (ovsdb(5)).
		return bytes.Contains(text, quoted) && (table == 0 || number.Match(text))
	}
	for row, err := range r.sb.Matching(logicalFlow, accept) {
		if err != nil {
			return err
		}
		if n, _ := row.Int("table_id"); n != table || row.String("pipeline") != pipeline {
			continue
		}
		if !use(row) {
			return nil
		}
	}
	return nil
}
