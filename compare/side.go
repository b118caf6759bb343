package compare

import (
	"context"
	"fmt"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
	"ovs-offline/trace"
	"ovs-offline/trace/rules"
)

// Side is one of the two captures: a node, or several.
type Side struct {
	name    string
	nodes   map[string]*node // by the name of the host, or else of the workdir
	order   []string
	zones   []*zone
	remarks []string
	lost    []string // what could not be read
	closers []func()
}

// node is one node of a capture.
type node struct {
	name string
	dir  *workdir.Dir
	ovs  *file.Index // nil if its database was not collected
	zone *zone       // nil for a node without OVN databases
}

// zone is an OVN deployment, or a zone of OVN interconnection. nb or sb is nil if it was
// not collected.
type zone struct {
	nb, sb *file.Index
	rules  *rules.Rules
	nodes  []string
	keys   *overlay // nil until it is needed
}

// OfWorkdir returns the node of a workdir.
func OfWorkdir(ctx context.Context, name string, wd *workdir.Dir) (*Side, error) {
	nodes, zones := trace.OfWorkdir(wd)
	return newSide(ctx, name, nodes, zones, nil)
}

// OfSet returns the nodes of a set.
func OfSet(ctx context.Context, name string, s *set.Set) (*Side, error) {
	nodes, zones, remarks, err := trace.OfSet(ctx, s)
	if err != nil {
		return nil, err
	}
	return newSide(ctx, name, nodes, zones, append(s.Remarks(), remarks...))
}

func newSide(ctx context.Context, name string, nodes []trace.Node, zones []trace.Zone, remarks []string) (*Side, error) {
	s := &Side{name: name, nodes: map[string]*node{}, remarks: remarks}
	err := s.open(ctx, nodes, zones)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Close closes the databases, and removes what was unpacked.
func (s *Side) Close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	s.closers = nil
}

func (s *Side) open(ctx context.Context, nodes []trace.Node, zones []trace.Zone) error {
	names := hostNames(nodes)
	for _, n := range nodes {
		m, err := n.Dir.Manifest()
		if err != nil {
			return err
		}
		for _, c := range m.Collections {
			for _, text := range c.Lost {
				s.lost = append(s.lost, names[n.Name]+": "+text)
			}
		}
		opened := &node{name: names[n.Name], dir: n.Dir}
		if opened.ovs, err = s.index(ctx, existing(n.Dir.Database(workdir.OVS))); err != nil {
			return fmt.Errorf("node %s: %w", opened.name, err)
		}
		s.nodes[opened.name] = opened
		s.order = append(s.order, opened.name)
	}
	for _, wanted := range zones {
		if wanted.NB == "" && wanted.SB == "" {
			continue
		}
		z := &zone{}
		var err error
		if z.nb, err = s.index(ctx, wanted.NB); err != nil {
			return err
		}
		if z.sb, err = s.index(ctx, wanted.SB); err != nil {
			return err
		}
		z.rules = rules.New(z.nb, z.sb)
		for _, name := range wanted.Nodes {
			z.nodes = append(z.nodes, names[name])
			s.nodes[names[name]].zone = z
		}
		s.zones = append(s.zones, z)
	}
	return nil
}

// hostNames returns the host of each node, and the name of its workdir where several are of
// one host or where no host is known.
func hostNames(nodes []trace.Node) map[string]string {
	hosts, count := map[string]string{}, map[string]int{}
	for _, n := range nodes {
		hosts[n.Name] = set.At(n.Dir.Path(), "").Host()
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
	if f, ok, err := workdir.OpenCollected(path); ok && err == nil {
		f.Close()
		return path
	}
	return ""
}

// index opens a database; it returns nil for no path.
func (s *Side) index(ctx context.Context, path string) (*file.Index, error) {
	if path == "" {
		return nil, nil
	}
	x, err := file.OpenIndex(ctx, path)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, x.Close)
	s.remarks = append(s.remarks, x.Remarks...)
	return x, nil
}
