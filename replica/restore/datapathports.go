package restore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica/report"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// restoreDatapathPorts gives ports their numbers in the live datapath
// (dpif-dummy/change-port-number) and reports the numbers of both. A tunnel keeps
// the number that ovs-vswitchd chooses.
func restoreDatapathPorts(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	live, recorded, err := livePortNumbers(&replica.Recorded)
	if err != nil {
		return err
	}
	if len(live) == 0 {
		outcome.Note(report.Unknown, "no dpctl/show was collected: the live datapath's port numbers are unknown")
	} else if err := renumberPorts(ctx, &replica.Switch, live, outcome); err != nil {
		return err
	}
	out, err := replica.appctl(ctx, "dpif/show")
	if err != nil {
		return err
	}
	for port := range appctl.BridgePorts(out) {
		number := liveNumber(live, port)
		if known, ok := recorded[[2]string{port.Bridge, port.Name}]; ok {
			number = known
		}
		replica.Report.Ports = append(replica.Report.Ports, report.PortRow{Bridge: port.Bridge, Port: port.Name, OfPort: port.OpenFlow, Live: number, Replica: port.Datapath})
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
	for port := range appctl.BridgePorts(bridges) {
		byInterface[[2]string{port.Bridge, port.Name}] = port.Datapath
		if port.Datapath != "none" && !node.IsTunnel(port.Type) {
			live[port.Name] = port.Datapath
		}
	}
	for port := range appctl.DatapathPorts(datapath) {
		live[port.Name] = port.Number
	}
	return live, byInterface, nil
}

// maxRenumbered bounds how many ports are renumbered: ovs-vswitchd examines all
// its ports after each change.
const maxRenumbered = 300

// renumberPorts first moves the ports to unused numbers, since another port may
// have the live one.
func renumberPorts(ctx context.Context, sw *Switch, live map[string]string, outcome *report.Outcome) error {
	const unused = 60000
	out, err := sw.appctl(ctx, "dpctl/show")
	if err != nil {
		return err
	}
	var ports []appctl.DatapathPort
	for port := range appctl.DatapathPorts(out) {
		if port.Number != "0" && live[port.Name] != port.Number && !isTunnelDevice(port.Name) {
			ports = append(ports, port)
		}
	}
	if len(ports) > maxRenumbered {
		outcome.Note(report.Approximated, "%d ports have other numbers in the replica's datapath than in the live one: ovs-offline translate converts them", len(ports))
		return nil
	}
	slices.SortFunc(ports, func(p, q appctl.DatapathPort) int { return strings.Compare(p.Name, q.Name) })
	for i, port := range ports {
		if _, err := sw.appctl(ctx, "dpif-dummy/change-port-number", port.Datapath, port.Name, strconv.Itoa(unused+i)); err != nil {
			outcome.Note(report.Approximated, "the replica's datapath port numbers are unchanged: %v", err)
			return ctx.Err()
		}
	}
	for _, port := range ports {
		if live[port.Name] == "" {
			continue // the live datapath had no such port
		}
		if _, err := sw.appctl(ctx, "dpif-dummy/change-port-number", port.Datapath, port.Name, live[port.Name]); err != nil {
			outcome.Note(report.Approximated, "port %q: another port of the replica has its datapath port number %s", port.Name, live[port.Name])
			continue
		}
		outcome.Note(report.Restored, "")
	}
	return ctx.Err()
}

// isTunnelDevice reports whether a name belongs to the device that all tunnels of a
// type share. ovs-vswitchd remembers the number of such a device, so the number must
// not change.
func isTunnelDevice(name string) bool {
	kind, _, ok := strings.Cut(name, "_sys")
	return ok && (kind == "genev" || node.IsTunnel(kind))
}

// liveNumber returns a port's number in the live datapath.
func liveNumber(live map[string]string, port appctl.BridgePort) string {
	switch {
	case port.Type == "patch":
		return "none"
	case node.IsTunnel(port.Type):
		prefix := map[string]string{"geneve": "genev_sys", "vxlan": "vxlan_sys", "gre": "gre_sys"}[port.Type]
		for name, number := range live {
			if prefix != "" && strings.HasPrefix(name, prefix) {
				return number
			}
		}
	case live[port.Name] != "":
		return live[port.Name]
	}
	return "unknown"
}
