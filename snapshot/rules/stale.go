package rules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// deletion is a row that a transaction deleted.
type deletion struct {
	table   string
	row     ovsdb.Row // as it was
	at      time.Time
	comment string // of the transaction
}

// IsStale reports whether a flow has a cookie as ovn-controller writes it, and no southbound row has it. found is set if
// one has. A database without times of transactions was made from printed tables, which lack the UUIDs of logical flows.
func (r *Rules) IsStale(f Flow, found bool) bool {
	return !found && f.Cookie != 0 && f.Cookie <= 0xffffffff && !r.sb.Changed.IsZero()
}

// Stale describes a flow whose cookie no southbound row has, by the logs of the database files: the deleted row, and the
// northbound row that it was made from. ReadStale reads for many flows at once.
func (r *Rules) Stale(f Flow) (Rule, error) {
	if err := r.ReadStale(f); err != nil {
		return Rule{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deleted[f], nil
}

// ReadStale reads the logs of the databases once for all flows among the given ones whose cookies no southbound row has.
func (r *Rules) ReadStale(flows ...Flow) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	var unknown []Flow
	for _, f := range flows {
		_, found, err := r.Find(f)
		if err != nil {
			return err
		}
		if _, known := r.deleted[f]; r.IsStale(f, found) && !known {
			unknown = append(unknown, f)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	rows, err := deletions(r.sb, sourceTables(), func(uuid string) bool {
		return slices.ContainsFunc(unknown, func(f Flow) bool { return strings.HasPrefix(uuid, fmt.Sprintf("%08x", f.Cookie)) })
	})
	if err != nil {
		return err
	}
	causes, err := r.deletedCauses(rows)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.deleted) >= maxCached {
		clear(r.deleted)
	}
	for _, f := range unknown {
		r.deleted[f] = r.staleRule(f, rows, causes)
	}
	return nil
}

// deletedCauses returns the northbound rows that logical flows name as their hints and that were deleted.
func (r *Rules) deletedCauses(flows []deletion) ([]deletion, error) {
	var hints []string
	for _, flow := range flows {
		if hint := flow.row.Value("external_ids", "stage-hint"); hint != "" {
			hints = append(hints, hint)
		}
	}
	if len(hints) == 0 || r.nb == nil {
		return nil, nil
	}
	return deletions(r.nb, hintTables(""), func(uuid string) bool {
		return slices.ContainsFunc(hints, func(hint string) bool { return strings.HasPrefix(uuid, hint) })
	})
}

// staleRule describes a flow by the deleted row that has its cookie.
func (r *Rules) staleRule(f Flow, rows, causes []deletion) Rule {
	made := Rule{Stage: f.Layout.physical(f.Table), Words: "a logical flow that the southbound database no longer has", Stale: true, Datapath: r.Datapath(f.Metadata)}
	pipeline, table := f.Layout.logical(f.Table)
	if name, err := r.StageOf(f); err == nil {
		made.Stage = name
	}
	if made.Pipeline = pipeline; pipeline == "" {
		made.Words = "a row that the southbound database no longer has"
	}
	for _, gone := range rows {
		if !strings.HasPrefix(gone.row.UUID, fmt.Sprintf("%08x", f.Cookie)) || (gone.table == logicalFlow) != (pipeline != "") {
			continue
		}
		if gone.table != logicalFlow {
			made.Row, made.UUID, made.Words = gone.table, gone.row.UUID, r.describe(gone.table, gone.row, made.Datapath)+", "+gone.when()
			break
		}
		rule, err := r.LogicalFlow(gone.row)
		if err != nil || rule.Pipeline != pipeline || rule.Table != table || rule.Priority != f.Priority {
			continue
		}
		rule.Stale, rule.Datapath = true, made.Datapath
		return r.explainDeleted(rule, gone, causes)
	}
	return made
}

// explainDeleted names the rule of a deleted logical flow by the northbound row that was deleted before it, else by
// the one that is still there.
func (r *Rules) explainDeleted(rule Rule, flow deletion, causes []deletion) Rule {
	hint := flow.row.Value("external_ids", "stage-hint")
	for _, table := range hintTables(rule.Stage) {
		for _, gone := range causes {
			if gone.table == table && hint != "" && strings.HasPrefix(gone.row.UUID, hint) && rule.Cause.UUID != gone.row.UUID {
				rule.Cause = r.explain(table, gone.row, rule)
				rule.Words = rule.words() + ", " + gone.when()
				return rule
			}
		}
	}
	rule.Words += ": its logical flow was " + flow.when()
	return rule
}

// when returns when a row was deleted, and the command if the transaction names one.
func (d deletion) when() string {
	text := "deleted"
	if !d.at.IsZero() {
		text += " at " + show.Time(d.at)
	}
	program, command, ok := strings.Cut(d.comment, ": ")
	if ok && strings.HasPrefix(program, "ovn-") {
		text += fmt.Sprintf(" (%s)", phrase.Shorten(strings.TrimSpace(command), 200))
	}
	return text
}

// deletions returns the rows of tables that the transactions in a database file deleted, in their order; none of
// printed tables.
func deletions(of *file.Index, tables []string, wanted func(uuid string) bool) (all []deletion, err error) {
	if of.Info.Form == file.FormPrinted {
		return nil, nil
	}
	deleted := func(change *file.Change) bool { return change.Kind == file.Deleted && wanted(change.UUID) }
	log, err := file.OpenLog(context.Background(), of.Open, of.Path, file.Selection{Tables: tables, Brief: true, Accept: deleted})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for {
		transaction, err := log.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for _, change := range transaction.Changes {
			all = append(all, deletion{change.Table, change.Old, transaction.Time, transaction.Comment})
		}
	}
}
