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

// state matches what a match says about conntrack and registers.
var state = regexp.MustCompile(`!?\b(?:reg|ct|flags|xreg|xxreg)[^&|()]*`)

// maxAbsent bounds the flows that Absent looks at.
const maxAbsent = 100

// Candidate is a logical flow of a stage that may match packets between two ports.
type Candidate struct {
	uuid     string
	priority int
	match    string
	present  bool // the node has its flow
}

// Candidates returns the logical flows of the stage of a flow that may match packets with the
// ports of a subject, whatever the packet is; none if the node has the flows of them all.
// present reports whether a cookie is in the table of the flow.
func (r *Rules) Candidates(f Flow, s Subject, present func(cookie uint64) bool) ([]Candidate, error) {
	pipeline, table := f.Layout.logical(f.Table)
	if pipeline == "" {
		return nil, nil
	}
	s.anyPacket = true
	var all []Candidate
	lacks := false
	err := r.inStage(pipeline, table, func(row ovsdb.Row) bool {
		match := row.String("match")
		if _, member := r.datapathOfFlow(row, f.Metadata); !member || r.evaluate(match, s) < possible {
			return true
		}
		cookie, _ := strconv.ParseUint(row.UUID[:8], 16, 32)
		c := Candidate{uuid: row.UUID, match: match, present: present(cookie)}
		c.priority, _ = row.Int("priority")
		lacks = lacks || !c.present
		all = append(all, c)
		return true
	})
	if !lacks {
		return nil, err
	}
	return all, err
}

// Lacking returns the logical flows of candidates that a node lacks and that would have let a
// packet pass: it ended at a flow with a priority (-1 if it matched none), and they match it,
// apart from what depends on conntrack or registers, with a higher one. Where the node has a
// flow of the same priority that matches the packet for the same values of these, that may
// stand for both.
func (r *Rules) Lacking(candidates []Candidate, priority int, s Subject) ([]Rule, error) {
	var lacking []Rule
	written := map[string]bool{}
	kind := func(priority int, match string) string {
		return fmt.Sprint(priority, state.FindAllString(match, -1))
	}
	for _, c := range candidates {
		if c.priority <= priority || r.evaluate(c.match, s) < possible {
			continue
		}
		if c.present {
			written[kind(c.priority, c.match)] = true
			continue
		}
		row, ok, err := r.sb.Row(logicalFlow, c.uuid)
		if err != nil {
			return nil, err
		}
		rule, err := r.LogicalFlow(row)
		if err != nil {
			return nil, err
		}
		if ok && !strings.HasPrefix(rule.Actions, "drop") && rule.Cause.Action != "drop" && rule.Cause.Action != "reject" {
			lacking = append(lacking, rule)
		}
	}
	return slices.DeleteFunc(lacking, func(rule Rule) bool { return written[kind(rule.Priority, rule.Match)] }), nil
}
