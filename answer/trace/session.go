// Package trace answers questions about packets on the running replicas of one or several
// nodes: it finds the endpoints by their names, follows the packet and the reply to it,
// names the rule that decides, and reports how far the answer can be trusted.
package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// Options are the options of a Session.
type Options struct {
	follow.Options
	// Raw adds the text of ofproto/trace to answers.
	Raw bool
	// Computed reports that the flows of the replicas were computed: their counters are not the
	// node's, and answers leave them out.
	Computed bool
	// Absent also opens nodes if no replica at all can be asked: answers can say where packets go by what was recorded.
	Absent bool
}

// Session answers questions about a set of nodes. Its methods can be called concurrently,
// and its memory does not grow with the number of questions.
type Session struct {
	nodes   map[string]*node
	order   []string
	zones   []*zone
	names   directory
	tracer  *follow.Tracer
	options Options
	remarks []string
	buckets takenBuckets
}

// node is a node with everything that answers about it need.
type node struct {
	*host.Host
	zone  *zone
	trust answer.Fidelity
	dir   *workdir.Dir
	// incomplete is what its replica lacks; nil for a node whose replica can't be asked, and for a switch that was synthesised.
	incomplete *incomplete
	// read holds what was read of the dumps and of logical flows for drops.
	read struct {
		sync.Mutex
		counters   map[counted]*uint64
		cookies    map[tableOf]map[uint64]bool
		candidates map[stageFor][]rules.Candidate
	}
	// nameOf returns the name by which users know a logical port.
	nameOf func(port string) string
	// pipelines reads where ovn-controller put OVN's pipelines.
	pipelines func() (pipelines, error)
}

// Open opens a session on the replicas of the nodes of deployments, whose databases have the
// names. It closes the deployments with the session, and after an error. What depends on a
// node whose replica can't be asked is undetermined, and Unavailable returns it. It is an
// error if no replica can be asked.
func Open(ctx context.Context, deployments []*snapshot.Deployment, options Options) (*Session, error) {
	var nodes []snapshot.Member
	for _, deployment := range deployments {
		nodes = append(nodes, deployment.Nodes...)
	}
	slices.SortFunc(nodes, func(a, b snapshot.Member) int { return strings.Compare(a.Name, b.Name) })
	used := false
	session, err := open(ctx, nodes, func() ([]*snapshot.Deployment, []string, error) {
		used = true
		return deployments, nil, nil
	}, options)
	if !used {
		snapshot.CloseAll(deployments)
	}
	return session, err
}

// open opens a session on the replicas of nodes, and then the databases: without a replica,
// none is read. deployments also returns remarks about the databases.
func open(ctx context.Context, nodes []snapshot.Member, deployments func() ([]*snapshot.Deployment, []string, error), options Options) (*Session, error) {
	session := &Session{nodes: map[string]*node{}, options: options}
	err := session.openHosts(ctx, nodes)
	var opened []*snapshot.Deployment
	if err == nil {
		opened, session.remarks, err = deployments()
	}
	for _, deployment := range opened {
		session.zones = append(session.zones, newZone(deployment))
	}
	if err == nil {
		err = session.loadNames(ctx, opened)
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// loadNames takes the names from deployments, and makes the tracer.
func (s *Session) loadNames(ctx context.Context, deployments []*snapshot.Deployment) (err error) {
	if s.names.Names, err = names.Load(ctx, deployments); err != nil {
		return err
	}
	for _, zone := range s.zones {
		for _, n := range zone.Nodes {
			s.nodes[n.Name].zone = zone
		}
	}
	var hosts []*host.Host
	for _, name := range s.order {
		s.nodes[name].nameOf = s.names.nameOf
		hosts = append(hosts, s.nodes[name].Host)
	}
	s.names.routerPort = s.routerPort
	options := s.options.Options
	options.Chassis, options.Neighbour = s.chassisOf, s.names.neighbour
	s.tracer = follow.New(hosts, options)
	return nil
}

// routerPort returns the name of the router's port by which a packet leaves on a node, "" if it is not
// known. A packet for the port cr-PORT leaves by PORT, on its gateway.
func (s *Session) routerPort(node string, at registers) string {
	n := s.nodes[node]
	if n == nil || n.zone == nil || n.zone.rules == nil {
		return ""
	}
	port, _ := n.zone.rules.Port(at.metadata, at.out)
	return strings.TrimPrefix(port.Name, "cr-")
}

// openHosts opens all nodes at once, because each waits for its replica.
func (s *Session) openHosts(ctx context.Context, nodes []snapshot.Member) error {
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
func (s *Session) openAbsent(ctx context.Context, nodes []snapshot.Member, opened []*node, errs []error) {
	isOpen := func(n *node) bool { return n != nil }
	if !s.options.Absent && !slices.ContainsFunc(opened, isOpen) {
		return
	}
	for i, n := range nodes {
		if down, ok := errors.AsType[*host.UnavailableError](errs[i]); ok {
			absent, err := host.OpenAbsent(ctx, n.Name, n.Dir, down)
			if errs[i] = err; err == nil {
				opened[i] = newNode(absent, n, answer.Fidelity{Name: n.Name})
			}
		}
	}
}

func openNode(ctx context.Context, recorded snapshot.Member) (*node, error) {
	opened, err := host.Open(ctx, recorded.Name, recorded.Dir)
	if err != nil {
		return nil, err
	}
	trust, lacks, err := trustOf(ctx, opened, recorded.Dir)
	if err != nil {
		opened.Close()
		return nil, err
	}
	n := newNode(opened, recorded, trust)
	n.incomplete = lacks
	return n, nil
}

func newNode(opened *host.Host, of snapshot.Member, trust answer.Fidelity) *node {
	n := &node{Host: opened, dir: of.Dir, trust: trust}
	n.pipelines = sync.OnceValues(func() (pipelines, error) { return readPipelines(n.zone.rules, of.Dir, opened, n.zone.Node(n.Name).OVS) })
	return n
}

// Close ends the connections to the replicas and closes the databases.
func (s *Session) Close() {
	for _, n := range s.nodes {
		n.Close()
	}
	for _, z := range s.zones {
		z.Close()
	}
}

// Remarks returns warnings about the databases of the nodes.
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
func (s *Session) Names() *names.Names { return s.names.Names }

// Northbound returns the northbound database of each zone that has one.
func (s *Session) Northbound() []*file.Index {
	var found []*file.Index
	for _, z := range s.zones {
		if z.NB != nil {
			found = append(found, z.NB)
		}
	}
	return found
}
