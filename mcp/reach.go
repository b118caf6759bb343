package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/terminal"
	"ovs-offline/reach"
	"ovs-offline/trace"
)

// ReachParams are the parameters of reach.
type ReachParams struct {
	From     []string `json:"from,omitempty" jsonschema:"names of groups or endpoints, * stands for any text; all without it"`
	To       []string `json:"to,omitempty" jsonschema:"names of groups or endpoints, * stands for any text; all without it"`
	Ports    []string `json:"ports,omitempty" jsonschema:"icmp, tcp/80, udp/53; those of ACLs and load balancers without it"`
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
	Over      string         `json:"over,omitempty" jsonschema:"over which IP versions was asked"`
	Remarks   []string       `json:"remarks,omitempty"`
	Notice    string         `json:"notice"`
	Excerpt
}

func (s *Server) addReachTool() {
	sdk.AddTool(s.server, &sdk.Tool{Name: "reach", Annotations: readOnly(),
		Description: "Say who reaches whom: the verdict of a trace for each pair of groups of endpoints that behave alike, and each port. Narrow it with from, to and ports; use pattern, for example \"UNREACHABLE\", to choose among the cells."}, s.reach)
}

func (s *Server) reach(ctx context.Context, request *sdk.CallToolRequest, in ReachParams) (_ *sdk.CallToolResult, out ReachResult, err error) {
	o := reach.Options{By: reach.By(in.By), From: in.From, To: in.To, Services: in.Services, Family: in.Family}
	switch o.By {
	case "", reach.ByNamespace, reach.ByGroup, reach.ByNetwork, reach.ByPort:
	default:
		return nil, out, fmt.Errorf("by is namespace, group, network or port, not %q", in.By[:min(len(in.By), 80)])
	}
	if err := checkFamily(in.Family); err != nil {
		return nil, out, err
	}
	for _, text := range in.Ports {
		p, err := reach.ParsePort(text)
		if err != nil {
			return nil, out, err
		}
		o.Ports = append(o.Ports, p)
	}
	session, err := s.session(ctx, trace.Options{})
	if err != nil {
		return nil, out, err
	}
	defer session.Close()
	m, err := reach.New(ctx, session, o)
	if err != nil {
		return nil, out, err
	}
	out = ReachResult{Verdicts: map[string]int{}, Questions: m.Questions, Notice: notice}
	d := reach.Document{Matrix: m}
	say := progress(ctx, request)
	out.Cells, out.Excerpt, err = chosen(in.LineParams, in.PatternParams, func(w io.Writer) error {
		for c := range m.Cells(ctx) {
			out.Verdicts[string(c.Verdict)]++
			fmt.Fprintln(w, terminal.Escape(cellText(c)))
			if d.Count(c); d.Answered%500 < len(c.Asked) {
				say(fmt.Sprintf("asked %d of %d questions", d.Answered, m.Questions))
			}
		}
		return context.Cause(ctx)
	})
	out.Over = d.Over()
	out.Remarks = escaped(append(remarks(session), m.Remarks...))
	return nil, out, err
}

// cellText returns a cell as a line, with the reason and the rule of the first answer that
// has one.
func cellText(c reach.Cell) string {
	line := fmt.Sprintf("%s -> %s %s: %s", c.From, c.To, c.Port, c.Verdict)
	for _, a := range c.Asked {
		if why := strings.TrimSpace(a.Reason + "  " + a.Rule); why != "" {
			return line + "  " + why
		}
	}
	return line
}
