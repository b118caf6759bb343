package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/desired/release"
	"ovs-offline/internal/versions"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
)

// Deployment is nodes with the OVN databases that they share.
type Deployment struct {
	Nodes   []Node
	NB, SB  string
	Remarks []string
}

// ErrUndetermined is wrapped if what a change does can't be computed from what was
// collected.
var ErrUndetermined = errors.New("UNDETERMINED")

// OfWorkdir returns the deployment of one node.
func OfWorkdir(wd *workdir.Dir) (Deployment, error) {
	name := cmp.Or(set.At(wd.Path(), "").Host(), filepath.Base(wd.Path()))
	d := Deployment{NB: wd.Database(workdir.NB), SB: wd.Database(workdir.SB)}
	d.add(name, wd)
	return d, d.check()
}

// OfSet returns the deployment of the selected nodes of a set. Where these have copies of a
// database of different moments, the newest counts.
func OfSet(ctx context.Context, s *set.Set) (Deployment, error) {
	databases, problems, err := s.Databases(ctx)
	if err != nil {
		return Deployment{}, err
	}
	d := Deployment{Remarks: append(problems, set.Sentences(databases)...)}
	dirs := map[string]*workdir.Dir{}
	for _, n := range s.Nodes() {
		wd, err := n.Workdir()
		if err != nil {
			return d, err
		}
		dirs[n.Name] = wd
		d.add(n.Name, wd)
	}
	for _, database := range databases {
		path := &d.NB
		if database.Kind == workdir.SB {
			path = &d.SB
		}
		if *path != "" {
			return d, fmt.Errorf("%w: the nodes have %s databases of several deployments, or of zones that OVN interconnects: name nodes of one of them", ErrNodes, database.Kind.Title())
		}
		*path = dirs[database.Copies[0].Nodes[0]].Database(database.Kind)
	}
	return d, d.check()
}

// ErrNodes is wrapped if the named nodes can't be computed together.
var ErrNodes = errors.New("no such change")

// add adds a node if it has an OVS database.
func (d *Deployment) add(name string, wd *workdir.Dir) {
	if _, err := os.Stat(wd.Database(workdir.OVS)); err != nil {
		d.Remarks = append(d.Remarks, fmt.Sprintf("%s is left out: its OVS database was not collected", name))
		return
	}
	d.Nodes = append(d.Nodes, Node{name, wd})
}

func (d *Deployment) check() error {
	for _, database := range []struct{ title, path string }{{"NB", d.NB}, {"SB", d.SB}} {
		if _, err := os.Stat(database.path); err != nil {
			return fmt.Errorf("%w: the OVN %s database was not collected, from which flows are computed", ErrUndetermined, database.title)
		}
	}
	if len(d.Nodes) == 0 {
		return fmt.Errorf("%w: no node has an OVS database, which says what is bound to it", ErrUndetermined)
	}
	return nil
}

// release returns the versions that all nodes ran.
func (d *Deployment) release(ctx context.Context) (found versions.Pair, err error) {
	var of []string
	different := false
	for _, n := range d.Nodes {
		likely, err := release.Likely(ctx, n.Dir)
		if err != nil {
			return found, fmt.Errorf("node %s: %w", n.Name, err)
		}
		if len(likely) == 0 {
			continue // the databases of another node say it
		}
		of = append(of, n.Name+" "+likely[0].OVN)
		different = different || found.OVN != "" && versions.Minor(found.OVN) != versions.Minor(likely[0].OVN)
		if found.OVN == "" {
			found = likely[0]
		}
	}
	switch {
	case found.OVN == "":
		return found, fmt.Errorf("%w: which release of OVN the nodes ran is not known: neither their databases nor their packages say it", ErrUndetermined)
	case different:
		return found, fmt.Errorf("%w: the nodes ran different releases of OVN (%s): name nodes of one release", ErrNodes, strings.Join(of, ", "))
	}
	return found, nil
}
