package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/set"
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

// switchTools answer as ovs-vsctl, ovs-ofctl and ovs-appctl do.
type switchTools struct{ nodes }

func (t switchTools) add(server *sdk.Server) {
	addTool(server, &sdk.Tool{Name: "ovs-vsctl", Annotations: readOnly(),
		Description: "Show the configuration of a node's Open vSwitch as it was recorded: show (bridges, ports, interfaces), list-br, list-ports and list-ifaces of a bridge."}, t.vsctl)
	addTool(server, &sdk.Tool{Name: "ovs-ofctl", Annotations: readOnly(),
		Description: "Dump the OpenFlow flows of a bridge as they were recorded, with the node's counters. Use pattern, for example \"table=0,\", because a bridge can have many thousand flows."}, t.ofctl)
	addTool(server, &sdk.Tool{Name: "ovs-appctl", Annotations: readOnly(),
		Description: "ofproto/trace: trace one packet through the flows of one bridge on the running replica of a node. dpctl/dump-conntrack: the connections that were recorded. To follow a packet over nodes, use the tool trace."}, t.appctl)
}

func (t switchTools) vsctl(ctx context.Context, _ *sdk.CallToolRequest, in VsctlParams) (_ *sdk.CallToolResult, out VsctlResult, err error) {
	node, wd, err := t.find(ctx, in.Name)
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
		if err := checkText("bridge", in.Bridge); err != nil {
			return nil, out, err
		}
		argv = append(argv, in.Bridge)
	default:
		return nil, out, wrongValue("action", in.Action, "show", "list-br", "list-ports", "list-ifaces")
	}
	if in.Action != "show" && in.LineParams == (LineParams{}) {
		in.Head = maxLines
	}
	lines, excerpt, err := chooseLines(in.LineParams, PatternParams{}, func(w io.Writer) error { return runTool(ctx, node, wd, w, argv...) })
	out = VsctlResult{Trust: trustIn(node, wd), Excerpt: excerpt}
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

func (t switchTools) ofctl(ctx context.Context, _ *sdk.CallToolRequest, in OfctlParams) (_ *sdk.CallToolResult, out OfctlResult, err error) {
	if in.Action != "dump-flows" {
		return nil, out, wrongValue("action", in.Action, "dump-flows")
	}
	node, wd, err := t.find(ctx, in.Name)
	if err == nil {
		err = checkText("bridge", in.Bridge)
	}
	if err != nil {
		return nil, out, err
	}
	out = OfctlResult{Trust: trustIn(node, wd), Bridge: in.Bridge}
	out.Flows, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error {
		return copyRecorded(ctx, w, wd.DumpFile(in.Bridge, workdir.Flows), fmt.Sprintf("flows of a bridge %q", in.Bridge))
	})
	return nil, out, err
}

func (t switchTools) appctl(ctx context.Context, _ *sdk.CallToolRequest, in AppctlParams) (_ *sdk.CallToolResult, out AppctlResult, err error) {
	node, wd, err := t.find(ctx, in.Name)
	if err != nil {
		return nil, out, err
	}
	out.Trust = trustIn(node, wd)
	switch in.Action {
	case "dpctl/dump-conntrack":
		out.Entries, out.Excerpt, err = recordedConnections(ctx, wd, in)
	case "ofproto/trace":
		out.Bridge, out.Flow = in.Bridge, in.Flow
		out.Output, out.Excerpt, err = ofprotoTrace(ctx, node, wd, in)
	default:
		err = wrongValue("action", in.Action, "dpctl/dump-conntrack", "ofproto/trace")
	}
	return nil, out, err
}

func ofprotoTrace(ctx context.Context, node *set.Node, wd *workdir.Dir, in AppctlParams) (string, Excerpt, error) {
	if err := checkText("bridge", in.Bridge); err != nil {
		return "", Excerpt{}, err
	}
	if err := checkText("flow", in.Flow); err != nil {
		return "", Excerpt{}, err
	}
	if in.LineParams == (LineParams{}) {
		in.Head = maxLines
	}
	return toolLines(ctx, node, wd, in.LineParams, in.PatternParams, "ovs-appctl", "ofproto/trace", in.Bridge, in.Flow)
}

// recordedConnections returns the recorded connections of all zones, or of one.
func recordedConnections(ctx context.Context, wd *workdir.Dir, in AppctlParams) ([]string, Excerpt, error) {
	lines, err := newChooser(in.LineParams, in.PatternParams)
	if err != nil {
		return nil, Excerpt{}, err
	}
	for _, text := range in.AdditionalParams {
		match := zoneFilter.FindStringSubmatch(text)
		if match == nil || lines.also != nil {
			return nil, Excerpt{}, fmt.Errorf("additional_params takes zone=N, and %q is refused", text[:min(len(text), 80)])
		}
		zone, err := strconv.ParseUint(match[1], 10, 16)
		if err != nil {
			return nil, Excerpt{}, err
		}
		lines.also = func(line string) bool {
			entry, ok := conntrack.ParseConnection(line)
			return ok && entry.Zone == uint16(zone)
		}
	}
	if err := copyRecorded(ctx, lines, wd.Recorded(workdir.RecordedConntrack), "connections"); err != nil {
		return nil, Excerpt{}, err
	}
	kept, excerpt := lines.lines()
	return kept, excerpt, nil
}

// copyRecorded copies a recorded file.
func copyRecorded(ctx context.Context, w io.Writer, path, what string) error {
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return fmt.Errorf("no %s were recorded on this node", what)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	buffer := make([]byte, 256<<10)
	for ctx.Err() == nil {
		n, err := file.Read(buffer)
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
