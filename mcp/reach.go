package mcp

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace"
	"ovs-offline/internal/terminal"
)

// ReachParams are the parameters of reach.
type ReachParams struct {
	From     []string `json:"from,omitempty" jsonschema:"names of groups or endpoints, * stands for any text; all without it"`
	To       []string `json:"to,omitempty" jsonschema:"names of groups or endpoints, * stands for any text; all without it"`
	Ports    []string `json:"ports,omitempty" jsonschema:"icmp, tcp/80, udp/53; the ports of ACLs and load balancers without it"`
	By       string   `json:"by,omitempty" jsonschema:"namespace, group, network or port; what fits the deployment without it"`
	Services bool     `json:"services,omitempty" jsonschema:"also ask for the addresses of services"`
	Family   int      `json:"family,omitempty" jsonschema:"4 or 6; without it IPv4 where both ends have it"`
	PatternParams
	LineParams
}

// ReachResult is the result of reach.
type ReachResult struct {
	Cells     []string       `json:"cells" jsonschema:"one line for each pair of groups and port: FROM -> TO PORT: VERDICT, the reason and the rule"`
	Verdicts  map[string]int `json:"verdicts" jsonschema:"number of cells by verdict"`
	Questions int            `json:"questions"`
	Over      string         `json:"over,omitempty" jsonschema:"the IP versions that the questions are about"`
	Remarks   []string       `json:"remarks,omitempty"`
	Notice    string         `json:"notice"`
	Excerpt
}

func (q questions) reach(ctx context.Context, request *sdk.CallToolRequest, in ReachParams) (_ *sdk.CallToolResult, out ReachResult, err error) {
	options, err := in.options()
	if err != nil {
		return nil, out, err
	}
	session, err := q.openSession(ctx, trace.Options{})
	if err != nil {
		return nil, out, err
	}
	defer session.Close()
	matrix, err := reach.New(ctx, session, options)
	if err != nil {
		return nil, out, err
	}
	out = ReachResult{Verdicts: map[string]int{}, Questions: matrix.Questions, Notice: notice}
	document := reach.Document{Matrix: matrix}
	notify := progress(ctx, request)
	out.Cells, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		for cell := range matrix.Cells(ctx) {
			out.Verdicts[string(cell.Verdict)]++
			fmt.Fprintln(w, terminal.Escape(cellText(cell)))
			if document.Count(cell); document.Answered%500 < len(cell.Asked) {
				notify(fmt.Sprintf("asked %d of %d questions", document.Answered, matrix.Questions))
			}
		}
		return context.Cause(ctx)
	})
	out.Over = document.Over()
	out.Remarks = escapeAll(append(remarks(session), matrix.Remarks...))
	return nil, out, err
}

// options returns the options of a matrix.
func (in *ReachParams) options() (reach.Options, error) {
	options := reach.Options{By: reach.By(in.By), From: in.From, To: in.To, Services: in.Services, Family: in.Family}
	if ways := []string{string(reach.ByNamespace), string(reach.ByGroup), string(reach.ByNetwork), string(reach.ByPort)}; in.By != "" && !slices.Contains(ways, in.By) {
		return options, wrongValue("by", in.By, ways...)
	}
	for _, text := range in.Ports {
		port, err := reach.ParsePort(text)
		if err != nil {
			return options, err
		}
		options.Ports = append(options.Ports, port)
	}
	return options, checkFamily(in.Family)
}

// cellText returns a cell as a line, with the reason and the rule of the first answer that
// has one.
func cellText(cell reach.Cell) string {
	line := fmt.Sprintf("%s -> %s %s: %s", cell.From, cell.To, cell.Port, cell.Verdict)
	for _, asked := range cell.Asked {
		if why := strings.TrimSpace(asked.Reason + "  " + asked.Rule); why != "" {
			return line + "  " + why
		}
	}
	return line
}
