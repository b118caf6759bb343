package rules

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/ovsdb"
)

// stage is a stage of a kind of datapath.
type stage struct {
	name string
	// always is set if the datapath has a logical flow in the stage that every packet
	// matches. Then a packet without a flow misses one that the logical flows call for.
	always bool
}

// stage returns the stage that is a table of a pipeline of a datapath.
func (r *Rules) stage(pipeline string, table int, d Datapath) (stage, error) {
	var s stage
	err := r.inStage(pipeline, table, func(row ovsdb.Row) bool {
		name := row.Map("external_ids")["stage-name"]
		if router := strings.HasPrefix(name, "lr_"); router != d.Router && d.Name != "" {
			return true
		}
		if s.name == "" {
			s.name = name
		}
		if priority, _ := row.Int("priority"); priority == 0 && strings.TrimSpace(row.String("match")) == "1" {
			_, member := r.datapathOfFlow(row, d.Key)
			s.always = s.always || member
		}
		return !s.always
	})
	if s.name == "" {
		s.name = fmt.Sprintf("%s table %d", pipeline, table)
	}
	return s, err
}

// StageOf returns the name of the stage that is a flow's table, or what the table is for.
func (r *Rules) StageOf(f Flow) (string, error) {
	pipeline, table := f.Layout.logical(f.Table)
	if pipeline == "" {
		return f.Layout.physical(f.Table), nil
	}
	s, err := r.stage(pipeline, table, r.Datapath(f.Metadata))
	return s.name, err
}

// inStage calls use with the logical flows of a table of a pipeline until it returns
// false. It parses no others: of half a million flows a stage has some thousands.
func (r *Rules) inStage(pipeline string, table int, use func(row ovsdb.Row) bool) error {
	// ovsdb-server writes JSON without blanks, but other writers may not.
	quoted := []byte(strconv.Quote(pipeline))
	number := regexp.MustCompile(`"table_id"\s*:\s*` + strconv.Itoa(table) + `\b`)
	accept := func(text []byte) bool {
		return bytes.Contains(text, quoted) && number.Match(text)
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

// local matches what makes ovn-controller leave a logical flow out on some chassis, or
// write it with other cookies: ports, groups and sets that may be empty there, and
// templates.
var local = regexp.MustCompile(`inport|outport|is_chassis_resident|[$@^]|reside`)

// Absent returns the logical flows of a stage that the node of a packet should have and
// has not. ovn-controller writes a flow for each one on every chassis with the datapath,
// unless its match depends on the chassis or it can't parse it. It writes one flow for
// those with the same match. present reports whether a cookie is on the node. Flows whose
// matches overlap in another way may be returned although the node has all it should.
func (r *Rules) Absent(f Flow, present func(cookie uint64) bool) ([]Rule, error) {
	pipeline, table := f.Layout.logical(f.Table)
	if pipeline == "" {
		return nil, nil
	}
	written := map[string]bool{} // the priorities and matches that the node has
	var absent []Rule
	err := r.inStage(pipeline, table, func(row ovsdb.Row) bool {
		cookie, _ := strconv.ParseUint(row.UUID[:8], 16, 32)
		priority, _ := row.Int("priority")
		match := row.String("match")
		datapath, member := r.datapathOfFlow(row, f.Metadata)
		switch {
		case !member || local.MatchString(match):
		case present(cookie):
			written[fmt.Sprint(priority, match)] = true
		case len(absent) < maxAbsent:
			absent = append(absent, Rule{Row: logicalFlow, UUID: row.UUID, Pipeline: pipeline, Table: table, Priority: priority, Match: match,
				Actions: row.String("actions"), Stage: row.Map("external_ids")["stage-name"], Datapath: datapath})
		}
		return true
	})
	return slices.DeleteFunc(absent, func(rule Rule) bool { return written[fmt.Sprint(rule.Priority, rule.Match)] }), err
}

// maxAbsent bounds the flows that Absent looks at.
const maxAbsent = 100
