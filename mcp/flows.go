package mcp

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/flows"
	"ovs-offline/internal/terminal"
	"ovs-offline/snapshot"
)

// FlowsParams are the parameters of flows.
type FlowsParams struct {
	NodeParams
	Bridge   string   `json:"bridge,omitempty"`
	Table    string   `json:"table,omitempty" jsonschema:"number, or name of a stage"`
	Match    []string `json:"match,omitempty" jsonschema:"fields with or without values"`
	Port     string   `json:"port,omitempty" jsonschema:"logical port or interface"`
	Switch   string   `json:"switch,omitempty"`
	Router   string   `json:"router,omitempty"`
	Policy   string   `json:"policy,omitempty" jsonschema:"part of what the flow is for"`
	Hit      bool     `json:"hit,omitempty" jsonschema:"only flows that matched packets"`
	NeverHit bool     `json:"never_hit,omitempty"`
	Sort     string   `json:"sort,omitempty" jsonschema:"packets, bytes or table"`
	PatternParams
	LineParams
}

// LinesResult is the result of a tool that reads what was recorded.
type LinesResult struct {
	Trust   Trust    `json:"trust"`
	Lines   []string `json:"lines"`
	Remarks []string `json:"remarks,omitempty"`
	Excerpt
}

// TopParams are the parameters of top.
type TopParams struct {
	NodesParams
	By    string `json:"by,omitempty" jsonschema:"rule (the default), acl, policy, lb, route, stage, table or node"`
	Limit int    `json:"limit,omitempty" jsonschema:"length of each list (default 10)"`
}

// TopResult is the result of top.
type TopResult struct {
	Top     map[string]any `json:"top"`
	Remarks []string       `json:"remarks,omitempty"`
	Notice  string         `json:"notice"`
}

func (q questions) flows(ctx context.Context, _ *sdk.CallToolRequest, in FlowsParams) (_ *sdk.CallToolResult, out LinesResult, err error) {
	node, wd, err := q.find(ctx, in.Name)
	if err != nil {
		return nil, out, err
	}
	order := flows.Order(in.Sort)
	if !slices.Contains([]flows.Order{flows.AsRecorded, flows.ByPackets, flows.ByBytes, flows.ByTable}, order) {
		return nil, out, wrongValue("sort", in.Sort, "packets", "bytes", "table")
	}
	query := flows.Query{Bridge: in.Bridge, Sort: order, Filter: flows.Filter{Table: in.Table, Match: in.Match, Port: in.Port,
		Switch: in.Switch, Router: in.Router, Policy: in.Policy, Hit: in.Hit, NeverHit: in.NeverHit}}
	sources := []flows.Source{{Dir: wd}}
	out.Trust = trustIn(node, wd)
	out.Lines, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		listed, err := flows.List(ctx, sources, query, func(flow flows.Flow) error {
			_, err := fmt.Fprintln(w, terminal.Escape(flowLine(flow)))
			return err
		})
		out.Remarks = escapeAll(listed.Remarks)
		if err == nil && listed.Flows == 0 {
			err = query.Known(ctx, sources)
		}
		return err
	})
	return nil, out, err
}

// flowLine returns a flow as a line.
func flowLine(flow flows.Flow) string {
	packets := "-"
	if flow.Packets != nil {
		packets = fmt.Sprint(*flow.Packets)
	}
	return fmt.Sprintf("packets=%s %s table=%d %s priority=%d %s: %s", packets, flow.Bridge, flow.Table, flow.Stage, flow.Priority, flow.Where(), flow.For)
}

func (q questions) top(ctx context.Context, _ *sdk.CallToolRequest, in TopParams) (_ *sdk.CallToolResult, out TopResult, err error) {
	const usual, most = 10, 100
	by := cmp.Or(flows.By(in.By), flows.ByRule)
	if !slices.Contains(flows.Kinds(), by) || in.Limit < 0 || in.Limit > most {
		return nil, out, fmt.Errorf("by is one of %v, and limit at most %d", flows.Kinds(), most)
	}
	chosen, err := q.choose(ctx, in.Names)
	if err != nil {
		return nil, out, err
	}
	var sources []flows.Source
	for _, node := range snapshot.WithSwitch(chosen.Nodes()) {
		wd, err := node.Workdir()
		if err != nil {
			return nil, out, err
		}
		sources = append(sources, flows.Source{Name: node.FolderName(), Dir: wd})
	}
	found, listed, err := flows.Count(ctx, sources, by, cmp.Or(in.Limit, usual))
	if err != nil {
		return nil, out, err
	}
	defer found.Close()
	if err := found.Examine(ctx); err != nil {
		return nil, out, err
	}
	out.Remarks, out.Notice = escapeAll(listed.Remarks), notice
	out.Top, err = escapeDocument(found)
	return nil, out, err
}
