package synth

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// removeOthers removes the switches in and below the workdir that targets does not list,
// or that were made from another database. It stops their replicas.
func (m *maker) removeOthers(ctx context.Context, targets []chassisWorkdir) error {
	keep := func(path string) bool {
		return slices.ContainsFunc(targets, func(target chassisWorkdir) bool { return target.path == path && m.isCurrent(target) })
	}
	below, err := workdir.Below(m.wd.Chassis())
	if err != nil {
		return err
	}
	for _, path := range below {
		if keep(path) {
			continue
		}
		if err := m.removeBelow(ctx, path); err != nil {
			return err
		}
	}
	_ = os.Remove(m.wd.Chassis()) // fails unless it is empty
	manifest, err := m.wd.Manifest()
	if err != nil || keep(m.wd.Path()) {
		return err
	}
	if manifest.Synthesis() == nil {
		return m.stop(ctx, m.wd) // which serves the databases alone
	}
	return m.removeHere(ctx)
}

// removeBelow removes the workdir of a chassis.
func (m *maker) removeBelow(ctx context.Context, path string) error {
	wd, unlock, err := m.lock(path)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.stop(ctx, wd); err != nil {
		return err
	}
	_, err = wd.Purge()
	return err
}

// removeHere removes the switch in the workdir itself, and keeps the databases.
func (m *maker) removeHere(ctx context.Context) error {
	nothing := func(*workdir.Staging) ([]workdir.Collection, error) { return nil, nil }
	if err := m.replace(ctx, workdir.OVS, nothing); err != nil {
		return err
	}
	for _, empty := range []string{m.wd.RestoreFlows(), m.wd.Recorded(""), filepath.Dir(m.wd.Database(workdir.OVS))} {
		_ = os.Remove(empty) // it is empty now
	}
	return nil
}

// replace stops the replica of the workdir, and puts what fill stages in the place of the data of
// a kind.
func (m *maker) replace(ctx context.Context, kind workdir.Kind, fill func(*workdir.Staging) ([]workdir.Collection, error)) error {
	if err := m.stop(ctx, m.wd); err != nil {
		return err
	}
	staging, err := m.wd.Stage()
	if err != nil {
		return err
	}
	defer staging.Discard()
	if err := staging.Replace(kind, false); err != nil {
		return err
	}
	collections, err := fill(staging)
	if err != nil {
		return err
	}
	return staging.Install(collections...)
}

// stop stops the replica of a workdir.
func (m *maker) stop(ctx context.Context, wd *workdir.Dir) error {
	return replica.Stop(ctx, wd, m.options.Release.Runtimes(wd).All(ctx)...)
}
