package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/set"
	"ovs-offline/trace/conntrack"
)

// VsctlParams are the parameters of ovs-vsctl.
type VsctlParams struct {
	NodeParams
	Action string `json:"action" jsonschema:"show, list-br, list-ports or list-ifaces"`
	Bridge string `json:"bridge,omitempty" jsonschema:"name of the bridge, for list-ports and list-ifaces"`
	LineParams
}

// VsctlResult is the result of ovs-vsctl; one of its lists is set.
type VsctlResult struct {
	Trust      Trust    `json:"trust"`
	Output     string   `json:"output,omitempty"`
	Bridges    []string `json:"bridges,omitempty"`
	Ports      []string `json:"ports,omitempty"`
	Interfaces []string `json:"interfaces,omitempty"`
	Excerpt
}

// OfctlParams are the parameters of ovs-ofctl.
type OfctlParams struct {
	NodeParams
	Action string `json:"action" jsonschema:"dump-flows"`
	Bridge string `json:"bridge" jsonschema:"name of the bridge, such as br-int"`
	PatternParams
	LineParams
}

// OfctlResult is the result of ovs-ofctl.
type OfctlResult struct {
	Trust  Trust    `json:"trust"`
	Bridge string   `json:"bridge"`
	Flows  []string `json:"flows"`
	Excerpt
}

// AppctlParams are the parameters of ovs-appctl.
type AppctlParams struct {
	NodeParams
	Action           string   `json:"action" jsonschema:"dpctl/dump-conntrack (as recorded) or ofproto/trace (on the replica)"`
	Bridge           string   `json:"bridge,omitempty" jsonschema:"name of the bridge, for ofproto/trace"`
	Flow             string   `json:"flow,omitempty" jsonschema:"the packet, for ofproto/trace: in_port=1,ip,nw_src=10.244.0.5,nw_dst=10.96.0.1"`
	AdditionalParams []string `json:"additional_params,omitempty" jsonschema:"for dpctl/dump-conntrack: zone=N"`
	PatternParams
	LineParams
}

// AppctlResult is the result of ovs-appctl.
type AppctlResult struct {
	Trust   Trust    `json:"trust"`
	Entries []string `json:"entries,omitempty"`
	Bridge  string   `json:"bridge,omitempty"`
	Flow    string   `json:"flow,omitempty"`
	Output  string   `json:"output,omitempty"`
	Excerpt
}

func (s *Server) addSwitchTools() {
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovs-vsctl", Annotations: readOnly(),
		Description: "Show the configuration of a node's Open vSwitch as it was recorded: show (bridges, ports, interfaces), list-br, list-ports and list-ifaces of a bridge."}, s.vsctl)
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovs-ofctl", Annotations: readOnly(),
		Description: "Dump the OpenFlow flows of a bridge as they were recorded, with the node's counters. Use pattern, for example \"table=0,\", because a bridge can have many thousand flows."}, s.ofctl)
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovs-appctl", Annotations: readOnly(),
		Description: "ofproto/trace: trace one packet through the flows of one bridge on the running replica of a node. dpctl/dump-conntrack: the connections that were recorded. To follow a packet over nodes, use the tool trace."}, s.appctl)
}

func (s *Server) vsctl(ctx context.Context, _ *sdk.CallToolRequest, in VsctlParams) (_ *sdk.CallToolResult, out VsctlResult, err error) {
	n, wd, err := s.node(in.Name)
	if err != nil {
		return nil, out, err
	}
	argv := []string{"ovs-vsctl", "--timeout=30"}
	if socket := recordedSocket(wd); socket != "" {
		argv = append(argv, "--db=unix:"+socket)
	}
	argv = append(argv, in.Action)
	switch in.Action {
	case "show", "list-br":
	case "list-ports", "list-ifaces":
		if err := name("bridge", in.Bridge); err != nil {
			return nil, out, err
		}
		argv = append(argv, in.Bridge)
	default:
		return nil, out, wrongAction(in.Action, "show", "list-br", "list-ports", "list-ifaces")
	}
	if in.Action != "show" && in.LineParams == (LineParams{}) {
		in.Head = maxLines
	}
	lines, excerpt, err := chosen(in.LineParams, PatternParams{}, func(w io.Writer) error { return run(ctx, n, wd, w, argv...) })
	out = VsctlResult{Trust: trust(n, wd), Excerpt: excerpt}
	switch in.Action {
	case "show":
		out.Output = strings.Join(lines, "\n")
	case "list-br":
		out.Bridges = lines
	case "list-ports":
		out.Ports = lines
	case "list-ifaces":
		out.Interfaces = lines
	}
	return nil, out, err
}

// recordedSocket returns the socket of the database as recorded where the tools run, "" if
// it is not served.
func recordedSocket(wd *workdir.Dir) string {
	if state, err := replica.ReadState(wd); err == nil && state.Pod != nil {
		return state.Pod.Path(wd, wd.RecordedSocket())
	}
	if _, err := os.Stat(wd.RecordedSocket()); err != nil {
		return ""
	}
	return wd.RecordedSocket()
}

func (s *Server) ofctl(ctx context.Context, _ *sdk.CallToolRequest, in OfctlParams) (_ *sdk.CallToolResult, out OfctlResult, err error) {
	if in.Action != "dump-flows" {
		return nil, out, wrongAction(in.Action, "dump-flows")
	}
	n, wd, err := s.node(in.Name)
	if err == nil {
		err = name("bridge", in.Bridge)
	}
	if err != nil {
		return nil, out, err
	}
	out = OfctlResult{Trust: trust(n, wd), Bridge: in.Bridge}
	out.Flows, out.Excerpt, err = chosen(in.LineParams, in.PatternParams, func(w io.Writer) error {
		return copyRecorded(ctx, w, wd.DumpFile(in.Bridge, workdir.Flows), fmt.Sprintf("flows of a bridge %q", in.Bridge))
	})
	return nil, out, err
}

func (s *Server) appctl(ctx context.Context, _ *sdk.CallToolRequest, in AppctlParams) (_ *sdk.CallToolResult, out AppctlResult, err error) {
	n, wd, err := s.node(in.Name)
	if err != nil {
		return nil, out, err
	}
	out.Trust = trust(n, wd)
	switch in.Action {
	case "dpctl/dump-conntrack":
		out.Entries, out.Excerpt, err = connections(ctx, wd, in)
	case "ofproto/trace":
		out.Bridge, out.Flow = in.Bridge, in.Flow
		out.Output, out.Excerpt, err = ofprotoTrace(ctx, n, wd, in)
	default:
		err = wrongAction(in.Action, "dpctl/dump-conntrack", "ofproto/trace")
	}
	return nil, out, err
}

func ofprotoTrace(ctx context.Context, n *set.Node, wd *workdir.Dir, in AppctlParams) (string, Excerpt, error) {
	if err := name("bridge", in.Bridge); err != nil {
		return "", Excerpt{}, err
	}
	if err := name("flow", in.Flow); err != nil {
		return "", Excerpt{}, err
	}
	if in.LineParams == (LineParams{}) {
		in.Head = maxLines
	}
	return output(ctx, n, wd, in.LineParams, in.PatternParams, "ovs-appctl", "ofproto/trace", in.Bridge, in.Flow)
}

// connections returns the recorded connections of all zones, or of one.
func connections(ctx context.Context, wd *workdir.Dir, in AppctlParams) ([]string, Excerpt, error) {
	c, err := newChooser(in.LineParams, in.PatternParams)
	if err != nil {
		return nil, Excerpt{}, err
	}
	for _, p := range in.AdditionalParams {
		m := zoneFilter.FindStringSubmatch(p)
		if m == nil || c.also != nil {
			return nil, Excerpt{}, fmt.Errorf("additional_params takes zone=N, and %q is refused", p[:min(len(p), 80)])
		}
		zone, err := strconv.ParseUint(m[1], 10, 16)
		if err != nil {
			return nil, Excerpt{}, err
		}
		c.also = func(line string) bool {
			e, ok := conntrack.ParseEntry(line)
			return ok && e.Zone == uint16(zone)
		}
	}
	if err := copyRecorded(ctx, c, wd.Recorded(workdir.RecordedConntrack), "connections"); err != nil {
		return nil, Excerpt{}, err
	}
	lines, excerpt := c.lines()
	return lines, excerpt, nil
}

// copyRecorded copies a recorded file.
func copyRecorded(ctx context.Context, w io.Writer, path, what string) error {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return fmt.Errorf("no %s were recorded on this node", what)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := f.Read(buffer)
		_, _ = w.Write(buffer[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
