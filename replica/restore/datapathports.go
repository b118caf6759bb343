package restore

import (
	"context"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

var (
	// datapathPort matches a port of dpctl/show.
	datapathPort = regexp.MustCompile(`^\s+port (\d+): (\S+)`)
	// openflowPort matches a port of dpif/show: "    p1 1/2: (system)".
	openflowPort = regexp.MustCompile(`^    (\S+) (\d+)/(\d+|none): \(([^:)]*)`)
)

// restoreDatapathPorts gives ports the numbers that they had in the live
// datapath (dpif-dummy/change-port-number), and lists both. A tunnel's number
// is chosen by ovs-vswitchd and stays.
func restoreDatapathPorts(ctx context.Context, n *Node, o *report.Outcome) error {
	live, err := n.livePorts()
	if err != nil {
		return err
	}
	if len(live) == 0 {
		o.Note(report.Unknown, "no dpctl/show was collected: the live datapath's port numbers are not known")
	}
	have, err := n.replicaPorts(ctx)
	if err != nil {
		return err
	}
	if err := n.renumber(ctx, live, have, o); err != nil {
		return err
	}
	return n.listPorts(ctx, live)
}

// livePorts are the numbers by name of the live datapath.
func (n *Node) livePorts() (map[string]string, error) {
	live := map[string]string{}
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedDatapathShow), func(line string) error {
		if m := datapathPort.FindStringSubmatch(line); m != nil {
			live[m[2]] = m[1]
		}
		return nil
	})
	return live, err
}

// replicaPorts are the numbers by name of the replica's datapaths, and the
// datapath of each.
func (n *Node) replicaPorts(ctx context.Context) (map[string][2]string, error) {
	out, err := n.appctl(ctx, "dpctl/show")
	if err != nil {
		return nil, err
	}
	have := map[string][2]string{}
	datapath := ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := datapathPort.FindStringSubmatch(line); m != nil {
			have[m[2]] = [2]string{m[1], datapath}
		} else if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			datapath = name[strings.IndexByte(name, '@')+1:]
		}
	}
	return have, nil
}

// maxRenumbered bounds how many ports are moved: ovs-vswitchd looks at all of
// its ports after each move.
const maxRenumbered = 300

// renumber moves ports to their live numbers by way of numbers that nothing
// uses, since another port may hold the one wanted.
func (n *Node) renumber(ctx context.Context, live map[string]string, have map[string][2]string, o *report.Outcome) error {
	const aside = 60000
	if len(live) == 0 {
		return nil
	}
	var names []string
	for name, h := range have {
		if h[0] != "0" && live[name] != h[0] && !isTunnelDevice(name) {
			names = append(names, name)
		}
	}
	if len(names) > maxRenumbered {
		o.Note(report.Approximated, "%d ports have other numbers in the replica's datapath than in the live one: ovs-offline translate rewrites them", len(names))
		return nil
	}
	sort.Strings(names)
	for i, name := range names {
		if _, err := n.appctl(ctx, "dpif-dummy/change-port-number", have[name][1], name, strconv.Itoa(aside+i)); err != nil {
			o.Note(report.Approximated, "the replica's datapath port numbers stay as they are: %v", err)
			return ctx.Err()
		}
	}
	for _, name := range names {
		if live[name] == "" {
			continue // the live datapath had no such port: its number is in nobody's way
		}
		if _, err := n.appctl(ctx, "dpif-dummy/change-port-number", have[name][1], name, live[name]); err != nil {
			o.Note(report.Approximated, "port %q: its datapath port number %s is taken in the replica", name, live[name])
			continue
		}
		o.Note(report.Restored, "")
	}
	return ctx.Err()
}

// isTunnelDevice tells the datapath's device of all tunnels of a type: its
// number is kept by ovs-vswitchd in places that don't follow a change.
func isTunnelDevice(name string) bool {
	for _, prefix := range []string{"genev_sys", "vxlan_sys", "gre_sys", "lisp_sys", "stt_sys", "erspan_sys", "ip6erspan_sys", "ip6gre_sys", "gtpu_sys", "bareudp_sys", "srv6_sys"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// listPorts writes the table of ports to the report.
func (n *Node) listPorts(ctx context.Context, live map[string]string) error {
	out, err := n.appctl(ctx, "dpif/show")
	if err != nil {
		return err
	}
	n.Report.Ports = nil
	bridge := ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := openflowPort.FindStringSubmatch(line); m != nil {
			ofport, _ := strconv.Atoi(m[2])
			n.Report.Ports = append(n.Report.Ports, report.PortRow{Bridge: bridge, Port: m[1], OfPort: ofport, Live: liveNumber(live, m[1], m[4]), Replica: m[3]})
		} else if name, ok := strings.CutSuffix(line, ":"); ok && strings.HasPrefix(line, "  ") {
			bridge = strings.TrimSpace(name)
		}
	}
	return nil
}

func liveNumber(live map[string]string, port, kind string) string {
	switch {
	case kind == "patch":
		return "none"
	case isTunnel(kind):
		prefix := map[string]string{"geneve": "genev_sys", "vxlan": "vxlan_sys", "gre": "gre_sys"}[kind]
		for name, number := range live {
			if prefix != "" && strings.HasPrefix(name, prefix) {
				return number
			}
		}
		return "unknown"
	case live[port] != "":
		return live[port]
	}
	return "unknown"
}
