package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/node"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// Side is one of the two captures: a node, or several.
type Side struct {
	name    string
	nodes   map[string]*capturedNode // by the name of the host, or else of the workdir
	order   []string
	zones   []*zone
	remarks []string
	lost    []string // what could not be read
	closers []func()
}

// capturedNode is one node of a capture.
type capturedNode struct {
	name string
	dir  *workdir.Dir
	ovs  *file.Index // nil if its database was not collected
	zone *zone       // nil for a node without OVN databases

	recorded func() ([]*node.Bridge, error) // the bridges of its database
}

// zone is an OVN deployment, or a zone of OVN interconnection, with at least one database.
type zone struct {
	*snapshot.Deployment
	rules *rules.Rules
}

// hosts returns the names of the nodes.
func (z *zone) hosts() []string {
	var names []string
	for _, n := range z.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// title names the zone, or else its nodes.
func (z *zone) title() string {
	if z.NB != nil {
		for row, err := range z.NB.Rows("NB_Global", "name") {
			if err == nil && row.String("name") != "" {
				return row.String("name")
			}
		}
	}
	return strings.Join(z.hosts(), ", ")
}

// OfSet returns the nodes of a set.
func OfSet(ctx context.Context, name string, selected *snapshot.Snapshot) (*Side, error) {
	deployments, remarks, err := selected.Deployments(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	side := &Side{name: name, nodes: map[string]*capturedNode{}, remarks: append(selected.Remarks(), remarks...)}
	side.closers = append(side.closers, selected.Close, func() { snapshot.CloseAll(deployments) })
	if err := side.add(selected.Nodes(), deployments); err != nil {
		side.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return side, nil
}

// Close closes the databases, and removes what was unpacked.
func (s *Side) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

// add adds the nodes of deployments in the order of the set.
func (s *Side) add(nodes []*snapshot.Node, deployments []*snapshot.Deployment) error {
	names := hostNames(nodes)
	empty := true
	for _, deployment := range deployments {
		var ofNodes *zone
		if deployment.NB != nil || deployment.SB != nil {
			ofNodes = &zone{Deployment: deployment, rules: rules.New(deployment.NB, deployment.SB)}
			s.zones = append(s.zones, ofNodes)
			empty = false
		}
		s.addRemarks(deployment.NB, deployment.SB)
		for i := range deployment.Nodes {
			deployed := &deployment.Nodes[i]
			deployed.Name = names[deployed.Name]
			s.nodes[deployed.Name] = &capturedNode{name: deployed.Name, dir: deployed.Dir, ovs: deployed.OVS, zone: ofNodes,
				recorded: sync.OnceValues(func() ([]*node.Bridge, error) { return node.Bridges(deployed.OVS) })}
			s.addRemarks(deployed.OVS)
			empty = empty && deployed.OVS == nil
		}
	}
	for _, n := range nodes {
		name := names[n.Name]
		s.order = append(s.order, name)
		manifest, err := s.nodes[name].dir.Manifest()
		if err != nil {
			return err
		}
		empty = empty && len(manifest.Collections) == 0
		for _, c := range manifest.Collections {
			for _, text := range c.Lost {
				s.lost = append(s.lost, name+": "+text)
			}
		}
	}
	if empty {
		return errors.New("nothing was collected there: there is nothing to compare")
	}
	return nil
}

// addRemarks adds what was repaired in databases.
func (s *Side) addRemarks(databases ...*file.Index) {
	for _, x := range databases {
		if x != nil {
			s.remarks = append(s.remarks, x.Remarks...)
		}
	}
}

// hostNames returns the host of each node, and the name of its workdir where several are of
// one host or where no host is known.
func hostNames(nodes []*snapshot.Node) map[string]string {
	hosts, count := map[string]string{}, map[string]int{}
	for _, n := range nodes {
		hosts[n.Name] = n.Host()
		count[hosts[n.Name]]++
	}
	for name, host := range hosts {
		if host == "" || count[host] > 1 {
			hosts[name] = name
		}
	}
	return hosts
}

func existing(path string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return ""
}
