package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/pkg/ovsdb/file"
)

// ReadLast works like Read for the last events: at most limit of them, or all for 0.
func ReadLast(ctx context.Context, sources []Source, query Query, limit int, yield func(*Event) error) ([]Result, error) {
	if limit == 0 {
		return Read(ctx, sources, query, yield)
	}
	var last []*Event
	results, err := Read(ctx, sources, query, func(event *Event) error {
		if last = append(last, event); len(last) >= 2*limit {
			last = slices.Clone(last[len(last)-limit:])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, event := range last[max(0, len(last)-limit):] {
		if err := yield(event); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// FindTable gives the table of the query the spelling of the schemas. A table that no database
// has is an error, unless logs of clients may name it.
func (q *Query) FindTable(ctx context.Context, sources []Source) error {
	if q.Table == "" {
		return nil
	}
	var names []string
	for _, source := range sources {
		if source.File == "" {
			return nil
		}
		tables, err := file.Tables(ctx, source.File)
		if err != nil {
			return err
		}
		names = append(names, tables...)
	}
	if i := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, q.Table) }); i >= 0 {
		q.Table = names[i]
		return nil
	}
	slices.Sort(names)
	return fault.Usagef("no table %q; choose one of %s", q.Table, strings.Join(slices.Compact(names), ", "))
}

// States returns the states of the databases at the time until which the query reads. Of several,
// a database that is not that old is left out, and remarks has a sentence about it.
func States(ctx context.Context, sources []Source, query Query) (states []*State, remarks []string, err error) {
	return eachState(sources, func(source Source) (*State, error) { return At(ctx, source, query) })
}

// SaveStates writes the databases of that time to files in a folder, and returns their states as
// States does.
func SaveStates(ctx context.Context, sources []Source, query Query, folder string) (states []*State, remarks []string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, nil, err
	}
	return eachState(sources, func(source Source) (*State, error) {
		dst := filepath.Join(folder, filepath.Base(source.File))
		if _, err := os.Lstat(dst); err == nil {
			return nil, fmt.Errorf("%s: %w: choose another folder for --save", dst, fs.ErrExist)
		}
		return Save(ctx, source, query.Until, dst)
	})
}

func eachState(sources []Source, read func(Source) (*State, error)) (states []*State, remarks []string, err error) {
	for _, source := range sources {
		if source.File == "" {
			continue
		}
		state, err := read(source)
		if errors.Is(err, ErrBefore) && len(sources) > 1 {
			remarks = append(remarks, err.Error())
			continue
		}
		if err != nil {
			return nil, remarks, err
		}
		states = append(states, state)
	}
	if len(states) == 0 {
		return nil, remarks, fmt.Errorf("%w: no collected database is that old", ErrBefore)
	}
	return states, remarks, nil
}
