package prove

import (
	"context"
	"fmt"
	"time"

	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/scratch"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/names"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
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

// judgedWithin bounds the time of a comparison.
const judgedWithin = time.Minute

// Judge computes what the difference does, and asks bridges with both states beside the integration bridge of a node.
func (c Change) Judge(ctx context.Context, running *scratch.Scratch, nodeName string) (*Meaning, error) {
	var ports []scratch.TwinPort
	for _, port := range c.Ports {
		ports = append(ports, scratch.TwinPort{Number: port.Number, Tunnel: port.Tunnel})
	}
	c.Limit = judgedWithin
	twins, err := running.StartTwins(ctx, nodeName, ports, [2][]openflow.Flow{c.Older.Flows, c.Newer.Flows}, [2][]openflow.Entry{c.Older.Groups, c.Newer.Groups})
	if err == nil {
		defer twins.Close()
		c.Trace = twins.Trace
	} else if ctx.Err() == nil {
		c.NotAsked = err.Error()
	}
	return c.Meaning(ctx)
}

// Name adds the ports that a bridge of a node has in its recorded database, and what the OVN databases know of addresses.
func (c *Change) Name(ctx context.Context, name string, wd *workdir.Dir, nb, sb *file.Index, bridge string) error {
	conf, err := wd.Index(ctx, wd.SwitchDatabase())
	if err != nil {
		return err
	}
	defer conf.Close()
	bridges, err := node.Bridges(conf)
	if err != nil {
		return err
	}
	all, err := names.Load(ctx, []*snapshot.Deployment{{NB: nb, SB: sb, Nodes: []snapshot.Member{{Name: name, Dir: wd, OVS: conf}}}})
	if err != nil {
		return fmt.Errorf("names: %w", err)
	}
	for _, b := range bridges {
		if b.Name == bridge {
			c.Ports = portsOf(b, all)
		}
	}
	c.Known = holderOf(all)
	return nil
}
