package slow

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/history"
	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/snapshot/names"
	"ovs-offline/workdir"
)

// The names of the rules.
const (
	flapping   = "flapping-megaflow"
	replaying  = "datapath-flows-stale"
	exploding  = "megaflow-explosion"
	offloading = "not-offloaded"
	filling    = "conntrack-talker"
	nearLimit  = "conntrack-near-limit"
	tracked    = "conntrack-of-tunnels"
	churning   = "row-churn"
	losing     = "datapath-lost-packets"
	masked     = "datapath-many-masks"
	limited    = "megaflow-limit"
)

// The thresholds of findings.
const (
	fullZone     = 1_000     // entries of a talker that has more than half of a zone
	fullOwnZone  = 10_000    // the same, of the port whose zone it is
	fullShare    = 10        // a sender with less than 1/fullShare of the limit of connections leaves enough to others
	nearPercent  = 90        // of the limit of connections
	slowPackets  = 10_000    // of flows that are not offloaded
	slowPercent  = 20        // of all packets
	manyRemade   = 5         // times that a row was inserted and deleted
	remadeWithin = time.Hour // for each of these times
	manyChanges  = 30        // of a row
	shortPeriods = 10.0      // seconds between its changes
	// longEnough is how long a row has to change so often: as long as that, a deployment is set up.
	longEnough = 10 * time.Minute
)

// Rules returns the rules of a check. They share what they read of a node. Only the rule about the replayed
// flows of the datapath needs a running replica, and judges nothing without.
func Rules() []rule.Rule {
	shared := &memory{nodes: map[*rule.Node]func() (*judged, error){}, names: map[*rule.Deployment]func() (*names.Names, error){}}
	megaflows, conntrack := []rule.Data{rule.Output(workdir.RecordedDatapathFlows)}, []rule.Data{rule.Output(workdir.RecordedConntrack)}
	shown, upcalls := []rule.Data{rule.Output(workdir.RecordedDatapathShow)}, []rule.Data{rule.Output(workdir.RecordedUpcalls)}
	counted := []rule.Data{rule.Either(conntrack[0], rule.HostOutput(workdir.HostSysctl, "output of sysctl -a"))}
	list := []rule.Rule{
		{Name: churning, Severity: rule.Warning, Slow: true, Needs: []rule.Data{rule.Either(rule.OVS(), rule.NB(), rule.SB())}, Deployment: deploymentChurn},
		{Name: replaying, Severity: rule.Warning, Slow: true, Needs: megaflows, Node: shared.findReplayed},
	}
	for name, needs := range map[string][]rule.Data{losing: shown, masked: shown, limited: upcalls, exploding: megaflows, offloading: megaflows,
		filling: conntrack, nearLimit: counted, tracked: conntrack} {
		list = append(list, rule.Rule{Name: name, Severity: rule.Warning, Slow: true, Needs: needs, Node: func(ctx context.Context, n *rule.Node, found func(rule.Finding)) error {
			return shared.find(ctx, n, name, found)
		}})
	}
	return list
}

// memory keeps the findings of nodes.
type memory struct {
	mu    sync.Mutex
	nodes map[*rule.Node]func() (*judged, error)
	names map[*rule.Deployment]func() (*names.Names, error)
}

// judged has the findings of a node: the ones that a replay made, or its error, and the others.
type judged struct {
	replayed, others []rule.Finding
	failed           error
}

// find calls found with the findings of one rule on a node.
func (m *memory) find(ctx context.Context, n *rule.Node, name string, found func(rule.Finding)) error {
	node, err := m.of(ctx, n)()
	if err != nil {
		return err
	}
	for _, f := range node.others {
		if f.Rule == name {
			found(f)
		}
	}
	return nil
}

// findReplayed finds the flows of the datapath that flap, and the stale ones: they do what the OpenFlow
// flows no longer say.
func (m *memory) findReplayed(ctx context.Context, n *rule.Node, found func(rule.Finding)) error {
	node, err := m.of(ctx, n)()
	if err != nil {
		return err
	}
	for _, f := range node.replayed {
		found(f)
	}
	return node.failed
}

// of returns a function that reads a node when it is first called.
func (m *memory) of(ctx context.Context, n *rule.Node) func() (*judged, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[n.Deployment] == nil {
		m.names[n.Deployment] = namesOf(ctx, n.Deployment)
	}
	known := m.names[n.Deployment]
	if m.nodes[n] == nil {
		m.nodes[n] = sync.OnceValues(func() (*judged, error) { return judge(ctx, n, known) })
	}
	return m.nodes[n]
}

// judge reads a node and returns its findings.
func judge(ctx context.Context, n *rule.Node, known func() (*names.Names, error)) (*judged, error) {
	r, err := readNode(ctx, n, known)
	if err != nil {
		return nil, err
	}
	replayed := append(flapFindings(n.Name, r.ofState(flows.Flapping)), staleFindings(n.Name, r)...)
	return &judged{replayed: replayed, others: r.findings(n.Name), failed: r.failed}, nil
}

// deploymentChurn reads the transactions of the databases of a deployment and of its nodes.
func deploymentChurn(ctx context.Context, d *rule.Deployment, found func(rule.Finding)) error {
	var sources []history.Source
	if d.NB != nil {
		sources = append(sources, history.Source{Title: workdir.NB.Title(), Schema: workdir.NB.Schema(), File: d.NB.Path, Open: d.NB.Open})
	}
	if d.SB != nil {
		sources = append(sources, history.Source{Title: workdir.SB.Title(), Schema: workdir.SB.Schema(), File: d.SB.Path, Open: d.SB.Open})
	}
	for _, n := range d.Nodes {
		source, err := history.Of(n.Name, workdir.OVS, n.Dir)
		if err != nil {
			return nodeError(n.Name, err)
		}
		sources = append(sources, source)
	}
	for _, source := range sources {
		churn, err := readChurn(ctx, source)
		if err != nil {
			return err
		}
		if churn == nil {
			continue
		}
		for _, f := range churnFindings(churn) {
			found(f)
		}
	}
	return nil
}

func nodeError(node string, err error) error {
	if node == "" || err == nil {
		return err
	}
	return fmt.Errorf("node %s: %w", node, err)
}

// ruleTexts returns the rules that examiners name.
func ruleTexts(list []flows.Examiner) (texts []string) {
	for _, e := range list {
		texts = append(texts, e.String())
	}
	return texts
}

func staleFindings(node string, r *recordedNode) []rule.Finding {
	stale := r.ofState(flows.Stale)
	if len(stale) == 0 {
		return nil
	}
	m := stale[0]
	return []rule.Finding{{Rule: replaying, Severity: rule.Warning, Nodes: rule.OnNode(node), Weight: int(min(m.Packets, 1<<30)),
		What:     fmt.Sprintf("%s of the datapath did what the OpenFlow flows do not say, the first from %s for %s: %s in place of %s", phrase.Count(len(stale), "flow"), m.From, m.Match, m.Actions, m.Now),
		Follows:  "packets of these flows took another way than a trace shows, until ovs-vswitchd deleted them",
		Evidence: append([]string{"dpctl/dump-flows: " + m.Text}, r.replayed.Remarks...), Next: []rule.Next{rule.Ask("flows", "--datapath")}, Sources: []string{"ovs-vswitchd(8), upcall/show"}}}
}

func flapFindings(node string, flaps []flows.Megaflow) (list []rule.Finding) {
	for _, m := range flaps {
		f := rule.Finding{Rule: flapping, Severity: rule.Warning, Nodes: rule.OnNode(node), Weight: int(min(m.Packets, 1<<30)),
			What:     fmt.Sprintf("the flow of the datapath from %s for %s flaps: %s", m.From, m.Match, m.Why),
			Evidence: append(ruleTexts(m.Unwildcards), "dpctl/dump-flows: "+m.Text),
			Follows:  "after each change of the OpenFlow flows, the next packet is an upcall to ovs-vswitchd again",
			Next:     []rule.Next{rule.Ask("flows", "--datapath"), rule.OnTheNode("ovs-appctl upcall/show"), rule.OnTheNode("ovs-appctl coverage/show")},
			Sources:  []string{"https://github.com/openvswitch/ovs-issues/issues/375", "revalidate_ukey__ in ofproto/ofproto-dpif-upcall.c of Open vSwitch"}}
		list = append(list, f)
	}
	return list
}

func explosionFindings(found []flows.Explosion) (list []rule.Finding) {
	for _, e := range found {
		what := e.String()
		if len(e.Rules) > 0 {
			how := "the flows that look at them: "
			if e.Traced {
				how = "the reason is "
			}
			what += "; " + how + e.Rules[0].String()
		}
		list = append(list, rule.Finding{Rule: exploding, Severity: rule.Warning, Nodes: rule.OnNode(e.Node), Weight: e.Flows, What: what,
			Evidence: append(ruleTexts(e.Rules), "mask: "+e.Mask, "dpctl/dump-flows: "+e.Example),
			Follows:  "each new value is an upcall to ovs-vswitchd, which may reach its limit of flows",
			Next:     []rule.Next{rule.Ask("slow"), rule.OnTheNode("ovs-appctl upcall/show"), rule.OnTheNode("ovs-appctl dpctl/show -s")},
			Sources:  []string{"lib/classifier.h of Open vSwitch"}})
	}
	return list
}

func offloadFindings(o *Offload) []rule.Finding {
	if o == nil || o.Flows == 0 {
		return nil
	}
	f := rule.Finding{Rule: offloading, Severity: rule.Warning, Nodes: rule.OnNode(o.Node), Follows: "the processor forwards these packets",
		Next: []rule.Next{rule.Ask("slow"), rule.OnTheNode("ovs-appctl dpctl/dump-flows -m type=non-offloaded"), rule.OnTheNode("ovs-appctl vlog/set netdev_offload_tc:dbg")}}
	for _, r := range o.Reasons[:min(5, len(o.Reasons))] {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s, %d packets, for example %s", r.What, phrase.Count(r.Flows, "flow"), r.Packets, r.Example))
		if r.Source != "" {
			f.Sources = append(f.Sources, r.Source)
		}
	}
	switch {
	case o.Enabled && o.Offloaded+o.Partial == 0:
		f.What = fmt.Sprintf("other_config:hw-offload is true, and none of %s of the datapath is offloaded", phrase.Count(o.Flows, "flow"))
	case o.Slow >= slowPackets && o.Slow*100 >= o.Packets*slowPercent:
		f.What = fmt.Sprintf("%s that are not offloaded have %d%% of the packets; most of them for: %s", phrase.Count(o.Not(), "flow"), o.Slow*100/o.Packets, o.Reasons[0].What)
		f.Weight = int(min(o.Slow, 1<<30))
	default:
		return nil
	}
	return []rule.Finding{f}
}

func conntrackFindings(c *Conntrack) (list []rule.Finding) {
	if c == nil {
		return nil
	}
	add := func(name, what, follows string, weight int, sources ...string) {
		list = append(list, rule.Finding{Rule: name, Severity: rule.Warning, Nodes: rule.OnNode(c.Node), What: what, Follows: follows, Weight: weight,
			Evidence: []string{fmt.Sprintf("dpctl/dump-conntrack: %d entries", c.Entries)},
			Next:     []rule.Next{rule.Ask("slow"), rule.OnTheNode("ovs-appctl dpctl/ct-stats-show")}, Sources: sources})
	}
	for _, z := range c.Zones {
		t := z.Talker
		if t == nil || t.Entries*2 <= z.Entries || t.Entries <= fullZone || t.own && t.Entries <= fullOwnZone || t.Entries*fullShare < c.Limit {
			continue
		}
		add(filling, fmt.Sprintf("%s has %d of the %d connections of conntrack zone %d%s", talkerText(t), t.Entries, z.Entries, z.Zone, ownerText(z.Owner)),
			"one sender may take the connections that others need", t.Entries, "ovs-actions(7), ct")
	}
	if c.Tunnelled > 0 {
		add(tracked, fmt.Sprintf("%s that the host tracks %s of tunnels", phrase.Count(c.Tunnelled, "connection"), map[bool]string{true: "is", false: "are"}[c.Tunnelled == 1]),
			"each packet of a tunnel is looked up and tracked twice, which costs time and entries", c.Tunnelled, "https://bugs.launchpad.net/bugs/1978806")
	}
	return list
}

func talkerText(t *Talker) string {
	if t.Name == "" || t.Name == t.Address.String() {
		return t.Address.String()
	}
	return fmt.Sprintf("%s (%s)", t.Name, t.Address)
}

func ownerText(owner string) string {
	if owner == "" {
		return ""
	}
	return " of " + owner
}

func churnFindings(c *Churn) (list []rule.Finding) {
	for _, r := range c.Rows {
		what, span, remade := "", r.Last.Sub(r.First), min(r.Inserted, r.Deleted)
		switch {
		case r.several || span < longEnough: // several rows have the name
			continue
		case remade >= manyRemade && span <= remadeWithin*time.Duration(remade):
			what = fmt.Sprintf("%s: row %s of %s was inserted %d times and deleted %d times", c.Database, r.Row, r.Table, r.Inserted, r.Deleted)
		case r.notable >= manyChanges && r.Every > 0 && r.Every <= shortPeriods:
			what = fmt.Sprintf("%s: row %s of %s changed %d times, every %.1f s: %s", c.Database, r.Row, r.Table, r.Changes, r.Every, strings.Join(r.Columns, ", "))
		default:
			continue
		}
		list = append(list, rule.Finding{Rule: churning, Severity: rule.Warning, What: what, At: r.Last, Weight: r.Changes,
			Evidence: []string{fmt.Sprintf("transactions of %s to %s", r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339))},
			Follows:  "each change is computed by ovn-northd or ovn-controller, and revalidates the flows of the datapath",
			Next:     []rule.Next{rule.Ask("history", "--table", r.Table)}, Sources: []string{"ovsdb(7)"}})
	}
	return list
}
