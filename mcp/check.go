package mcp

import (
	"context"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/terminal"
)

// CheckParams are the parameters of check.
type CheckParams struct {
	NodesParams
	PatternParams
	LineParams
}

// CheckResult is the result of check.
type CheckResult struct {
	Summary   string   `json:"summary"`
	Findings  []string `json:"findings" jsonschema:"the worst first, each with what follows from it and what to do next"`
	NotJudged []string `json:"not_judged,omitempty"`
	Remarks   []string `json:"remarks,omitempty"`
	Notice    string   `json:"notice"`
	Excerpt
}

func (q questions) check(ctx context.Context, request *sdk.CallToolRequest, in CheckParams) (_ *sdk.CallToolResult, out CheckResult, err error) {
	chosen, err := q.choose(ctx, in.Names)
	if err != nil {
		return nil, out, err
	}
	found, err := check.Run(ctx, chosen.Snapshot, check.Options{Programs: rule.Programs{Runtime: q.runtime(), Runtimes: q.Runtimes}, Progress: progress(ctx, request)})
	if err != nil {
		return nil, out, err
	}
	out = CheckResult{Summary: found.Summary(), NotJudged: escapeAll(found.Unjudged), Remarks: escapeAll(found.Remarks), Notice: notice}
	out.Findings, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		for _, f := range found.Findings {
			fmt.Fprintln(w, terminal.Escape(findingLine(f)))
		}
		return nil
	})
	return nil, out, err
}

// findingLine returns a finding with what follows and what to do next as a line.
func findingLine(f rule.Finding) string {
	text := check.Line(f) + "; follows: " + f.Follows
	for _, next := range f.Next {
		text += "; next: " + next.Text(nil)
	}
	return text
}
