package restore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreDatapathPorts gives ports their numbers in the live datapath
// (dpif-dummy/change-port-number) and reports the numbers of both. A tunnel keeps
// the number that ovs-vswitchd chooses.
func restoreDatapathPorts(ctx context.Context, n *Node, o *report.Outcome) error {
	live, recorded, err := livePortNumbers(&n.Recorded)
	if err != nil {
		return err
	}
	if len(live) == 0 {
		o.Note(report.Unknown, "no dpctl/show was collected: the live datapath's port numbers are unknown")
	} else if err := renumberPorts(ctx, &n.Switch, live, o); err != nil {
		return err
	}
	out, err := n.appctl(ctx, "dpif/show")
	if err != nil {
		return err
	}
	for p := range appctl.BridgePorts(out) {
		number := liveNumber(live, p)
		if known, ok := recorded[[2]string{p.Bridge, p.Name}]; ok {
			number = known
		}
		n.Report.Ports = append(n.Report.Ports, report.PortRow{Bridge: p.Bridge, Port: p.Name, OfPort: p.OpenFlow, Live: number, Replica: p.Datapath})
	}
	return nil
}

// livePortNumbers returns the port numbers of the live datapath, from dpctl/show
// by the datapath's names, and from dpif/show by bridge and interface. Without
// dpctl/show, dpif/show gives the datapath's names as well, except for tunnels, because
// it does not print their device in the datapath.
func livePortNumbers(rec *Recorded) (live map[string]string, byInterface map[[2]string]string, err error) {
	datapath, err := rec.text(workdir.RecordedDatapathShow)
	if err != nil {
		return nil, nil, err
	}
	bridges, err := rec.text(workdir.RecordedDpifShow)
	if err != nil {
		return nil, nil, err
	}
	live, byInterface = map[string]string{}, map[[2]string]string{}
	for p := range appctl.BridgePorts(bridges) {
		byInterface[[2]string{p.Bridge, p.Name}] = p.Datapath
		if p.Datapath != "none" && !isTunnel(p.Type) {
			live[p.Name] = p.Datapath
		}
	}
	for p := range appctl.DatapathPorts(datapath) {
		live[p.Name] = p.Number
	}
	return live, byInterface, nil
}

// maxRenumbered bounds how many ports are renumbered: ovs-vswitchd examines all
// its ports after each change.
const maxRenumbered = 300

// renumberPorts first moves the ports to unused numbers, since another port may
// have the live one.
func renumberPorts(ctx context.Context, s *Switch, live map[string]string, o *report.Outcome) error {
	const unused = 60000
	out, err := s.appctl(ctx, "dpctl/show")
	if err != nil {
		return err
	}
	var ports []appctl.DatapathPort
	for p := range appctl.DatapathPorts(out) {
		if p.Number != "0" && live[p.Name] != p.Number && !isTunnelDevice(p.Name) {
			ports = append(ports, p)
		}
	}
	if len(ports) > maxRenumbered {
		o.Note(report.Approximated, "%d ports have other numbers in the replica's datapath than in the live one: ovs-offline translate converts them", len(ports))
		return nil
	}
	slices.SortFunc(ports, func(p, q appctl.DatapathPort) int { return strings.Compare(p.Name, q.Name) })
	for i, p := range ports {
		if _, err := s.appctl(ctx, "dpif-dummy/change-port-number", p.Datapath, p.Name, strconv.Itoa(unused+i)); err != nil {
			o.Note(report.Approximated, "the replica's datapath port numbers are unchanged: %v", err)
			return ctx.Err()
		}
	}
	for _, p := range ports {
		if live[p.Name] == "" {
			continue // the live datapath had no such port
		}
		if _, err := s.appctl(ctx, "dpif-dummy/change-port-number", p.Datapath, p.Name, live[p.Name]); err != nil {
			o.Note(report.Approximated, "port %q: another port of the replica has its datapath port number %s", p.Name, live[p.Name])
			continue
		}
		o.Note(report.Restored, "")
	}
	return ctx.Err()
}

// isTunnelDevice reports whether a name is that of the device that all tunnels of a
// type share. ovs-vswitchd remembers the number of such a device, so the number must
// not change.
func isTunnelDevice(name string) bool {
	kind, _, ok := strings.Cut(name, "_sys")
	return ok && (kind == "genev" || isTunnel(kind))
}

// liveNumber returns a port's number in the live datapath.
func liveNumber(live map[string]string, p appctl.BridgePort) string {
	switch {
	case p.Type == "patch":
		return "none"
	case isTunnel(p.Type):
		prefix := map[string]string{"geneve": "genev_sys", "vxlan": "vxlan_sys", "gre": "gre_sys"}[p.Type]
		for name, number := range live {
			if prefix != "" && strings.HasPrefix(name, prefix) {
				return number
			}
		}
	case live[p.Name] != "":
		return live[p.Name]
	}
	return "unknown"
}
