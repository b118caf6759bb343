package prove

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/node"
)

// portsOf returns the ports of a bridge by the names of what is behind them.
func portsOf(bridge *node.Bridge, all *names.Names) []BridgePort {
	ports := []BridgePort{{Number: openflow.PortLocal, Name: bridge.Name}}
	for iface := range node.Interfaces(bridge) {
		if iface.Number <= 0 || iface.Number == openflow.PortLocal {
			continue
		}
		port := BridgePort{Number: iface.Number, Name: iface.Name, Tunnel: node.IsTunnel(iface.Type)}
		if e, ok := all.Holder(iface.IDs["iface-id"], 0); ok {
			port.Name, port.Own = e.Name, ownOf(e)
		}
		ports = append(ports, port)
	}
	return ports
}

// ownOf returns the addresses of an endpoint.
func ownOf(e names.Endpoint) []string {
	own := []string{e.MAC}
	for _, ip := range append(e.IPs, linkLocal(e.MAC)) {
		own = append(own, ip.String())
	}
	return own
}

// Judge says what the difference does, and asks bridges with both states beside the integration bridge of a node. Each deployment is the node alone, with
// the databases of a state: the first that knows a port or an address names it. What can't be computed is Undetermined.
func (c Change) Judge(ctx context.Context, running *scratch.Scratch, nodeName string, of ...*snapshot.Deployment) (*Meaning, error) {
	meaning, err := c.judge(ctx, running, nodeName, of)
	if err != nil && ctx.Err() == nil { // the difference stands without its meaning
		return &Meaning{Verdict: Undetermined, Packets: []Treated{}, Missing: []string{err.Error()}}, nil
	}
	return meaning, err
}

func (c Change) judge(ctx context.Context, running *scratch.Scratch, nodeName string, of []*snapshot.Deployment) (*Meaning, error) {
	if err := c.name(ctx, running.Bridge(nodeName), of); err != nil {
		return nil, err
	}
	var ports []scratch.TwinPort
	for _, port := range c.Ports {
		ports = append(ports, scratch.TwinPort{Number: port.Number, Tunnel: port.Tunnel})
	}
	twins, err := running.StartTwins(ctx, nodeName, ports, [2][]openflow.Flow{c.Older.Flows, c.Newer.Flows}, [2][]openflow.Entry{c.Older.Groups, c.Newer.Groups})
	if err == nil {
		defer twins.Close()
		c.Trace = twins.Trace
	} else if ctx.Err() == nil {
		c.NotAsked = err.Error()
	}
	return c.Meaning(ctx)
}

// name adds the ports that a bridge has in deployments, and what these know of addresses.
func (c *Change) name(ctx context.Context, bridge string, of []*snapshot.Deployment) error {
	var known []func(address string) string
	in := map[int]int{} // how many have a port, by its number
	for _, deployment := range of {
		all, err := names.Load(ctx, []*snapshot.Deployment{deployment})
		if err != nil {
			return fmt.Errorf("names: %w", err)
		}
		known = append(known, holderOf(all))
		bridges, err := node.Bridges(deployment.Nodes[0].OVS)
		if err != nil {
			return err
		}
		for _, b := range bridges {
			if b.Name != bridge {
				continue
			}
			for _, port := range portsOf(b, all) {
				in[port.Number]++
				c.addPort(port)
			}
		}
	}
	for _, port := range c.Ports {
		if in[port.Number] < len(of) {
			c.assumed = append(c.assumed, "that both states have the port "+port.Name+", which only one has")
		}
	}
	c.Known = func(address string) (name string) {
		for _, holder := range known {
			name = cmp.Or(name, holder(address))
		}
		return name
	}
	return nil
}

// addPort adds a port of one of the states, unless another one has it.
func (c *Change) addPort(port BridgePort) {
	at := slices.IndexFunc(c.Ports, func(known BridgePort) bool { return known.Number == port.Number })
	switch {
	case at < 0:
		c.Ports = append(c.Ports, port)
	case c.Ports[at].Own == nil: // nothing is known behind it
		c.Ports[at] = port
	}
}
