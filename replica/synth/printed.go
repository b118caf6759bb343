package synth

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// Printed makes the OVN databases of nodes of which only printed tables were collected, with the schema
// of the nearest release. Nodes with the same tables get the same databases.
type Printed struct {
	mutex sync.Mutex
	// cookies has what the recorded flows of the nodes tell about the logical flows, by the SHA-256
	// sum of the printed southbound database.
	cookies map[string]*cookies
}

// NewPrinted returns a Printed. Prepare has to have returned for all nodes before Finish is called.
func NewPrinted() *Printed { return &Printed{cookies: map[string]*cookies{}} }

// HasPrinted reports whether a workdir has printed tables of an OVN database.
func HasPrinted(wd *workdir.Dir) bool {
	return slices.ContainsFunc([]workdir.Kind{workdir.NB, workdir.SB}, func(kind workdir.Kind) bool {
		_, err := os.Stat(wd.PrintedDatabase(kind))
		return err == nil
	})
}

// Prepare makes the northbound database of a locked workdir, and compares the recorded flows of the
// node with the logical flows of the southbound one. What was made from the same tables before stays.
func (p *Printed) Prepare(ctx context.Context, wd *workdir.Dir, options Options) error {
	err := p.ifNeeded(ctx, workdir.NB, wd, options, "making the OVN NB database from its printed tables", func(r *run, tables printedTables, path string) error {
		return r.installPrinted(ctx, workdir.NB, path, tables.assumed)
	})
	if err != nil {
		return err
	}
	return p.ifNeeded(ctx, workdir.SB, wd, options, "comparing the flows with the printed logical flows", func(r *run, tables printedTables, path string) error {
		if err := r.completeLogicalFlows(ctx, &tables, path); err != nil {
			return err
		}
		if tables.identified {
			return nil
		}
		pairs, err := r.pairCookies(ctx, path)
		if err == nil || ctx.Err() == nil { // without the cookies, all else can be made
			p.learn(r.sum, pairs, err)
		}
		return ctx.Err()
	})
}

// Finish makes the southbound database of a locked workdir.
func (p *Printed) Finish(ctx context.Context, wd *workdir.Dir, options Options) error {
	return p.ifNeeded(ctx, workdir.SB, wd, options, "making the OVN SB database from its printed tables", func(r *run, tables printedTables, path string) error {
		if err := r.completeLogicalFlows(ctx, &tables, path); err != nil {
			return err
		}
		if remark := p.cookies[r.sum].giveTo(tables.rows[logicalFlows]); remark != "" {
			tables.assumed = append(tables.assumed, remark)
		}
		if _, err := file.FromTables(ctx, r.schema, tables.rows, path); err != nil {
			return err
		}
		return r.installPrinted(ctx, workdir.SB, path, tables.assumed)
	})
}

// learn keeps what the flows of a node tell.
func (p *Printed) learn(sum string, pairs map[cookiePair]int, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.cookies[sum] == nil {
		p.cookies[sum] = &cookies{pairs: map[cookiePair]int{}}
	}
	known := p.cookies[sum]
	for pair, flows := range pairs {
		known.pairs[pair] += flows
	}
	if err != nil {
		known.err = err
	}
}

// printedTables are the printed tables of a database, and what is assumed about the rest.
type printedTables struct {
	rows    map[string][]ovsdb.Record
	assumed []string
	// identified reports that the logical flows have the UUIDs of the live database.
	identified bool
}

// ifNeeded calls do with the printed tables of a database, and the path of a file with it, unless the
// workdir has the database already.
func (p *Printed) ifNeeded(ctx context.Context, kind workdir.Kind, wd *workdir.Dir, options Options, doing string, do func(*run, printedTables, string) error) error {
	m := &maker{wd: wd, options: options}
	needed, err := m.needsPrinted(ctx, kind)
	if err != nil || !needed {
		return err
	}
	m.progress("%s", doing)
	err = m.withNearest(ctx, kind, func(r *run, _, _ versions.Pair) error {
		path := filepath.Join(scratch.Replicas(r.dir), "printed.db")
		tables, err := r.writePrinted(ctx, kind, path)
		if err != nil {
			return err
		}
		return do(r, tables, path)
	})
	if err != nil {
		return fmt.Errorf("the %s database can't be made from its printed tables: %w", kind.Title(), err)
	}
	return nil
}

// needsPrinted reports whether a database has to be made from its printed tables.
func (m *maker) needsPrinted(ctx context.Context, kind workdir.Kind) (bool, error) {
	if _, err := os.Stat(m.wd.PrintedDatabase(kind)); err != nil {
		return false, nil
	}
	var err error
	if m.sum, err = workdir.SumOf(ctx, m.wd.PrintedDatabase(kind)); err != nil {
		return false, err
	}
	manifest, err := m.wd.Manifest()
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(m.wd.Database(kind)); err != nil {
		return true, nil
	}
	made := manifest.FromPrinted(kind)
	return made != nil && made.SHA256 != m.sum, nil
}

// writePrinted writes a database of printed tables.
func (r *run) writePrinted(ctx context.Context, kind workdir.Kind, to string) (tables printedTables, err error) {
	if tables.rows, err = file.PrintedTables(ctx, r.wd.PrintedDatabase(kind)); err != nil {
		return tables, err
	}
	groupDatapaths(tables.rows)
	if err := r.addTail(ctx, kind, &tables); err != nil {
		return tables, err
	}
	global := map[workdir.Kind]string{workdir.NB: "NB_Global", workdir.SB: "SB_Global"}[kind]
	if len(tables.rows[global]) == 0 {
		tables.rows[global] = []ovsdb.Record{{UUID: ovsdb.UUIDOf(global)}}
		tables.assumed = append(tables.assumed, "the row of "+global+", without settings")
	}
	remarks, err := file.FromTables(ctx, r.schema, tables.rows, to)
	tables.assumed = append(tables.assumed, remarks...)
	if err != nil {
		return tables, err
	}
	all, err := file.Tables(ctx, to)
	if missing := missingTables(all, tables.rows); len(missing) > 0 {
		tables.assumed = append(tables.assumed, "tables that were not printed, and are empty: "+strings.Join(missing, ", "))
	}
	return tables, err
}

// addTail adds the rows in the end of the database's file of the tables that were not printed.
func (r *run) addTail(ctx context.Context, kind workdir.Kind, tables *printedTables) error {
	path := r.wd.DatabaseTail(kind)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	rest, remarks, err := file.ReadTail(ctx, path, r.schema)
	if err != nil {
		return err
	}
	var added []string
	for _, table := range slices.Sorted(maps.Keys(rest)) {
		if len(tables.rows[table]) == 0 && len(rest[table]) > 0 {
			tables.rows[table] = rest[table]
			tables.identified = tables.identified || table == logicalFlows
			added = append(added, fmt.Sprintf("%s (%d)", table, len(rest[table])))
		}
	}
	tables.assumed = append(tables.assumed, "the beginning of the file is missing: only the rows in the rest of it are there, of "+strings.Join(added, ", "))
	tables.assumed = append(tables.assumed, remarks...)
	return nil
}

// missingTables returns the tables of a schema that were not printed. It leaves out Logical_Flow, which
// ovn-northd can compute.
func missingTables(all []string, printed map[string][]ovsdb.Record) (missing []string) {
	names := slices.Collect(maps.Keys(printed))
	for _, table := range all {
		if table != logicalFlows && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, table) }) {
			missing = append(missing, table)
		}
	}
	return missing
}

// completeLogicalFlows has ovn-northd add the logical flows to a southbound database, and to its tables,
// where they were not printed.
func (r *run) completeLogicalFlows(ctx context.Context, tables *printedTables, to string) error {
	if tables.identified {
		return nil
	}
	if len(tables.rows[logicalFlows]) > 0 {
		tables.assumed = append(tables.assumed, "the logical flows are those of ovn-sbctl lflow-list, which prints neither UUIDs nor tags")
		return nil
	}
	if _, err := os.Stat(r.wd.Database(workdir.NB)); err != nil {
		tables.assumed = append(tables.assumed, "the logical flows were not printed, and can't be computed without an OVN NB database: there are none")
		return nil
	}
	tables.assumed = append(tables.assumed, "the logical flows were not printed: ovn-northd "+r.ovn+" computed them from the OVN NB database")
	made := map[string][]ovsdb.Record{}
	err := r.northdOn(ctx, to, nil, func(s *scratch.Scratch, _ *ovsdb.Client) error {
		for _, table := range []string{logicalFlows, datapathGroups} {
			text, err := r.runtime.Tool(ctx, r.dir.VarRun(workdir.SB), nil, "ovn-sbctl", "--db=unix:"+s.SBSocket(), "list", table)
			if err != nil {
				return err
			}
			if made[table], err = ovsdb.Listing(bytes.NewReader(text)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	takeLogicalFlows(tables.rows, made)
	_, err = file.FromTables(ctx, r.schema, tables.rows, to)
	return err
}

// installPrinted installs a database beside the printed tables that it was made from.
func (r *run) installPrinted(ctx context.Context, kind workdir.Kind, made string, assumptions []string) error {
	manifest, err := r.wd.Manifest()
	if err != nil {
		return err
	}
	collection := workdir.Collection{Kind: kind, Source: workdir.Source{Kind: "printed tables", Name: r.wd.PrintedDatabase(kind)}}
	if collected := manifest.Collection(kind); collected != nil {
		collection = *collected
	}
	collection.Synthesised = &workdir.Synthesis{From: workdir.FromPrinted, SHA256: r.sum, OVN: r.ovn, Assumptions: assumptions}
	return r.replace(ctx, kind, func(staging *workdir.Staging) ([]workdir.Collection, error) {
		files := collection.Files
		collection.Files = nil
		for _, old := range files {
			if r.wd.Join(old.Path) == r.wd.Database(kind) {
				continue // made from earlier tables
			}
			linked, err := stageLink(ctx, staging, r.wd.Join(old.Path), staging.Join(old.Path))
			if err != nil {
				return nil, err
			}
			old.Size, old.SHA256 = linked.Size, linked.SHA256
			collection.Files = append(collection.Files, old)
		}
		err := (stager{ctx, staging, &collection}).addFile(made, staging.Database(kind))
		return []workdir.Collection{collection}, err
	})
}
