package synth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ovs-offline/internal/ovn"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica"
	"ovs-offline/replica/release"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// computedSource is the kind of the source of a southbound database that was computed.
const computedSource = "OVN NB database"

// NorthboundOnly reports whether a workdir has a northbound database, and no southbound one
// that was collected.
func NorthboundOnly(wd *workdir.Dir) (bool, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(wd.Database(workdir.NB)); err != nil {
		return false, nil
	}
	if southbound := manifest.Collection(workdir.SB); southbound != nil {
		return southbound.MadeUp(), nil
	}
	_, err = os.Stat(wd.Database(workdir.SB))
	return errors.Is(err, os.ErrNotExist), nil
}

// completeDatabases has the ovn-northd of the nearest release compute the southbound database of
// a workdir that has a northbound one only. What was computed from the same database before stays.
func completeDatabases(ctx context.Context, wd *workdir.Dir, options Options) error {
	only, err := NorthboundOnly(wd)
	if err != nil || !only {
		return err
	}
	sum, err := workdir.SumOf(ctx, wd.Database(workdir.NB))
	if err != nil {
		return err
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return err
	}
	m := &maker{wd: wd, options: options, sum: sum}
	if sb := manifest.Collection(workdir.SB); sb != nil && sb.Synthesised.SHA256 == sum && sb.Source.Tool == m.tool() {
		return nil
	}
	m.progress("computing the OVN SB database from the NB database with ovn-northd")
	if err := m.completeFrom(ctx, manifest); err != nil {
		return fmt.Errorf("the OVN SB database can't be computed from the NB database: %w", err)
	}
	return nil
}

// completeFrom computes the southbound database and installs it.
func (m *maker) completeFrom(ctx context.Context, manifest *workdir.Manifest) error {
	nb, err := readNorthbound(ctx, m.wd.Database(workdir.NB))
	if err != nil {
		return err
	}
	return m.withNearest(ctx, workdir.SB, func(r *run, recorded, running versions.Pair) error {
		computed := filepath.Join(scratch.Replicas(r.dir), "southbound.db")
		remarks, err := r.southboundFrom(ctx, nb, computed)
		if err != nil {
			return err
		}
		collection := workdir.Collection{Kind: workdir.SB, Collected: time.Now().UTC().Truncate(time.Second), OVNVersion: running.OVN, Remarks: remarks,
			Source:      workdir.Source{Kind: computedSource, Name: m.wd.Database(workdir.NB), Tool: m.tool()},
			Synthesised: &workdir.Synthesis{SHA256: m.sum, OVN: running.OVN, Assumptions: append(computedBy(recorded, running), nb.assumptions()...)}}
		if nb := manifest.Collection(workdir.NB); nb != nil {
			collection.Source.Name, collection.Host, collection.Node = nb.Source.Name, nb.Host, nb.Node
		}
		return m.installSouthbound(ctx, computed, collection)
	})
}

// withNearest calls use with the programs of the nearest release of OVN, and its schema of a kind of
// database.
func (m *maker) withNearest(ctx context.Context, kind workdir.Kind, use func(r *run, recorded, running versions.Pair) error) error {
	dir, err := scratch.Lock(m.wd)
	if err != nil {
		return err
	}
	defer scratch.Release(dir)
	defer os.RemoveAll(scratch.Replicas(dir))
	rt, recorded, running, err := release.Nearest(ctx, m.wd, dir, m.options.Release)
	if err != nil {
		return err
	}
	run := run{maker: m, dir: dir, runtime: rt, ovn: running.OVN}
	if run.schema, err = replica.Schema(ctx, rt, kind); err != nil {
		return err
	}
	// This is where scratch.Clean finds what a killed command has left.
	if err := os.MkdirAll(scratch.Replicas(dir), 0o700); err != nil {
		return err
	}
	return use(&run, recorded, running)
}

// computedBy says which ovn-northd computed a database.
func computedBy(recorded, running versions.Pair) []string {
	text := "the OVN SB database was computed from the NB database by ovn-northd " + running.OVN
	switch {
	case recorded.OVN == "":
		text += "; which release wrote the NB database is not known"
	case versions.Minor(recorded.OVN) != versions.Minor(running.OVN):
		text += "; the NB database is of OVN " + recorded.OVN + ", whose logical flows differ"
	}
	return []string{text}
}

// southboundFrom writes the southbound database that ovn-northd makes of the northbound one, with
// all ports bound. It returns remarks about the programs.
func (r *run) southboundFrom(ctx context.Context, nb *northbound, to string) (remarks []string, err error) {
	if nb.features, err = r.features(ctx, nb, to); err != nil {
		return nil, err
	}
	err = r.withNorthd(ctx, nb, to, nil, func(s *scratch.Scratch, sb *ovsdb.Client) error {
		if err := bindPorts(ctx, sb, nb); err != nil {
			return err
		}
		if err := s.Wait(ctx); err != nil {
			return err
		}
		remarks = s.Remarks()
		_, _, err := file.Standalone(ctx, r.dir.WorkingCopy(workdir.SB), to)
		return err
	})
	return remarks, err
}

// features returns what the ovn-controller of the release says of itself in the row of its
// chassis: ovn-northd makes other logical flows for ovn-controllers that can do less.
func (r *run) features(ctx context.Context, nb *northbound, to string) (features map[string]string, err error) {
	first := (&Southbound{}).buildSwitch(nb.chassis()[0])
	schema, err := replica.Schema(ctx, r.runtime, workdir.OVS)
	if err != nil {
		return nil, err
	}
	conf := to + ".conf"
	if err := first.write(ctx, schema, conf); err != nil {
		return nil, err
	}
	err = r.withNorthd(ctx, nb, to, []scratch.Recorded{{Name: first.Name, Conf: conf}}, func(_ *scratch.Scratch, sb *ovsdb.Client) error {
		columns := []string{"name", "external_ids"}
		if sb.HasColumn("Chassis", "other_config") {
			columns = append(columns, "other_config")
		}
		rows, err := sb.Select(ctx, "Chassis", columns...)
		for _, row := range rows {
			if row.String("name") == first.Name {
				features = ovn.ChassisConfig(row)
			}
		}
		return err
	})
	return features, err
}

// withNorthd runs ovn-northd, and the ovn-controllers of nodes, on the northbound database and on
// a southbound one that has the chassis alone, and calls use once that is complete.
func (r *run) withNorthd(ctx context.Context, nb *northbound, to string, nodes []scratch.Recorded, use func(*scratch.Scratch, *ovsdb.Client) error) error {
	empty := to + ".empty"
	if _, err := file.FromTables(ctx, r.schema, nb.tables(), empty); err != nil { // an older schema lacks columns
		return err
	}
	return r.northdOn(ctx, empty, nodes, use)
}

// northdOn runs ovn-northd, and the ovn-controllers of nodes, on the northbound database and on the
// southbound one at path, and calls use once that is complete.
func (r *run) northdOn(ctx context.Context, path string, nodes []scratch.Recorded, use func(*scratch.Scratch, *ovsdb.Client) error) (err error) {
	s, err := scratch.Start(ctx, scratch.Options{Dir: r.dir, Runtime: r.runtime, NB: r.wd.Database(workdir.NB), SB: path, Nodes: nodes, Northd: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	if err := s.Wait(ctx); err != nil {
		return err
	}
	sb, err := ovsdb.Connect(ctx, s.SBSocket(), ovsdb.SB)
	if err != nil {
		return err
	}
	defer sb.Close()
	return use(s, sb)
}

// installSouthbound makes the collection of a computed southbound database.
func (m *maker) installSouthbound(ctx context.Context, from string, collection workdir.Collection) error {
	return m.replace(ctx, workdir.SB, func(staging *workdir.Staging) ([]workdir.Collection, error) {
		err := (stager{ctx, staging, &collection}).addFile(from, staging.Database(workdir.SB))
		return []workdir.Collection{collection}, err
	})
}
