package mcp

import (
	"context"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/compare"
	"ovs-offline/desired/drift"
	"ovs-offline/internal/terminal"
)

// DriftParams are the parameters of drift.
type DriftParams struct {
	NodeParams
	Northd bool `json:"northd,omitempty" jsonschema:"also compare the logical flows with what ovn-northd makes of the northbound database"`
	PatternParams
	LineParams
}

// DriftResult is the result of drift.
type DriftResult struct {
	Trust       Trust    `json:"trust"`
	Verdict     string   `json:"verdict" jsonschema:"no drift, drift, undetermined or no OVN"`
	Summary     string   `json:"summary"`
	Differences []string `json:"differences" jsonschema:"each begins with missing, extra or altered, and names what the flows are for"`
	NotCompared []string `json:"not_compared,omitempty"`
	Remarks     []string `json:"remarks,omitempty"`
	Excerpt
}

// CompareParams are the parameters of compare.
type CompareParams struct {
	Old string `json:"old" jsonschema:"the earlier capture: an sos report, a must-gather, or a file or folder of ovs-offline, relative to the server's root"`
	New string `json:"new" jsonschema:"the later capture"`
	PatternParams
	LineParams
}

// CompareResult is the result of compare.
type CompareResult struct {
	Same        bool     `json:"same"`
	Changes     []string `json:"changes" jsonschema:"what was added, is gone or changed, in names, each with the number of flows that follow"`
	NotCompared []string `json:"not_compared,omitempty"`
	Remarks     []string `json:"remarks,omitempty"`
	Notice      string   `json:"notice"`
	Excerpt
}

func (s *Server) addComparingTools() {
	sdk.AddTool(s.server, &sdk.Tool{Name: "drift", Annotations: readOnly(),
		Description: "Compare the flows, groups and meters that were recorded on a node with those that the node's own release of OVN computes from the recorded databases: what is missing, extra or altered, and of which policy, service or port. No replica needs to run."}, s.drift)
	if s.Root != "" {
		sdk.AddTool(s.server, &sdk.Tool{Name: "compare", Annotations: readOnly(),
			Description: "Compare two captures of nodes below the server's root, in names: what was added, is gone or changed in OVN and Open vSwitch, and flows that nothing explains. What only has another number is no change."}, s.compare)
	}
}

func (s *Server) drift(ctx context.Context, request *sdk.CallToolRequest, in DriftParams) (_ *sdk.CallToolResult, out DriftResult, err error) {
	n, wd, err := s.node(in.Name)
	if err != nil {
		return nil, out, err
	}
	r, err := drift.Check(ctx, wd, drift.Options{Runtime: s.runtime(), Version: s.Version, Northd: in.Northd, Progress: progress(ctx, request)})
	if err != nil {
		return nil, out, err
	}
	out = DriftResult{Trust: trust(n, wd), Verdict: string(r.Verdict), Summary: terminal.Escape(r.Summary()), Remarks: escaped(r.Remarks)}
	for _, l := range r.LeftOut {
		out.NotCompared = append(out.NotCompared, terminal.Escape(l.String()))
	}
	out.Differences, out.Excerpt, err = chosen(in.LineParams, in.PatternParams, func(w io.Writer) error {
		list(w, "", r.Missing, r.Extra, r.Altered)
		if r.Northd != nil {
			out.Summary += "; ovn-northd: " + r.Northd.Summary()
			list(w, "ovn-northd: ", r.Northd.Missing, r.Northd.Extra, r.Northd.Altered)
		}
		return nil
	})
	return nil, out, err
}

// list writes a line for each difference.
func list(w io.Writer, prefix string, missing, extra, altered []drift.Difference) {
	for _, part := range []struct {
		how  string
		list []drift.Difference
	}{{"missing", missing}, {"extra", extra}, {"altered", altered}} {
		for _, d := range part.list {
			fmt.Fprintf(w, "%s%s: %s\n", prefix, part.how, terminal.Escape(d.String()))
		}
	}
}

func (s *Server) compare(ctx context.Context, request *sdk.CallToolRequest, in CompareParams) (_ *sdk.CallToolResult, out CompareResult, err error) {
	older, err := s.side(ctx, request, in.Old)
	if err != nil {
		return nil, out, err
	}
	defer older.Close()
	newer, err := s.side(ctx, request, in.New)
	if err != nil {
		return nil, out, err
	}
	defer newer.Close()
	found, err := compare.Compare(ctx, older, newer)
	if err != nil {
		return nil, out, err
	}
	out = CompareResult{Same: found.Same, NotCompared: escaped(found.Missing), Remarks: escaped(found.Remarks), Notice: notice}
	out.Changes, out.Excerpt, err = chosen(in.LineParams, in.PatternParams, func(w io.Writer) error {
		for _, f := range found.Findings {
			fmt.Fprintln(w, terminal.Escape(f.Line()))
		}
		return nil
	})
	return nil, out, err
}

// side opens a capture below the root.
func (s *Server) side(ctx context.Context, request *sdk.CallToolRequest, path string) (*compare.Side, error) {
	path, err := below(s.Root, path)
	if err != nil {
		return nil, err
	}
	return compare.Open(ctx, path, compare.OpenOptions{Version: s.Version, Progress: reading(progress(ctx, request))})
}
