package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/rules"
)

// Node is a node whose recorded flows are listed.
type Node struct {
	Name    string // "" for a single node
	Bridges []*Bridge
	// Remarks are what was not collected, and what it costs.
	Remarks []string

	dir    *workdir.Dir
	rules  *rules.Rules // nil without a southbound database
	nb, sb *file.Index  // nil if not collected
	conf   *file.Index  // the OVS database, nil if not collected
	stages map[stageKey]string
}

// Bridge is a bridge with a dump of its flows.
type Bridge struct {
	Name string

	dump   string
	layout rules.Layout      // zero for a bridge without OVN's flows
	agent  string            // the kind of the bridge, on a node of neutron's Open vSwitch agent
	ports  map[string]ofPort // by OpenFlow number
	alias  map[string]string // the logical ports of interfaces

	conjoined map[uint32]rules.Flow // nil if not read yet
}

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

// Open opens the recorded flows of a workdir. With a bridge, it opens only those of the
// bridge. The caller has to close the node.
func Open(ctx context.Context, name string, wd *workdir.Dir, bridge string) (*Node, error) {
	n := &Node{Name: name, dir: wd, stages: map[stageKey]string{}}
	if err := n.open(ctx, bridge); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close closes the databases.
func (n *Node) Close() {
	for _, x := range []*file.Index{n.nb, n.sb, n.conf} {
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

// useDatabases takes from the databases what the flows, their tables and ports are.
func (n *Node) useDatabases(ctx context.Context) (err error) {
	agents := map[string]string{}
	switch {
	case n.sb != nil:
		n.rules = rules.New(n.nb, n.sb)
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
	for _, b := range n.Bridges {
		b.agent = agents[b.Name]
		if err := n.readLayout(ctx, b); err != nil {
			return fmt.Errorf("the flows of bridge %s: %w", b.Name, err)
		}
	}
	return n.readPorts(n.conf)
}

// openDatabases opens the databases that were collected, side by side.
func (n *Node) openDatabases(ctx context.Context) error {
	var group errgroup.Group
	for kind, to := range map[workdir.Kind]**file.Index{workdir.NB: &n.nb, workdir.SB: &n.sb, workdir.OVS: &n.conf} {
		path := n.dir.Database(kind)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		group.Go(func() (err error) { *to, err = file.OpenIndex(ctx, path); return err })
	}
	return group.Wait()
}

// findBridges finds the bridges with dumps, in the order of their names but for the
// integration bridge, which comes first.
func (n *Node) findBridges(only string) error {
	const suffix = ".flows.dump"
	entries, err := os.ReadDir(n.dir.RestoreFlows())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var all []string
	for _, e := range entries {
		encoded, isDump := strings.CutSuffix(e.Name(), suffix)
		name, ok := workdir.DecodeName(encoded)
		if !isDump || !ok {
			continue
		}
		all = append(all, name)
		if only == "" || name == only {
			n.Bridges = append(n.Bridges, &Bridge{Name: name, dump: filepath.Join(n.dir.RestoreFlows(), e.Name())})
		}
	}
	switch {
	case len(all) == 0:
		return fmt.Errorf("%w in %s: collect a source that has the output of ovs-ofctl dump-flows", ErrNoFlows, n.dir.Path())
	case len(n.Bridges) == 0:
		return fmt.Errorf("%w of a bridge %q; there are flows of: %s", ErrNoFlows, only, strings.Join(all, ", "))
	}
	slices.SortStableFunc(n.Bridges, func(a, b *Bridge) int {
		rank := func(b *Bridge) int { return cmp.Compare(b.Name, integration) & 1 }
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// integration is the usual name of the integration bridge.
const integration = "br-int"

// readLayout finds the tables of OVN's pipelines. Of a large dump, samples show them.
func (n *Node) readLayout(ctx context.Context, b *Bridge) error {
	if n.rules == nil {
		return nil
	}
	f, err := os.Open(b.dump)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const small, samples, size = 16 << 20, 256, 8 << 10
	if info.Size() > small {
		var parts []io.Reader
		for i := range int64(samples) {
			// A newline ends what precedes the sample; the line that the sample begins in, and
			// the one in which it ends, are problems or flows of the same table.
			parts = append(parts, strings.NewReader("\n"), io.NewSectionReader(f, info.Size()/samples*i, size))
		}
		if b.layout, err = n.rules.Layout(flowsOf(ctx, io.MultiReader(parts...))); err != nil || b.layout.Known() {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	b.layout, err = n.rules.Layout(flowsOf(ctx, f))
	return err
}

func flowsOf(ctx context.Context, r io.Reader) iter.Seq[rules.Flow] {
	return func(yield func(rules.Flow) bool) {
		for f, problem := range openflow.Flows(r) {
			if ctx.Err() != nil {
				return
			}
			if problem != nil {
				continue // Each counts it
			}
			if parsed, err := rules.ParseFlow(f.Text); err == nil && !yield(parsed) {
				return
			}
		}
	}
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
	if conf == nil {
		return nil
	}
	interfaces, ports := map[string]ovsdb.Row{}, map[string][]string{}
	for row, err := range conf.Rows("Interface", "name", "ofport", "external_ids") {
		if err != nil {
			return err
		}
		interfaces[row.UUID] = row
	}
	for row, err := range conf.Rows("Port", "interfaces") {
		if err != nil {
			return err
		}
		ports[row.UUID] = row.UUIDs("interfaces")
	}
	for row, err := range conf.Rows("Bridge", "name", "ports") {
		if err != nil {
			return err
		}
		b := byName[row.String("name")]
		if b == nil {
			continue
		}
		for _, port := range row.UUIDs("ports") {
			for _, id := range ports[port] {
				b.addPort(interfaces[id])
			}
		}
	}
	return nil
}

func (b *Bridge) addPort(row ovsdb.Row) {
	p := ofPort{row.String("name"), row.Map("external_ids")["iface-id"]}
	if p.logical != "" {
		b.alias[p.name] = p.logical
	}
	if number, ok := row.Int("ofport"); ok && number > 0 {
		b.ports[strconv.Itoa(number)] = p
	}
}

func (n *Node) readShown(b *Bridge) error {
	f, ok, err := workdir.OpenCollected(n.dir.BridgeRecorded(b.Name, workdir.RecordedShow))
	if err != nil || !ok {
		return err
	}
	defer f.Close()
	for _, p := range openflow.Show(f).Ports {
		b.ports[strconv.Itoa(p.Number)] = ofPort{name: p.Name}
	}
	b.ports["LOCAL"] = ofPort{name: b.Name}
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
