package mcp

import (
	"context"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/history"
	"ovs-offline/answer/timeline"
	"ovs-offline/internal/daemonlog"
)

// TimelineParams are the parameters of timeline.
type TimelineParams struct {
	NodesParams
	Since  string `json:"since,omitempty" jsonschema:"time as in 2026-11-22T14:57:26Z"`
	Until  string `json:"until,omitempty"`
	Record string `json:"record,omitempty" jsonschema:"name or UUID"`
	Level  string `json:"level,omitempty" jsonschema:"this or worse: dbg, info, warn, err; without it also what changed"`
	PatternParams
	LineParams
}

// TimelineResult is the result of timeline.
type TimelineResult struct {
	Lines   []string `json:"lines"`
	Remarks []string `json:"remarks,omitempty"`
	Excerpt
	Notice string `json:"notice"`
}

func (q questions) timeline(ctx context.Context, _ *sdk.CallToolRequest, in TimelineParams) (_ *sdk.CallToolResult, out TimelineResult, err error) {
	query := timeline.Query{Record: in.Record}
	if query.Since, query.Until, err = history.ParseRange(in.Since, in.Until); err != nil {
		return nil, out, err
	}
	var known bool
	if query.Level, known = daemonlog.ParseLevel(in.Level); !known && in.Level != "" {
		return nil, out, wrongValue("level", in.Level, daemonlog.Levels()...)
	}
	chosen, err := q.choose(ctx, in.Names)
	if err != nil {
		return nil, out, err
	}
	found, err := timeline.Open(ctx, chosen.Snapshot, query)
	if err != nil {
		return nil, out, err
	}
	defer found.Close()
	out.Notice = notice
	out.Lines, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		result, err := found.Read(ctx, 0, func(entry *timeline.Entry) error {
			_, err := fmt.Fprintln(w, entryLine(entry))
			return err
		})
		out.Remarks = escapeAll(result.Remarks)
		return err
	})
	return nil, out, err
}

// entryLine returns an entry as one line.
func entryLine(e *timeline.Entry) string {
	text := fmt.Sprintf("%s %s %s %s", e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), history.DatabaseName(e.Node, e.Database), e.Program, e.Level)
	if e.Module != "" {
		text += " " + e.Module
	}
	text += ": " + e.Text
	if e.Count > 1 {
		text += fmt.Sprintf(" (%d times", e.Count)
		if !e.Until.IsZero() {
			text += " until " + e.Until.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		text += ")"
	}
	return text
}
