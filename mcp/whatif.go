package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/ovn/names"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/set"
)

// WhatIfParams are the parameters of what-if.
type WhatIfParams struct {
	NodesParams
	Change   []string `json:"change" jsonschema:"commands of ovn-nbctl: acl-add web to-lport 1001 'tcp' drop"`
	From     string   `json:"from,omitempty" jsonschema:"also follow a packet before and after"`
	To       string   `json:"to,omitempty"`
	Protocol string   `json:"protocol,omitempty"`
	PatternParams
	LineParams
}

// WhatIfResult is the result of what-if.
type WhatIfResult struct {
	Verdict string   `json:"verdict,omitempty" jsonschema:"of the packet, before -> after"`
	Changes []string `json:"changes" jsonschema:"for each node what is added, removed and changed, and for which policy, port or route"`
	Before  []string `json:"before,omitempty"`
	After   []string `json:"after,omitempty"`
	Doubts  []string `json:"doubts,omitempty"`
	Assumed []string `json:"assumed,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
	Notice  string   `json:"notice"`
	Excerpt
}

func (q questions) whatIf(ctx context.Context, request *sdk.CallToolRequest, in WhatIfParams) (_ *sdk.CallToolResult, out WhatIfResult, err error) {
	question, err := in.question()
	if err != nil {
		return nil, out, err
	}
	chosen, err := q.choose(ctx, in.Names)
	if err != nil {
		return nil, out, err
	}
	question.Runtime, question.Runtimes, question.Progress = q.runtime(), q.Runtimes, progress(ctx, request)
	question.Replica = func(path string) whatif.Replica { return set.At(path, q.Version) }
	if question.Deployment, err = whatif.Of(ctx, chosen.Snapshot); err != nil {
		return nil, out, err
	}
	found, err := whatif.Answer(ctx, question)
	if found == nil {
		return nil, out, err
	}
	out = WhatIfResult{Doubts: escapeAll(found.Doubts), Assumed: escapeAll(found.Assumed), Remarks: escapeAll(found.Remarks), Notice: notice}
	if err != nil { // of the packet
		out.Remarks = append(out.Remarks, terminal.Escape(err.Error()))
	}
	if traced := found.Trace; traced != nil {
		out.Verdict = traced.Verdict
		out.Before, out.After = linesOrProblem(traced.Before, traced.BeforeProblem), linesOrProblem(traced.After, traced.AfterProblem)
	}
	out.Changes, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		for _, node := range found.Nodes {
			fmt.Fprintln(w, terminal.Escape(node.Node+": "+node.Summary()))
			writeDifferences(w, node.Node+": added: ", node.Added)
			writeDifferences(w, node.Node+": removed: ", node.Removed)
			writeDifferences(w, node.Node+": changed: ", node.Changed)
		}
		return nil
	})
	return nil, out, err
}

// question returns the change and the packet as a question, without the nodes.
func (in *WhatIfParams) question() (question whatif.Question, err error) {
	if question.Change, err = whatif.ReadScript(strings.NewReader(strings.Join(in.Change, "\n"))); err != nil {
		return question, err
	}
	if (in.From == "") != (in.To == "") {
		return question, errors.New("from and to go together")
	}
	if in.From == "" {
		return question, nil
	}
	question.Trace = &trace.Between{From: in.From, To: in.To, Question: names.Question{Protocol: in.Protocol}}
	packet := TraceParams{From: in.From, To: in.To, Protocol: in.Protocol}
	return question, packet.check()
}

// linesOrProblem returns the text of an answer, or why there is none.
func linesOrProblem(found *answer.Answer, problem string) []string {
	if found == nil {
		return []string{terminal.Escape(problem)}
	}
	lines, _, err := answerLines(found, answer.Options{})
	if err != nil {
		return []string{terminal.Escape(err.Error())}
	}
	return lines
}
