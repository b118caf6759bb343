package trace

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"sync"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/trace/follow"
	"ovs-offline/trace/names"
	"ovs-offline/trace/rules"
)

// Zone names the files of the OVN databases of one deployment, or of one zone of OVN
// interconnection. NB or SB is "" if it was not collected.
type Zone struct {
	NB, SB string
	Nodes  []string
}

// zone is a Zone with its databases open.
type zone struct {
	nb, sb  *file.Index
	rules   *rules.Rules // nil without SB
	indexes []*file.Index
	nodes   []string
	ovs     map[string]*file.Index // of its nodes
	// encaps returns the chassis by their tunnel addresses.
	encaps func() map[netip.Addr][]follow.Chassis
}

func (z *zone) open(ctx context.Context, path string) (*file.Index, error) {
	if path == "" {
		return nil, nil
	}
	x, err := file.OpenIndex(ctx, path)
	if err == nil {
		z.indexes = append(z.indexes, x)
	}
	return x, err
}

func (z *zone) close() {
	for _, x := range z.indexes {
		x.Close()
	}
}

// openZones opens the databases of zones, and reads the names in them. Also after an
// error, the zones have to be closed.
func openZones(ctx context.Context, nodes []Node, wanted []Zone) (zones []*zone, found *names.Names, err error) {
	dirs := map[string]*workdir.Dir{}
	for _, n := range nodes {
		dirs[n.Name] = n.Dir
	}
	var named []names.Zone
	for _, w := range wanted {
		z := &zone{nodes: w.Nodes, ovs: map[string]*file.Index{}}
		z.encaps = sync.OnceValue(z.readEncaps)
		zones = append(zones, z)
		nz, err := z.openAll(ctx, w, dirs)
		if err != nil {
			return zones, nil, err
		}
		named = append(named, nz)
	}
	found, err = names.Load(ctx, named)
	return zones, found, err
}

// openAll opens the databases of a zone and of its nodes.
func (z *zone) openAll(ctx context.Context, w Zone, dirs map[string]*workdir.Dir) (nz names.Zone, err error) {
	if z.nb, err = z.open(ctx, w.NB); err != nil {
		return nz, err
	}
	if z.sb, err = z.open(ctx, w.SB); err != nil {
		return nz, err
	}
	if z.sb != nil {
		z.rules = rules.New(z.nb, z.sb)
	}
	nz.NB, nz.SB = z.nb, z.sb
	for _, name := range w.Nodes {
		ovs, err := z.open(ctx, dirs[name].Database(workdir.OVS))
		if err != nil {
			return nz, fmt.Errorf("node %s: %w", name, err)
		}
		nz.Nodes = append(nz.Nodes, names.Node{Name: name, OVS: ovs, Flows: dirs[name].DumpFile(names.Integration, workdir.Flows)})
		z.ovs[name] = ovs
	}
	return nz, nil
}

// chassisOf returns the chassis with a tunnel address in the southbound database of a node.
func (s *Session) chassisOf(node string, a netip.Addr) []follow.Chassis {
	return s.nodes[node].zone.encaps()[a]
}

// readEncaps returns the chassis by their tunnel addresses.
func (z *zone) readEncaps() map[netip.Addr][]follow.Chassis {
	found := map[netip.Addr][]follow.Chassis{}
	if z.sb == nil {
		return found
	}
	hostnames := map[string]string{}
	for row, err := range z.sb.Rows("Chassis", "name", "hostname") {
		if err != nil {
			break // chassis that can't be read are called by their names
		}
		hostnames[row.String("name")] = row.String("hostname")
	}
	for row, err := range z.sb.Rows("Encap", "ip", "chassis_name") {
		if err != nil {
			break // their nodes count as not known
		}
		if ip, err := netip.ParseAddr(row.String("ip")); err == nil {
			name := row.String("chassis_name")
			found[ip] = append(found[ip], follow.Chassis{Name: name, Hostname: cmp.Or(hostnames[name], name)})
		}
	}
	return found
}
