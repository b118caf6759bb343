package mcp

import (
	"context"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/compare"
	"ovs-offline/answer/drift"
	"ovs-offline/answer/flowdiff"
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

func (q questions) drift(ctx context.Context, request *sdk.CallToolRequest, in DriftParams) (_ *sdk.CallToolResult, out DriftResult, err error) {
	node, wd, err := q.find(ctx, in.Name)
	if err != nil {
		return nil, out, err
	}
	found, err := drift.Check(ctx, wd, drift.Options{Runtime: q.runtime(), Runtimes: q.Runtimes, Northd: in.Northd, Progress: progress(ctx, request)})
	if err != nil {
		return nil, out, err
	}
	out = DriftResult{Trust: trustIn(node, wd), Verdict: string(found.Verdict), Summary: terminal.Escape(found.Summary()), Remarks: escapeAll(found.Remarks)}
	for _, left := range found.LeftOut {
		out.NotCompared = append(out.NotCompared, terminal.Escape(left.String()))
	}
	out.Differences, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		writeDifferences(w, "missing: ", found.Missing)
		writeDifferences(w, "extra: ", found.Extra)
		writeDifferences(w, "altered: ", found.Altered)
		if northd := found.Northd; northd != nil {
			out.Summary += "; ovn-northd: " + northd.Summary()
			writeDifferences(w, "ovn-northd: missing: ", northd.Missing)
			writeDifferences(w, "ovn-northd: extra: ", northd.Extra)
			writeDifferences(w, "ovn-northd: altered: ", northd.Altered)
		}
		return nil
	})
	return nil, out, err
}

// writeDifferences writes a line for each difference.
func writeDifferences[E flowdiff.Entry](w io.Writer, prefix string, differences []flowdiff.Difference[E]) {
	for _, difference := range differences {
		fmt.Fprintln(w, terminal.Escape(prefix+difference.String()))
	}
}

func (q questions) compare(ctx context.Context, request *sdk.CallToolRequest, in CompareParams) (_ *sdk.CallToolResult, out CompareResult, err error) {
	older, err := q.openCapture(ctx, request, in.Old)
	if err != nil {
		return nil, out, err
	}
	defer older.Close()
	newer, err := q.openCapture(ctx, request, in.New)
	if err != nil {
		return nil, out, err
	}
	defer newer.Close()
	found, err := compare.Compare(ctx, older, newer)
	if err != nil {
		return nil, out, err
	}
	out = CompareResult{Same: found.Same, NotCompared: escapeAll(found.Missing), Remarks: escapeAll(found.Remarks), Notice: notice}
	out.Changes, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		for _, finding := range found.Findings {
			fmt.Fprintln(w, terminal.Escape(finding.Line()))
		}
		return nil
	})
	return nil, out, err
}

// openCapture opens a capture below the root.
func (q questions) openCapture(ctx context.Context, request *sdk.CallToolRequest, path string) (*compare.Side, error) {
	path, err := findBelow(q.Root, path)
	if err != nil {
		return nil, err
	}
	return compare.Open(ctx, path, compare.OpenOptions{Progress: reportReading(progress(ctx, request))})
}
