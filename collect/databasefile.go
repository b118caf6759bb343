package collect

import (
	"context"
	"fmt"
	"path/filepath"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/interrupt"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// DatabaseFile is the source that consists of one database file of a given kind. It is
// collected with Select.Database.
type DatabaseFile struct {
	Path string
	Kind workdir.Kind
}

// Kinds returns the one kind of the file.
func (s DatabaseFile) Kinds() []workdir.Kind { return []workdir.Kind{s.Kind} }

// Read implements Source. The copy is inspected, not the original: a pipe can be
// read only once, and a file may change meanwhile.
func (s DatabaseFile) Read(ctx context.Context, spool string) (*Found, error) {
	abs, err := filepath.Abs(s.Path)
	if err != nil {
		return nil, err
	}
	if _, err := archive.Stat(s.Path); err != nil {
		return nil, err
	}
	in, err := interrupt.Open(ctx, s.Path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	file, err := archive.Spool(ctx, spool, in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	db := recording.Database{File: file, Origin: abs}
	info, err := db.Inspect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	if err := s.checkKind(info.Name); err != nil {
		return nil, err
	}
	node := &recording.Recording{Source: workdir.Source{Kind: "database file", Name: abs}, Databases: []recording.Database{db}}
	return &Found{Nodes: []Named{{Name: "node", Recording: node}}}, nil
}

// checkKind returns an error that names the right command for a database of another kind.
func (s DatabaseFile) checkKind(schema string) error {
	kind := workdir.KindOfSchema(schema)
	switch kind {
	case s.Kind:
		return nil
	case "":
		return fmt.Errorf("%s holds the database %q, which is not %s, %s or %s", s.Path, schema, workdir.OVS.Schema(), workdir.NB.Schema(), workdir.SB.Schema())
	}
	commands := map[workdir.Kind]string{workdir.OVS: "collect-db-ovs", workdir.NB: "collect-db-ovn-nb", workdir.SB: "collect-db-ovn-sb"}
	return fmt.Errorf("%s is the %s database (%s), not %s: use %s", s.Path, kind.Title(), schema, s.Kind.Title(), commands[kind])
}
