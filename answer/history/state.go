package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ovs-offline/pkg/ovsdb/file"
)

// ErrBefore is wrapped by the error for a time before the oldest state in a file.
var ErrBefore = errors.New("the file holds no state of that time")

// State is a database at a time.
type State struct {
	Node        string         `json:"node,omitempty"`
	Database    string         `json:"database"`
	Transaction int64          `json:"transaction"` // the last one until the time
	Time        time.Time      `json:"time,omitzero"`
	Tables      map[string]int `json:"tables,omitempty"` // number of rows, of tables that have any
	Rows        []Row          `json:"rows,omitempty"`   // if the query names a table or a record
	Remarks     []string       `json:"-"`
	Lost        bool           `json:"-"`
}

// At returns the state of a database at the time until which the query reads: the wanted
// rows if it names a table or a record, else the number of rows of each table. Before the
// oldest state in the file, the error wraps ErrBefore.
func At(ctx context.Context, source Source, query Query) (*State, error) {
	log, err := file.OpenLog(ctx, source.Open, source.File, query.selection())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	state := &State{Node: source.Node, Database: source.Title}
	for {
		transaction, err := log.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		state.Transaction, state.Time = transaction.Number, transaction.Time
	}
	if state.Transaction == 0 {
		return nil, before(ctx, source, query.Until)
	}
	if query.Table == "" && query.Record == "" {
		state.Tables = log.Counts()
	} else if err := log.Rows(func(c *file.Change) error {
		state.Rows = append(state.Rows, rowOf(c))
		return nil
	}); err != nil {
		return nil, err
	}
	state.Remarks, state.Lost = log.Remarks(), log.Lost()
	return state, nil
}

// before returns the error for a time before the oldest state in a file.
func before(ctx context.Context, source Source, at time.Time) error {
	log, err := file.OpenLog(ctx, source.Open, source.File, file.Selection{Accept: func(*file.Change) bool { return false }})
	if err != nil {
		return err
	}
	defer log.Close()
	transaction, err := log.Next()
	if err == io.EOF {
		return fmt.Errorf("%w: %s has no transactions", ErrBefore, source.name())
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: the oldest state of %s that it holds is of %s, after %s",
		ErrBefore, source.name(), timeText(transaction.Time), timeText(at))
}

// Save writes the database of the time until which the query reads to the file dst, as
// ovsdb-server serves it. The state describes it.
func Save(ctx context.Context, source Source, until time.Time, dst string) (*State, error) {
	state, err := At(ctx, source, Query{Until: until})
	if err != nil {
		return nil, err
	}
	_, state.Remarks, err = file.StandaloneAt(ctx, source.File, dst, state.Transaction)
	return state, err
}
