package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// Deployments opens the databases of the selected nodes: the newest copies of the databases of each
// deployment or zone, and the OVS database of each node. kinds are the OVN databases that
// are needed: both, or NB alone, which leaves SB closed where there is an NB. remarks has
// sentences for the user about the databases. The caller closes the deployments.
func (s *Snapshot) Deployments(ctx context.Context, kinds ...workdir.Kind) (found []*Deployment, remarks []string, err error) {
	defer func() {
		if err != nil {
			CloseAll(found)
			found = nil
		}
	}()
	nodes := map[string]Member{}
	for _, node := range s.nodes {
		wd, err := node.Workdir()
		if err != nil {
			return found, nil, err
		}
		nodes[node.Name] = Member{Name: node.Name, Dir: wd}
	}
	if len(s.nodes) == 1 {
		found, err = onlyDeployment(ctx, nodes[s.nodes[0].Name], kinds)
	} else {
		found, remarks, err = s.deployments(ctx, nodes, kinds)
	}
	if err != nil {
		return found, nil, err
	}
	for _, deployment := range found {
		if err := deployment.OpenParts(ctx); err != nil {
			return found, nil, err
		}
		for i := range deployment.Nodes {
			node := &deployment.Nodes[i]
			if node.OVS, err = openCollected(ctx, node.Dir, node.Dir.SwitchDatabase()); err != nil {
				return found, nil, fmt.Errorf("node %s: %w", node.Name, err)
			}
		}
	}
	return found, remarks, err
}

// tablesOf returns the tables to read of a database, where the named kinds are needed; none for
// all of them. A SB database that stands in for a missing NB is read for names alone.
func tablesOf(kind workdir.Kind, kinds []workdir.Kind) []string {
	if len(kinds) > 0 && !slices.Contains(kinds, kind) {
		return []string{globalTable(kind), "Chassis", "Port_Binding"}
	}
	return nil
}

// openCollected opens a database, which the readers of the snapshot share, unless only some tables are read; it returns nil for one that
// was not collected.
func openCollected(ctx context.Context, wd *workdir.Dir, path string, tables ...string) (*file.Index, error) {
	if path == "" {
		return nil, nil
	}
	index, err := indexOf(ctx, &wd.Data, path, tables)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return index, err
}

// onlyDeployment returns the deployment of a single node, whose databases need not be
// compared with others.
func onlyDeployment(ctx context.Context, node Member, kinds []workdir.Kind) ([]*Deployment, error) {
	deployment := &Deployment{Nodes: []Member{node}}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) && deployment.NB != nil {
			continue
		}
		var err error
		if *database(deployment, kind), err = openCollected(ctx, node.Dir, node.Dir.Database(kind), tablesOf(kind, kinds)...); err != nil {
			return []*Deployment{deployment}, err
		}
	}
	return []*Deployment{deployment}, nil
}

// database returns the field with the database of a kind.
func database(deployment *Deployment, kind workdir.Kind) **file.Index {
	if kind == workdir.NB {
		return &deployment.NB
	}
	return &deployment.SB
}

func (s *Snapshot) deployments(ctx context.Context, nodes map[string]Member, kinds []workdir.Kind) (found []*Deployment, remarks []string, err error) {
	databases, problems, err := s.OpenDatabases(ctx, kinds...)
	if len(kinds) > 0 && len(databases) == 0 && err == nil {
		databases, problems = openDatabases(ctx, s.nodes, workdir.SB, sameRecorded(s.nodes, workdir.SB), tablesOf(workdir.SB, kinds))
		err = ctx.Err()
	}
	return groupByDatabases(s.nodes, nodes, databases), append(problems, Sentences(databases)...), err
}

// groupByDatabases groups nodes by their southbound databases, and then by the
// northbound ones. Nodes without databases are in the only deployment there is, or else in
// one of their own.
func groupByDatabases(order []*Node, nodes map[string]Member, databases []Database) []*Deployment {
	var found []*Deployment
	of := map[string]*Deployment{}
	add := func(deployment *Deployment, name string) {
		if of[name] == nil {
			of[name] = deployment
			deployment.Nodes = append(deployment.Nodes, nodes[name])
		}
	}
	for _, kind := range []workdir.Kind{workdir.SB, workdir.NB} {
		for _, db := range databases {
			if db.Kind != kind {
				continue
			}
			var deployment *Deployment
			for _, name := range db.members() {
				if other := of[name]; other != nil && *database(other, kind) == nil {
					deployment = other
					break
				}
			}
			if deployment == nil {
				deployment = &Deployment{}
				found = append(found, deployment)
			}
			*database(deployment, kind) = db.Index()
			for _, name := range db.members() {
				add(deployment, name)
			}
		}
	}
	if len(of) == len(order) {
		return found
	}
	if len(found) != 1 {
		found = append(found, &Deployment{})
	}
	for _, node := range order {
		add(found[len(found)-1], node.Name)
	}
	return found
}

// members returns the nodes that have a copy of the database.
func (d Database) members() []string {
	var names []string
	for _, copied := range d.Copies {
		names = append(names, copied.Nodes...)
	}
	return names
}
