// Package trace answers questions about packets on the running replicas of one or several
// nodes: it finds the endpoints by their names, follows the packet and the reply to it,
// names the rule that decides, and says how far the answer can be trusted.
package trace

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/names"
)

// Node is a node of a session: its name and its workdir, whose replica runs.
type Node struct {
	Name string
	Dir  *workdir.Dir
}

// Options are the options of a Session.
type Options struct {
	follow.Options
	// Raw adds the text of ofproto/trace to answers.
	Raw bool
}

// Session answers questions about a set of nodes. Its methods can be called concurrently,
// and its memory does not grow with the number of questions.
type Session struct {
	nodes   map[string]*node
	order   []string
	zones   []*zone
	names   *names.Names
	tracer  *follow.Tracer
	options Options
	remarks []string
}

// node is a node with everything that answers about it need.
type node struct {
	*host.Host
	zone  *zone
	trust answer.Node
	// pipelines reads where ovn-controller put OVN's pipelines.
	pipelines func() (pipelines, error)
}

// Open opens a session on the replicas of nodes. The zones hold the OVN databases from
// which names are taken. A node whose replica does not answer is an error.
func Open(ctx context.Context, nodes []Node, zones []Zone, o Options) (*Session, error) {
	s := &Session{nodes: map[string]*node{}, options: o}
	if err := s.open(ctx, nodes, zones); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) open(ctx context.Context, nodes []Node, zones []Zone) error {
	if err := s.openHosts(ctx, nodes); err != nil {
		return err
	}
	var err error
	if s.zones, s.names, err = openZones(ctx, nodes, zones); err != nil {
		return err
	}
	for _, z := range s.zones {
		for _, name := range z.nodes {
			s.nodes[name].zone = z
		}
	}
	var hosts []*host.Host
	for _, name := range s.order {
		hosts = append(hosts, s.nodes[name].Host)
	}
	o := s.options.Options
	o.Chassis = s.chassisOf
	s.tracer = follow.New(hosts, o)
	return nil
}

// openHosts opens all nodes at once, because each waits for its replica.
func (s *Session) openHosts(ctx context.Context, nodes []Node) error {
	opened := make([]*node, len(nodes))
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { opened[i], errs[i] = openNode(ctx, n) })
	}
	wg.Wait()
	for _, n := range opened {
		if n == nil {
			continue
		}
		if s.nodes[n.Name] != nil {
			errs = append(errs, fmt.Errorf("two nodes are called %s", n.Name))
		}
		s.nodes[n.Name], s.order = n, append(s.order, n.Name)
	}
	return errors.Join(errs...)
}

func openNode(ctx context.Context, n Node) (*node, error) {
	h, err := host.Open(ctx, n.Name, n.Dir)
	if err != nil {
		return nil, err
	}
	trust, err := trustOf(h, n.Dir)
	if err != nil {
		h.Close()
		return nil, err
	}
	opened := &node{Host: h, trust: trust}
	opened.pipelines = sync.OnceValues(func() (pipelines, error) { return readPipelines(opened.zone.rules, n.Dir, h, opened.zone.ovs[n.Name]) })
	return opened, nil
}

// Close ends the connections to the replicas and closes the databases.
func (s *Session) Close() {
	for _, n := range s.nodes {
		n.Close()
	}
	for _, z := range s.zones {
		z.close()
	}
}

// Remarks returns sentences about the databases of the nodes for the user.
func (s *Session) Remarks() []string { return s.remarks }

// Names returns the endpoints that questions can name.
func (s *Session) Names() *names.Names { return s.names }

// Northbound returns the northbound database of each zone that has one.
func (s *Session) Northbound() []*file.Index {
	var found []*file.Index
	for _, z := range s.zones {
		if z.nb != nil {
			found = append(found, z.nb)
		}
	}
	return found
}
