package flows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/node"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// Node is a node whose recorded flows are listed.
type Node struct {
	Name    string // "" for a single node
	Bridges []*Bridge
	// Remarks are sentences about what was not collected, and what the names lack without it.
	Remarks []string

	dir    *workdir.Dir
	rules  *rules.Rules // nil without a southbound database
	nb, sb *file.Index  // nil if not collected
	parts  *file.Index  // what is known in part of the OVN NB database where that was not collected; nil for nothing
	conf   *file.Index  // the OVS database, nil if not collected
	stages map[stageKey]string
}

// Bridge is a bridge with a dump of its flows.
type Bridge struct {
	Name string

	dir    *workdir.Dir
	dump   string
	layout rules.Layout      // zero for a bridge without OVN's flows
	agent  string            // the kind of the bridge, on a node of neutron's Open vSwitch agent
	ports  map[string]ofPort // by OpenFlow number
	alias  map[string]string // the logical ports of interfaces

	conjoined rules.Conjunctions  // nil if not read yet
	groups    map[string][]string // see hashed; nil if not read yet
}

// flows opens the dump of the bridge's flows.
func (b *Bridge) flows() (*workdir.Opened, error) { return b.dir.Open(b.dump) }

// ofPort is a port of a bridge.
type ofPort struct{ name, logical string }

// stageKey identifies a stage: tables of switches and routers have different ones.
type stageKey struct {
	bridge *Bridge
	table  int
	router bool
}

// ErrNoFlows is wrapped when a node has no recorded flows.
var ErrNoFlows = errors.New("no flows were collected")

// Open opens the recorded flows of a workdir: with a bridge, only the flows of the bridge. The caller has to close the node.
func Open(ctx context.Context, name string, wd *workdir.Dir, bridge string) (*Node, error) {
	node := &Node{Name: name, dir: wd, stages: map[stageKey]string{}}
	if err := node.open(ctx, bridge); err != nil {
		node.Close()
		return nil, err
	}
	return node, nil
}

// Close closes the databases.
func (n *Node) Close() {
	for _, x := range []*file.Index{n.nb, n.sb, n.conf, n.parts} {
		if x != nil {
			x.Close()
		}
	}
}

func (n *Node) open(ctx context.Context, bridge string) error {
	if err := n.findBridges(bridge); err != nil {
		return err
	}
	if err := n.openDatabases(ctx); err != nil {
		return err
	}
	return n.useDatabases(ctx)
}

// useDatabases reads the rules of flows, the layout of tables and the ports from the databases.
func (n *Node) useDatabases(ctx context.Context) (err error) {
	agents := map[string]string{}
	switch {
	case n.sb != nil:
		nb := n.nb
		if nb == nil {
			if nb, err = snapshot.OpenParts(ctx, n.dir, workdir.NB); err != nil {
				return err
			}
			n.parts = nb
		}
		n.rules = rules.New(nb, n.sb)
	case n.conf != nil:
		if agents, err = rules.AgentBridges(n.conf); err != nil {
			return err
		}
		if len(agents) == 0 {
			n.Remarks = append(n.Remarks, "no southbound database of OVN was collected: what the flows are for is not known")
		}
	}
	if n.sb != nil && n.nb == nil {
		n.Remarks = append(n.Remarks, "no northbound database was collected: flows are named by their stages, not by policies and routes")
	}
	if err := n.putFirst(agents); err != nil {
		return err
	}
	for _, bridge := range n.Bridges {
		bridge.agent = agents[bridge.Name]
		if n.rules == nil {
			continue
		}
		if bridge.layout, err = n.rules.ReadLayout(ctx, &n.dir.Data, bridge.dump); err != nil {
			return fmt.Errorf("the flows of bridge %s: %w", bridge.Name, err)
		}
	}
	return n.readPorts(n.conf)
}

// openDatabases opens the databases that were collected, side by side.
func (n *Node) openDatabases(ctx context.Context) error {
	var group errgroup.Group
	for kind, to := range map[workdir.Kind]**file.Index{workdir.NB: &n.nb, workdir.SB: &n.sb, workdir.OVS: &n.conf} {
		path := n.dir.Database(kind)
		if kind == workdir.OVS {
			path = n.dir.SwitchDatabase()
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		group.Go(func() (err error) { *to, err = n.dir.Index(ctx, path); return err })
	}
	return group.Wait()
}

// findBridges finds the bridges with dumps, in the order of their names.
func (n *Node) findBridges(only string) error {
	all, err := n.dir.DumpedBridges(workdir.Flows)
	if err != nil {
		return err
	}
	manifest, err := n.dir.Manifest()
	if err != nil {
		return err
	}
	for _, name := range all {
		if only == "" || name == only {
			n.Bridges = append(n.Bridges, &Bridge{Name: name, dir: n.dir, dump: n.dir.DumpFile(name, workdir.Flows)})
			if partial := manifest.Partial(n.dir.Relative(n.dir.DumpFile(name, workdir.Flows))); partial != nil {
				n.Remarks = append(n.Remarks, fmt.Sprintf("bridge %s: only a part of its flows was collected: %s", name, partial))
			}
		}
	}
	switch {
	case len(all) == 0:
		return fmt.Errorf("%w in %s: collect a source that has the output of ovs-ofctl dump-flows", ErrNoFlows, n.dir.Path())
	case len(n.Bridges) == 0:
		return fmt.Errorf("%w of a bridge %q; there are flows of: %s", ErrNoFlows, only, strings.Join(all, ", "))
	}
	return nil
}

// putFirst moves the integration bridge before the others.
func (n *Node) putFirst(agents map[string]string) error {
	settings, err := ovn.ReadSettings(n.conf)
	isFirst := func(bridge *Bridge) bool {
		if len(agents) > 0 {
			return agents[bridge.Name] == rules.AgentIntegration
		}
		return bridge.Name == settings.Bridge()
	}
	if at := slices.IndexFunc(n.Bridges, isFirst); at > 0 {
		first := n.Bridges[at]
		n.Bridges = slices.Insert(slices.Delete(n.Bridges, at, at+1), 0, first)
	}
	return err
}

// readPorts reads the numbers and names of ports from the OVS database, or else from what
// ovs-ofctl show printed.
func (n *Node) readPorts(conf *file.Index) error {
	byName := map[string]*Bridge{}
	for _, b := range n.Bridges {
		b.ports, b.alias = map[string]ofPort{}, map[string]string{}
		byName[b.Name] = b
		if err := n.readShown(b); err != nil {
			return err
		}
	}
	all, err := node.Bridges(conf)
	for i := range node.Interfaces(all...) {
		if b := byName[i.Port.Bridge.Name]; b != nil {
			b.addPort(i)
		}
	}
	return err
}

func (b *Bridge) addPort(iface *node.Interface) {
	port := ofPort{iface.Name, iface.IDs["iface-id"]}
	if port.logical != "" {
		b.alias[port.name] = port.logical
	}
	if iface.Number > 0 {
		b.ports[strconv.Itoa(iface.Number)] = port
	}
}

func (n *Node) readShown(bridge *Bridge) error {
	file, ok, err := n.dir.Collected(n.dir.BridgeRecorded(bridge.Name, workdir.RecordedShow))
	if err != nil || !ok {
		return err
	}
	defer file.Close()
	for _, p := range openflow.Show(file).Ports {
		bridge.ports[strconv.Itoa(p.Number)] = ofPort{name: p.Name}
	}
	bridge.ports["LOCAL"] = ofPort{name: bridge.Name}
	return nil
}

// port returns a port by the text of an in_port field: a number, or a name.
func (b *Bridge) port(text string) ofPort {
	if p, ok := b.ports[text]; ok {
		return p
	}
	name := strings.Trim(text, `"`)
	return ofPort{name, b.alias[name]}
}
