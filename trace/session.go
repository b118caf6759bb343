// Package trace answers questions about packets on the running replicas of one or several
// nodes: it finds the endpoints by their names, follows the packet and the reply to it,
// names the rule that decides, and says how far the answer can be trusted.
package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/host"
	"ovs-offline/trace/names"
	"ovs-offline/trace/rules"
)

// Node is a node of a session: its name and its workdir.
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
	dir   *workdir.Dir
	// read holds what was read of the dumps and of logical flows for drops.
	read struct {
		sync.Mutex
		counters   map[counted]*uint64
		cookies    map[tableOf]map[uint64]bool
		candidates map[stageFor][]rules.Candidate
	}
	// called returns the name by which users know a logical port.
	called func(port string) string
	// pipelines reads where ovn-controller put OVN's pipelines.
	pipelines func() (pipelines, error)
}

// Open opens a session on the replicas of nodes. The zones hold the OVN databases from
// which names are taken. What depends on a node whose replica can't be asked is undetermined,
// and Unavailable returns it. It is an error if no replica can be asked.
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
		s.nodes[name].called = s.called
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
	s.openAbsent(ctx, nodes, opened, errs)
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

// openAbsent opens the nodes whose replicas can't be asked, unless that concerns all nodes: it
// puts them in the place of their errors.
func (s *Session) openAbsent(ctx context.Context, nodes []Node, opened []*node, errs []error) {
	isOpen := func(n *node) bool { return n != nil }
	if !slices.ContainsFunc(opened, isOpen) {
		return
	}
	for i, n := range nodes {
		if down, ok := errors.AsType[*host.UnavailableError](errs[i]); ok {
			h, err := host.OpenAbsent(ctx, n.Name, n.Dir, down)
			if errs[i] = err; err == nil {
				opened[i] = newNode(h, n.Dir, answer.Node{Name: n.Name})
			}
		}
	}
}

func openNode(ctx context.Context, n Node) (*node, error) {
	h, err := host.Open(ctx, n.Name, n.Dir)
	if err != nil {
		return nil, err
	}
	trust, err := trustOf(ctx, h, n.Dir)
	if err != nil {
		h.Close()
		return nil, err
	}
	return newNode(h, n.Dir, trust), nil
}

func newNode(h *host.Host, wd *workdir.Dir, trust answer.Node) *node {
	n := &node{Host: h, dir: wd, trust: trust}
	n.pipelines = sync.OnceValues(func() (pipelines, error) { return readPipelines(n.zone.rules, wd, h, n.zone.ovs[n.Name]) })
	return n
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

// Doubts returns why answers by way of a node may be wrong as a whole, a sentence for each cause.
func (s *Session) Doubts() []string {
	var all []string
	for _, name := range s.order {
		for _, why := range s.nodes[name].trust.Doubts {
			all = append(all, fmt.Sprintf("node %s: %s", name, why))
		}
	}
	return all
}

// Unavailable returns the nodes whose replicas could not be asked, when the session was opened
// or by a question since then.
func (s *Session) Unavailable() []*host.UnavailableError {
	var found []*host.UnavailableError
	for _, name := range s.order {
		if down := s.nodes[name].Unavailable(); down != nil {
			found = append(found, down)
		}
	}
	return found
}

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
