package rules

import (
	"strconv"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/pass"
)

// End returns where a pass ended on an integration bridge, from the stages of the pass up
// to last, where the packet ended; all of them if last is nil.
func (r *Rules) End(p *pass.Pass, last *pass.Stage, bridge string, layout Layout) (End, error) {
	end := End{Layout: layout}
	for _, s := range p.Stages[:upTo(p.Stages, last)] {
		key := s.Key()
		f := FlowOf(key, layout)
		// ofproto/trace prints a pass that resumes on the integration bridge below the name
		// of the bridge where the packet came in. Only OVN's flows match the metadata.
		if s.Bridge != bridge && f.Metadata == 0 {
			continue
		}
		if end.Miss = s.Miss; s.Miss {
			end.MissTable = s.Table
			continue
		}
		rule, found, err := r.Find(f)
		if err != nil {
			return End{}, err
		}
		if r.IsStale(f, found) {
			if rule, err = r.Stale(f); err != nil {
				return End{}, err
			}
		} else if f.isForeign(found, s.Lines...) {
			rule = r.foreignRule(f, s.Flow)
		}
		if f.Metadata != 0 {
			end.Metadata = f.Metadata
		}
		if out := key.Number("reg15"); out != 0 {
			end.OutPort = out
		}
		for _, line := range s.Lines {
			text, field, _ := openflow.Assignment(line)
			value, err := strconv.ParseUint(text, 0, 64)
			switch {
			case err != nil: // another action, or one that changes a part of a field
			case field == "metadata":
				end.Metadata, end.OutPort = value, 0 // the datapath has not chosen a port yet
			case field == "reg15":
				end.OutPort = value
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
