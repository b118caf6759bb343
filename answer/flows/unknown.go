package flows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/ovn"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/rules"
)

// UnknownError is the error for a name in a filter that no node has.
type UnknownError struct {
	What, Name string
	Nearest    []string // names that are like it
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("no %s is called %q", e.What, e.Name)
	if len(e.Nearest) > 0 {
		text += "; names like it: " + strings.Join(e.Nearest, ", ")
	}
	return text
}

// Class returns fault.Usage.
func (e *UnknownError) Class() fault.Class { return fault.Usage }

// Known returns an *UnknownError for a switch, router, port or stage of a filter that no node
// has: why a listing selects no flow.
func (q *Query) Known(ctx context.Context, sources []Source) error {
	known := map[string]map[string]bool{"switch": {}, "router": {}, "port": {}, "stage": {}}
	for _, source := range sources {
		node, err := Open(ctx, source.Name, source.Dir, q.Bridge)
		if err != nil {
			return nodeError(source.Name, err)
		}
		err = node.addNames(ctx, known, q.Filter.Table != "")
		node.Close()
		if err != nil {
			return nodeError(source.Name, err)
		}
	}
	table := q.Filter.Table
	if _, err := strconv.Atoi(table); err == nil {
		table = ""
	}
	for _, asked := range []struct{ what, name string }{{"switch", q.Filter.Switch}, {"router", q.Filter.Router}, {"port", q.Filter.Port}, {"stage", table}} {
		if asked.name == "" || known[asked.what][asked.name] {
			continue
		}
		if asked.what == "port" {
			if port, err := q.logicalPort(ctx, sources); port != "" || err != nil {
				return err
			}
		}
		return &UnknownError{asked.what, asked.name, names.Nearest(asked.name, slices.Sorted(maps.Keys(known[asked.what])))}
	}
	return nil
}

// logicalPort returns the logical port with the filter's port as a name that trace takes:
// NAMESPACE/POD, an address, an instance. It returns "" if none has the name. The error is a
// *names.AmbiguousError if several have it.
func (q *Query) logicalPort(ctx context.Context, sources []Source) (string, error) {
	if q.Filter.Port == "" {
		return "", nil
	}
	for _, source := range sources {
		n := &Node{Name: source.Name, dir: source.Dir}
		port, err := n.portCalled(ctx, q.Filter.Port)
		n.Close()
		if port != "" || err != nil {
			return port, nodeError(source.Name, err)
		}
	}
	return "", nil
}

// portCalled returns the logical port with a name in the databases of a node, "" for none.
func (n *Node) portCalled(ctx context.Context, name string) (string, error) {
	if err := n.openDatabases(ctx); err != nil || n.sb == nil {
		return "", err
	}
	known, err := names.Load(ctx, []*snapshot.Deployment{{NB: n.nb, SB: n.sb, Nodes: []snapshot.Member{{Name: n.Name, Dir: n.dir, OVS: n.conf}}}})
	if err != nil {
		return "", err
	}
	endpoint, err := known.Find(name, names.Filter{})
	if unknown := (*names.UnknownError)(nil); errors.As(err, &unknown) {
		return "", nil
	}
	return endpoint.LogicalPort, err
}

// addNames adds the names that filters select by.
func (n *Node) addNames(ctx context.Context, known map[string]map[string]bool, stages bool) error {
	for _, bridge := range n.Bridges {
		for _, p := range bridge.ports {
			known["port"][p.name], known["port"][p.logical] = true, true
		}
		if !stages {
			continue
		}
		err := n.eachFlow(ctx, bridge, &Filter{}, nil, &Listed{}, func(r *record) (bool, error) {
			stage, err := n.stage(bridge, r)
			known["stage"][stage] = true
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return n.addDatabaseNames(known)
}

// addDatabaseNames adds the names of datapaths and ports in the OVN databases.
func (n *Node) addDatabaseNames(known map[string]map[string]bool) error {
	if n.sb != nil {
		datapaths, err := ovn.Datapaths(n.sb)
		if err != nil {
			return err
		}
		for _, datapath := range datapaths {
			kind := rules.KindSwitch
			if datapath.Router {
				kind = rules.KindRouter
			}
			known[kind][datapath.Name], known[kind][datapath.Given] = true, true
		}
	}
	ports := known[rules.KindPort]
	if err := ovn.EachBinding(n.sb, func(b ovn.Binding) {
		ports[b.Port], ports[b.IDs["name"]], ports[ovn.PortName(b.Port, b.Type, b.IDs, b.Addresses)] = true, true, true
	}); err != nil {
		return err
	}
	return ovn.EachSwitchPort(n.nb, func(p *ovn.SwitchPort) { ports[p.Called()] = true })
}
