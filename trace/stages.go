package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/host"
	"ovs-offline/trace/pass"
	"ovs-offline/trace/rules"
)

// pipelines knows what the tables of a node's bridges are for.
type pipelines struct {
	layouts map[string]rules.Layout // of the bridges that ovn-controller writes to
	agents  map[string]string       // the kinds of the bridges of neutron's agent
}

// readPipelines finds the tables of OVN's pipelines from the flows that were collected,
// because they differ from release to release.
func readPipelines(r *rules.Rules, wd *workdir.Dir, h *host.Host, ovs *file.Index) (pipelines, error) {
	p := pipelines{layouts: map[string]rules.Layout{}}
	if r == nil {
		var err error
		p.agents, err = rules.AgentBridges(ovs)
		return p, err
	}
	for _, bridge := range bridgesOf(h) {
		layout, err := readLayout(r, wd.DumpFile(bridge, workdir.Flows))
		if err != nil {
			return p, fmt.Errorf("the flows of bridge %s: %w", bridge, err)
		}
		if layout != (rules.Layout{}) {
			p.layouts[bridge] = layout
		}
	}
	return p, nil
}

func bridgesOf(h *host.Host) []string {
	var bridges []string
	for _, p := range h.Ports() {
		if !slices.Contains(bridges, p.Bridge) {
			bridges = append(bridges, p.Bridge)
		}
	}
	return bridges
}

func readLayout(r *rules.Rules, dump string) (rules.Layout, error) {
	f, err := os.Open(dump)
	if errors.Is(err, fs.ErrNotExist) {
		return rules.Layout{}, nil
	}
	if err != nil {
		return rules.Layout{}, err
	}
	defer f.Close()
	return r.Layout(func(yield func(rules.Flow) bool) {
		for entry, problem := range openflow.Flows(f) {
			if problem != nil {
				continue // the report names it
			}
			if parsed, err := rules.ParseFlow(entry.Text); err == nil && !yield(parsed) {
				return
			}
		}
	})
}

// stage describes a stage of a pass, and returns its rule.
func (n *node) stage(s pass.Stage) (answer.Stage, rules.Rule, error) {
	a := answer.Stage{Table: s.Table, Flow: s.Flow, Actions: strings.Join(s.Lines, "\n")}
	if !s.Miss {
		a.Flow = strings.TrimPrefix(fmt.Sprintf("%s,priority=%d", s.Flow, s.Priority), ",")
		a.Cookie = fmt.Sprintf("%#x", s.Cookie)
	}
	p, err := n.pipelines()
	if err != nil {
		return a, rules.Rule{}, err
	}
	layout, ovn := p.layouts[s.Bridge]
	if !ovn {
		a.Name = rules.AgentTable(p.agents[s.Bridge], s.Table)
		return a, rules.Rule{}, nil
	}
	rule, ok, err := n.zone.rules.Find(rules.Flow{Cookie: s.Cookie, Table: s.Table, Priority: s.Priority, Metadata: metadata(s.Flow), Layout: layout})
	if err != nil || !ok {
		return a, rule, err
	}
	a.Name, a.Pipeline, a.Match, a.Rule, a.Row, a.RuleName = rule.Stage, rule.Pipeline, rule.Match, rule.Words, rule.Cause.Table, rule.Cause.Name
	if rule.Datapath.Name != "" {
		a.Datapath = rule.Datapath.String()
	}
	return a, rule, nil
}

// metadata returns the key of the logical datapath that a flow matches, 0 without one.
func metadata(match string) uint64 {
	_, rest, found := strings.Cut(","+match, ",metadata=")
	if !found {
		return 0
	}
	text, _, _ := strings.Cut(rest, ",")
	key, _ := strconv.ParseUint(text, 0, 64)
	return key
}
