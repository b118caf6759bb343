package rules

import (
	"regexp"
	"strconv"

	"ovs-offline/trace/pass"
)

// changedMetadata matches the action by which a packet goes to another datapath.
var changedMetadata = regexp.MustCompile(`^set_field:(0x[0-9a-f]+|[0-9]+)->metadata$`)

// outPort matches the tunnel key of the output port in a match of the egress pipeline, and
// chosenPort in the action that chooses it.
var (
	outPort    = regexp.MustCompile(`(?:^|,)reg15=(0x[0-9a-f]+)(?:,|$)`)
	chosenPort = regexp.MustCompile(`^set_field:(0x[0-9a-f]+|[0-9]+)->reg15$`)
)

// End returns where a pass ended on an integration bridge, from the stages of the pass up
// to last, where the packet ended; all of them if last is nil.
func (r *Rules) End(p *pass.Pass, last *pass.Stage, bridge string, layout Layout) (End, error) {
	end := End{Layout: layout}
	for _, s := range p.Stages[:upTo(p.Stages, last)] {
		// ofproto/trace prints a pass that resumes on the integration bridge below the name
		// of the bridge where the packet came in. Only OVN's flows match the metadata.
		if s.Bridge != bridge && metadataOf(s.Flow) == 0 {
			continue
		}
		if end.Miss = s.Miss; s.Miss {
			end.MissTable = s.Table
			continue
		}
		f := Flow{Cookie: s.Cookie, Table: s.Table, Priority: s.Priority, Metadata: metadataOf(s.Flow), Layout: layout}
		rule, found, err := r.Find(f)
		if err != nil {
			return End{}, err
		}
		if f.isForeign(found, s.Lines...) {
			rule = r.foreignRule(f, s.Flow)
		}
		if f.Metadata != 0 {
			end.Metadata = f.Metadata
		}
		if m := outPort.FindStringSubmatch(s.Flow); m != nil {
			end.OutPort, _ = strconv.ParseUint(m[1], 0, 64)
		}
		for _, line := range s.Lines {
			if m := changedMetadata.FindStringSubmatch(line); m != nil {
				end.Metadata, _ = strconv.ParseUint(m[1], 0, 64)
				end.OutPort = 0 // the datapath has not chosen a port yet
			}
			if m := chosenPort.FindStringSubmatch(line); m != nil {
				end.OutPort, _ = strconv.ParseUint(m[1], 0, 64)
			}
		}
		end.Steps = append(end.Steps, Step{Table: s.Table, Rule: rule})
	}
	return end, nil
}

// upTo returns the number of stages up to the last one that equals last.
func upTo(stages []pass.Stage, last *pass.Stage) int {
	for i := len(stages) - 1; last != nil && i >= 0; i-- {
		s := stages[i]
		if s.Bridge == last.Bridge && s.Table == last.Table && s.Cookie == last.Cookie && s.Flow == last.Flow && s.Depth == last.Depth {
			return i + 1
		}
	}
	return len(stages)
}

// metadataOf returns the tunnel key of the datapath in a match, 0 for none.
func metadataOf(match string) uint64 {
	f, err := ParseFlow(match)
	if err != nil {
		return 0
	}
	return f.Metadata
}
