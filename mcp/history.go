package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/history"
	"ovs-offline/internal/workdir"
)

// HistoryParams are the parameters of history.
type HistoryParams struct {
	NodeParams
	Database string `json:"database" jsonschema:"nbdb, sbdb or conf (Open vSwitch)"`
	Table    string `json:"table,omitempty"`
	Record   string `json:"record,omitempty" jsonschema:"name, UUID or its beginning"`
	Column   string `json:"column,omitempty"`
	Since    string `json:"since,omitempty" jsonschema:"time as in 2026-11-22T14:57:26Z"`
	Until    string `json:"until,omitempty"`
	PatternParams
	LineParams
}

func (q questions) history(ctx context.Context, _ *sdk.CallToolRequest, in HistoryParams) (_ *sdk.CallToolResult, out LinesResult, err error) {
	kind, known := map[string]workdir.Kind{"nbdb": workdir.NB, "sbdb": workdir.SB, "conf": workdir.OVS}[in.Database]
	if !known {
		return nil, out, wrongValue("database", in.Database, "nbdb", "sbdb", "conf")
	}
	node, wd, err := q.find(ctx, in.Name)
	if err != nil {
		return nil, out, err
	}
	query := history.Query{Table: in.Table, Record: in.Record, Column: in.Column}
	if query.Since, query.Until, err = history.ParseRange(in.Since, in.Until); err != nil {
		return nil, out, err
	}
	source, err := history.Of("", kind, wd, wd)
	if err != nil {
		return nil, out, err
	}
	if source.File == "" && len(source.Logs) == 0 {
		return nil, out, fmt.Errorf("no %s database was collected for node %s", kind.Title(), node.FolderName())
	}
	out.Trust = trustIn(node, wd)
	out.Lines, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		results, err := history.Read(ctx, []history.Source{source}, query, func(event *history.Event) error {
			_, err := io.WriteString(w, eventLines(event))
			return err
		})
		for _, result := range results {
			out.Remarks = append(out.Remarks, escapeAll(result.Remarks)...)
			if result.Compacted {
				out.Remarks = append(out.Remarks, "the file holds one state only, of "+result.Base.UTC().Format(time.RFC3339))
			}
		}
		return err
	})
	return nil, out, err
}

// eventLines returns a line for each row or request of an event, with its time and comment.
func eventLines(event *history.Event) string {
	head := event.Time.UTC().Format("2006-01-02T15:04:05.000Z") + " " + event.Comment
	var text strings.Builder
	for _, row := range event.Rows {
		fmt.Fprintf(&text, "%s: %s %s %s (%s)", head, row.Change, row.Table, row.Name, row.UUID)
		for name, column := range row.Columns {
			fmt.Fprintf(&text, "; %s: %s -> %s", name, column.Old, column.New)
		}
		text.WriteString("\n")
	}
	for _, request := range event.Requests {
		fmt.Fprintf(&text, "%s: %s asks: %s %s %s %s %s\n", head, event.Log, request.Operation, request.Table, request.UUID, request.Row, request.Mutations)
	}
	if text.Len() == 0 {
		fmt.Fprintf(&text, "%s: %d rows\n", head, event.Count)
	}
	return text.String()
}
