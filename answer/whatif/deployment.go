package whatif

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/versions"
	"ovs-offline/replica"
	"ovs-offline/replica/release"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Deployment is nodes with the files of the OVN databases that they share, which the daemons of
// a Session copy.
type Deployment struct {
	Nodes   []snapshot.Member
	NB, SB  string
	Remarks []string
}

// ErrUndetermined is wrapped if what a change does can't be computed from what was
// collected.
var ErrUndetermined = fault.Wrap(fault.Undetermined, errors.New("UNDETERMINED"))

// Of returns the deployment of the selected nodes of a set. Where these have copies of a
// database of different moments, the newest counts.
func Of(ctx context.Context, nodes *snapshot.Snapshot) (Deployment, error) {
	newest, remarks, err := nodes.Newest(ctx, workdir.NB, workdir.SB)
	if err != nil {
		return Deployment{}, err
	}
	deployment := Deployment{Remarks: remarks}
	for _, node := range nodes.Nodes() {
		wd, err := node.Workdir()
		if err != nil {
			return deployment, err
		}
		deployment.add(node.Name, wd)
	}
	for _, database := range newest {
		path := &deployment.NB
		if database.Kind == workdir.SB {
			path = &deployment.SB
		}
		if *path != "" {
			return deployment, fmt.Errorf("%w: the nodes have %s databases of several deployments, or of zones that OVN interconnects: name nodes of one of them", ErrNodes, database.Kind.Title())
		}
		*path = database.Dir.Database(database.Kind)
	}
	return deployment, deployment.check()
}

// ErrNodes is wrapped if the named nodes can't be computed together.
var ErrNodes = fault.Wrap(fault.Usage, errors.New("the change can't be computed"))

// add adds a node if it has an OVS database, or else a remark.
func (d *Deployment) add(name string, wd *workdir.Dir) {
	if wd.SwitchDatabase() == "" {
		d.Remarks = append(d.Remarks, fmt.Sprintf("%s is left out: its OVS database was not collected, and start has not made one of what was printed", name))
		return
	}
	d.Nodes = append(d.Nodes, snapshot.Member{Name: name, Dir: wd})
}

func (d *Deployment) check() error {
	for _, database := range []struct{ title, path string }{{"NB", d.NB}, {"SB", d.SB}} {
		if _, err := os.Stat(database.path); err != nil {
			return fmt.Errorf("%w: the OVN %s database was not collected, from which flows are computed", ErrUndetermined, database.title)
		}
	}
	if len(d.Nodes) == 0 {
		return fmt.Errorf("%w: no node has an OVS database, from which the ports that are bound to it are known", ErrUndetermined)
	}
	return nil
}

// doubts returns the reasons why what is computed from the databases of the nodes may be wrong.
func (d *Deployment) doubts(ctx context.Context) (all []string, err error) {
	for _, node := range d.Nodes {
		texts, err := replica.Doubts(ctx, node.Dir)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", node.Name, err)
		}
		for _, text := range texts {
			all = append(all, node.Name+": "+text)
		}
	}
	return all, nil
}

// release returns the versions that all nodes ran.
func (d *Deployment) release(ctx context.Context) (found versions.Pair, err error) {
	var of []string
	different := false
	for _, node := range d.Nodes {
		likely, err := release.Likely(ctx, node.Dir)
		if err != nil {
			return found, fmt.Errorf("node %s: %w", node.Name, err)
		}
		if len(likely) == 0 {
			continue // another node may name it
		}
		of = append(of, node.Name+" "+likely[0].OVN)
		different = different || found.OVN != "" && versions.Minor(found.OVN) != versions.Minor(likely[0].OVN)
		if found.OVN == "" {
			found = likely[0]
		}
	}
	switch {
	case found.OVN == "":
		return found, fmt.Errorf("%w: which release of OVN the nodes ran is not known: neither their databases nor their packages name it", ErrUndetermined)
	case different:
		return found, fmt.Errorf("%w: the nodes ran different releases of OVN (%s): name nodes of one release", ErrNodes, strings.Join(of, ", "))
	}
	return found, nil
}
