package trace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/pass"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// pipelines knows what the tables of a node's bridges are for.
type pipelines struct {
	layouts map[string]rules.Layout // of the bridges that ovn-controller writes to
	agents  map[string]string       // the kinds of the bridges of neutron's agent
}

// readPipelines finds the tables of OVN's pipelines from the flows that were collected,
// because they differ from release to release.
func readPipelines(known *rules.Rules, wd *workdir.Dir, node *host.Host, ovs *file.Index) (pipelines, error) {
	found := pipelines{layouts: map[string]rules.Layout{}}
	if known == nil {
		if ovs == nil {
			return found, nil
		}
		var err error
		found.agents, err = rules.AgentBridges(ovs)
		return found, err
	}
	for _, bridge := range bridgesOf(node) {
		layout, err := known.ReadLayout(context.Background(), &wd.Data, wd.DumpFile(bridge, workdir.Flows))
		if err != nil {
			return found, fmt.Errorf("the flows of bridge %s: %w", bridge, err)
		}
		if layout != (rules.Layout{}) {
			found.layouts[bridge] = layout
		}
	}
	return found, nil
}

func bridgesOf(node *host.Host) []string {
	var bridges []string
	for _, port := range node.Ports() {
		if !slices.Contains(bridges, port.Bridge) {
			bridges = append(bridges, port.Bridge)
		}
	}
	return bridges
}

// describeStage describes a stage of a pass, and returns its rule.
func (n *node) describeStage(passed pass.Stage) (answer.Stage, rules.Rule, error) {
	if passed.Chain != "" {
		return n.describeRule(passed), rules.Rule{}, nil
	}
	stage := answer.Stage{Table: passed.Table, Flow: passed.Flow, Actions: strings.Join(passed.Lines, "\n")}
	if !passed.Miss {
		stage.Flow = strings.TrimPrefix(fmt.Sprintf("%s,priority=%d", passed.Flow, passed.Priority), ",")
		stage.Cookie = fmt.Sprintf("%#x", passed.Cookie)
	}
	tables, err := n.pipelines()
	if err != nil {
		return stage, rules.Rule{}, err
	}
	layout, ovn := tables.layouts[passed.Bridge]
	if !ovn {
		stage.Name = rules.AgentTable(tables.agents[passed.Bridge], passed.Table)
		n.describeGateway(&stage, passed)
		return stage, rules.Rule{}, nil
	}
	flow := rules.FlowOf(passed.Key(), layout)
	rule, ok, err := n.zone.rules.Find(flow)
	if err == nil && n.zone.rules.IsStale(flow, ok) && !passed.Miss {
		rule, err = n.zone.rules.Stale(flow)
		ok, stage.Stale = true, n.isStale(rule)
	}
	if err != nil || !ok {
		return stage, rule, err
	}
	stage.Name, stage.Pipeline, stage.Match, stage.Rule, stage.Row, stage.RuleName = rule.Stage, rule.Pipeline, rule.Match, rule.Words, rule.Cause.Table, rule.Cause.Name
	if rule.Datapath.Name != "" {
		stage.Datapath = rule.Datapath.String()
	}
	return stage, rule, nil
}

// describeGateway adds what a flow of ovnkube-node is for, in the bridge to the outside of a node.
func (n *node) describeGateway(stage *answer.Stage, passed pass.Stage) {
	if n.zone.rules == nil || passed.Miss {
		return
	}
	portOf := func(number string) string {
		of, err := strconv.Atoi(number)
		if port, ok := n.Numbered(passed.Bridge, of); ok && err == nil {
			return port.Name
		}
		return ""
	}
	name, words, ok := n.zone.rules.Gateway(rules.GatewayFlow{Key: passed.Key(), Actions: strings.Join(passed.Lines, ","), Port: portOf})
	if ok {
		stage.Name, stage.Rule = name, words
	}
}

// describeRule describes a rule of netfilter that a packet met in a network namespace.
func (n *node) describeRule(met pass.Stage) answer.Stage {
	var serviceAt func(string) string
	if n.zone.rules != nil {
		serviceAt = n.zone.rules.ServiceAt
	}
	return answer.Stage{Chain: met.Chain, Name: met.Chain, Flow: met.Flow, Actions: strings.Join(met.Lines, "\n"), Rule: rules.NetfilterWords(met.Chain, met.Flow, serviceAt)}
}
