package scratch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow"
)

// TwinPort is a port of both bridges of Twins.
type TwinPort struct {
	Number int
	Tunnel bool
}

// Twins are two bridges, old and new, beside the integration bridge of a node, with the flows and groups of two states and without meters. The
// ports of a bridge have its name and their number; its tunnels lead to addresses of a network of its own, 198.18.0.0/16 and 198.19.0.0/16.
type Twins struct{ conn *unixctl.Conn }

// twinNames are the names of the bridges.
func twinNames() [2]string { return [2]string{"old", "new"} }

// StartTwins makes the bridges in the ovs-vswitchd of a node. Those of an earlier call are gone.
func (s *Scratch) StartTwins(ctx context.Context, node string, ports []TwinPort, flows [2][]openflow.Flow, groups [2][]openflow.Entry) (*Twins, error) {
	daemons := s.nodes[node]
	if daemons == nil {
		return nil, fmt.Errorf("no node has the name %q", node)
	}
	runDir := daemons.switchDir()
	tool := func(stdin string, argv ...string) error {
		_, err := s.options.Runtime.Tool(ctx, runDir, strings.NewReader(stdin), argv...)
		return err
	}
	vsctl := []string{"ovs-vsctl", "--db=unix:" + socket(daemons.switchServer()), fmt.Sprintf("--timeout=%.0f", s.TimeLimit().Seconds())}
	var remove, add []string // one transaction would leave the bridges as they are
	for i, bridge := range twinNames() {
		remove = append(remove, "--", "--if-exists", "del-br", bridge)
		add = append(add, addBridge(i, bridge, ports)...)
	}
	for _, args := range [][]string{remove, add} {
		if err := tool("", slices.Concat(vsctl, args)...); err != nil {
			return nil, err
		}
	}
	for i, bridge := range twinNames() {
		ofctl := func(command, what string, stdin string) error {
			return tool(stdin, "ovs-ofctl", "-O", openflow.OpenFlow15.String(), command, "unix:"+filepath.Join(runDir, bridge+".mgmt"), what)
		}
		err := errors.Join(
			ofctl("add-tlv-map", "{class=0x102,type=0x80,len=4}->tun_metadata0", ""), // OVN's (controller/ofctrl.c)
			ofctl("add-groups", "-", textOfGroups(groups[i])),
			ofctl("add-flows", "-", textOfFlows(flows[i])))
		if err != nil {
			return nil, err
		}
	}
	conn, err := unixctl.Connect(ctx, runDir, "ovs-vswitchd")
	if err != nil {
		return nil, err
	}
	// Else ovs-vswitchd makes the outer headers of tunnels, for which it lacks routes.
	if _, err := conn.Run(ctx, "dpif/set-dp-features", twinNames()[0], "tnl_push_pop", "false"); err != nil {
		conn.Close()
		return nil, err
	}
	return &Twins{conn}, nil
}

// addBridge returns the commands of ovs-vsctl that make a bridge of Twins.
func addBridge(i int, bridge string, ports []TwinPort) []string {
	var versions []string
	for _, version := range openflow.Versions() {
		versions = append(versions, version.String())
	}
	args := []string{"--", "add-br", bridge, "--", "set", "bridge", bridge, "fail_mode=secure",
		"protocols=" + strings.Join(versions, ",")}
	for _, port := range ports {
		if port.Number <= 0 || port.Number >= openflow.PortLocal&0xff00 {
			continue // the bridge has its own port
		}
		name := fmt.Sprint(bridge, port.Number)
		args = append(args, "--", "add-port", bridge, name, "--", "set", "interface", name, fmt.Sprintf("ofport_request=%d", port.Number))
		if port.Tunnel {
			args = append(args, "type=geneve", "options:key=flow", fmt.Sprintf("options:remote_ip=198.%d.%d.%d", 18+i, port.Number>>8, port.Number&0xff))
		} else {
			args = append(args, "type=dummy")
		}
	}
	return args
}

// meterAction is an action that a trace does not show the result of.
var meterAction = lazyregexp.New(`\bmeter:[0-9]+,?`)

func textOfFlows(flows []openflow.Flow) string {
	var text strings.Builder
	for _, flow := range flows {
		readable, _ := openflow.Rewrite(flow.Text)
		text.WriteString(meterAction.ReplaceAllString(readable, "") + "\n")
	}
	return text.String()
}

func textOfGroups(groups []openflow.Entry) string {
	var text strings.Builder
	for _, group := range groups {
		readable, _ := openflow.Rewrite(group.Text)
		text.WriteString(readable + "\n")
	}
	return text.String()
}

// Trace returns what ofproto/trace prints about a packet, with the names of ports, in the first or the second state.
func (t *Twins) Trace(ctx context.Context, second bool, packet string) (string, error) {
	bridge := twinNames()[0]
	if second {
		bridge = twinNames()[1]
	}
	printed, err := t.conn.Run(ctx, "ofproto/trace", bridge, packet, "--names")
	return string(printed), err
}

// Close closes the connection. The bridges end with the Scratch.
func (t *Twins) Close() { t.conn.Close() }
