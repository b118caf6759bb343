package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/answer/trace/conntrack"
	"ovs-offline/internal/interrupt"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// VsctlParams are the parameters of ovs-vsctl.
type VsctlParams struct {
	NodeParams
	Action string `json:"action" jsonschema:"show, list-br, list-ports or list-ifaces"`
	Bridge string `json:"bridge,omitempty" jsonschema:"name of the bridge, for list-ports and list-ifaces"`
	LineParams
}

// OfctlParams are the parameters of ovs-ofctl.
type OfctlParams struct {
	NodeParams
	Action string `json:"action" jsonschema:"dump-flows"`
	Bridge string `json:"bridge" jsonschema:"name of the bridge, such as br-int"`
	LineParams
}

// AppctlParams are the parameters of ovs-appctl.
type AppctlParams struct {
	NodeParams
	Action           string   `json:"action" jsonschema:"dpctl/dump-conntrack (as recorded) or ofproto/trace (on the replica)"`
	Bridge           string   `json:"bridge,omitempty" jsonschema:"name of the bridge, for ofproto/trace"`
	Flow             string   `json:"flow,omitempty" jsonschema:"the packet, for ofproto/trace: in_port=1,ip,nw_src=10.244.0.5,nw_dst=10.96.0.1"`
	AdditionalParams []string `json:"additional_params,omitempty" jsonschema:"for dpctl/dump-conntrack: zone=N"`
	LineParams
}

// ShowParams are the parameters of ovn-show.
type ShowParams struct {
	NodeParams
	Database string `json:"database" jsonschema:"nbdb or sbdb"`
	LineParams
}

// GetParams are the parameters of ovn-get.
type GetParams struct {
	NodeParams
	Database string `json:"database" jsonschema:"nbdb or sbdb"`
	Table    string `json:"table" jsonschema:"name of the table, such as Logical_Switch or Port_Binding"`
	Record   string `json:"record,omitempty" jsonschema:"UUID or name of a record; all records without it"`
	Columns  string `json:"columns,omitempty" jsonschema:"columns, separated by commas: name,_uuid,ports"`
	LineParams
}

// FlowListParams are the parameters of ovn-lflow-list.
type FlowListParams struct {
	NodeParams
	Datapath string `json:"datapath,omitempty" jsonschema:"name or UUID of a logical switch or router; all without it"`
	LineParams
}

// OVNTraceParams are the parameters of ovn-trace.
type OVNTraceParams struct {
	NodeParams
	Datapath  string `json:"datapath" jsonschema:"name of the logical switch or router where the packet starts"`
	Microflow string `json:"microflow" jsonschema:"the packet: inport==\"pod1\" && eth.src==00:00:00:00:00:01 && ip4.src==10.244.0.5"`
	Mode      string `json:"mode,omitempty" jsonschema:"detailed (the default), summary or minimal"`
	LineParams
}

// addCommands adds the tools that answer as the programs of OVS and OVN do: with the lines of their output, and no document.
func addCommands(t *toolbox) {
	addTool(t, &sdk.Tool{Name: "ovs-vsctl", Annotations: readOnly(),
		Description: "Show the configuration of a node's Open vSwitch as it was recorded: show (bridges, ports, interfaces), list-br, list-ports and list-ifaces of a bridge."}, nil, vsctl)
	addTool(t, &sdk.Tool{Name: "ovs-ofctl", Annotations: readOnly(),
		Description: "Dump the OpenFlow flows of a bridge as they were recorded, with the node's counters. Use pattern, for example \"table=0,\", because a bridge can have many thousand flows."}, nil, ofctl)
	addTool(t, &sdk.Tool{Name: "ovs-appctl", Annotations: readOnly(),
		Description: "ofproto/trace: trace one packet through the flows of one bridge on the running replica of a node. dpctl/dump-conntrack: the connections that were recorded. To follow a packet over nodes, use the tool trace."}, nil, appctl)
	addTool(t, &sdk.Tool{Name: "ovn-show", Annotations: readOnly(),
		Description: "Show the logical network of a node's OVN northbound database (nbdb), or chassis and port bindings of its southbound database (sbdb)."}, nil, ovnShow)
	addTool(t, &sdk.Tool{Name: "ovn-get", Annotations: readOnly(),
		Description: "List the records of a table of an OVN database, or get one record. Northbound: Logical_Switch, Logical_Router, Logical_Switch_Port, ACL, Address_Set, Port_Group, Load_Balancer, NAT. Southbound: Chassis, Port_Binding, Datapath_Binding, MAC_Binding."}, nil, ovnGet)
	addTool(t, &sdk.Tool{Name: "ovn-lflow-list", Annotations: readOnly(),
		Description: "List the logical flows of the OVN southbound database, of one datapath or of all."}, nil, logicalFlows)
	addTool(t, &sdk.Tool{Name: "ovn-trace", Annotations: readOnly(),
		Description: "Trace a packet through the logical network of the OVN southbound database. It does not know connections, or flows that are missing on a node: the tool trace does."}, nil, ovnTrace)
}

// toolTime bounds one run of a tool. A trace of OVS 3.1.0 need not end by itself.
const toolTime = time.Minute

// run runs a tool beside the replica of the node, which serves a database; "" for any replica. The output is the lines of the call.
func (c *toolCall) run(ctx context.Context, database workdir.Kind, argv ...string) error {
	state, err := c.node.Running(ctx, c.wd)
	if err != nil {
		return fmt.Errorf("node %s has no running replica: call start (%w)", c.node.FolderName(), err)
	}
	if database != "" && !slices.Contains(state.Kinds, database) {
		return fmt.Errorf("no %s database was collected for node %s", database.Title(), c.node.FolderName())
	}
	executor, err := c.node.Executor(ctx, c.wd, state, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	stderr := &chooser{LineParams: LineParams{Head: 20}}
	exit, err := executor.Exec(ctx, runtime.Command{Argv: argv, Env: replica.Scripts(c.wd, state.Kinds).Environment(), Stdout: c.rows, Stderr: stderr})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s did not end within %v", argv[0], toolTime)
	case err != nil:
		return err
	case exit != 0:
		said, _ := stderr.texts(maxLine)
		return fmt.Errorf("%s: exit code %d: %s", argv[0], exit, strings.Join(said, `\n`))
	}
	return nil
}

// databaseOf returns the kind of a database and the program that reads it.
func databaseOf(name string) (workdir.Kind, string, error) {
	switch name {
	case "nbdb":
		return workdir.NB, "ovn-nbctl", nil
	case "sbdb":
		return workdir.SB, "ovn-sbctl", nil
	}
	return "", "", wrongValue("database", name, "nbdb", "sbdb")
}

func vsctl(ctx context.Context, c *toolCall, in VsctlParams) (any, error) {
	argv := []string{"ovs-vsctl", "--timeout=30"}
	if socket := recordedSocket(c.wd); socket != "" {
		argv = append(argv, "--db=unix:"+socket)
	}
	argv = append(argv, in.Action)
	switch in.Action {
	case "show":
		return nil, c.run(ctx, "", argv...)
	case "list-br":
	case "list-ports", "list-ifaces":
		if err := checkText("bridge", in.Bridge); err != nil {
			return nil, err
		}
		argv = append(argv, in.Bridge)
	default:
		return nil, wrongValue("action", in.Action, "show", "list-br", "list-ports", "list-ifaces")
	}
	c.rows.whole()
	return nil, c.run(ctx, "", argv...)
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

func ofctl(ctx context.Context, c *toolCall, in OfctlParams) (any, error) {
	if in.Action != "dump-flows" {
		return nil, wrongValue("action", in.Action, "dump-flows")
	}
	if err := checkText("bridge", in.Bridge); err != nil {
		return nil, err
	}
	return nil, c.copyRecorded(ctx, c.wd.DumpFile(in.Bridge, workdir.Flows), fmt.Sprintf("flows of a bridge %q", in.Bridge))
}

func appctl(ctx context.Context, c *toolCall, in AppctlParams) (any, error) {
	switch in.Action {
	case "dpctl/dump-conntrack":
		if err := c.chooseZone(in.AdditionalParams); err != nil {
			return nil, err
		}
		return nil, c.copyRecorded(ctx, c.wd.Recorded(workdir.RecordedConntrack), "connections")
	case "ofproto/trace":
		if err := cmp.Or(checkText("bridge", in.Bridge), checkText("flow", in.Flow)); err != nil {
			return nil, err
		}
		c.rows.whole()
		return nil, c.run(ctx, "", "ovs-appctl", "ofproto/trace", in.Bridge, in.Flow)
	}
	return nil, wrongValue("action", in.Action, "dpctl/dump-conntrack", "ofproto/trace")
}

// chooseZone leaves connections of other zones than the one that the parameters name, if one does.
func (c *toolCall) chooseZone(params []string) error {
	for _, text := range params {
		match := zoneFilter.FindStringSubmatch(text)
		if match == nil || c.rows.also != nil {
			return fmt.Errorf("additional_params takes zone=N, and %q is refused", text[:min(len(text), 80)])
		}
		zone, err := strconv.ParseUint(match[1], 10, 16)
		if err != nil {
			return err
		}
		c.rows.also = func(line string) bool {
			entry, ok := conntrack.ParseConnection(line)
			return ok && entry.Zone == uint16(zone)
		}
	}
	return nil
}

// copyRecorded copies a recorded file to the lines of the call.
func (c *toolCall) copyRecorded(ctx context.Context, path, what string) error {
	file, err := interrupt.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no %s were recorded on this node", what)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(c.rows, file)
	return err
}

func ovnShow(ctx context.Context, c *toolCall, in ShowParams) (any, error) {
	kind, program, err := databaseOf(in.Database)
	if err != nil {
		return nil, err
	}
	return nil, c.run(ctx, kind, program, "--timeout=30", "show")
}

func ovnGet(ctx context.Context, c *toolCall, in GetParams) (any, error) {
	kind, program, err := databaseOf(in.Database)
	argv := []string{program, "--timeout=30"}
	if in.Columns != "" {
		err = cmp.Or(err, checkPattern("columns", in.Columns, columnNames))
		argv = append(argv, "--columns="+in.Columns)
	}
	argv = append(argv, "list", in.Table)
	if in.Record != "" {
		argv = append(argv, in.Record)
	}
	if err := cmp.Or(err, checkPattern("table", in.Table, tableName), checkGiven("record", in.Record)); err != nil {
		return nil, err
	}
	return nil, c.run(ctx, kind, argv...)
}

func logicalFlows(ctx context.Context, c *toolCall, in FlowListParams) (any, error) {
	argv := []string{"ovn-sbctl", "--timeout=30", "lflow-list"}
	if in.Datapath != "" {
		argv = append(argv, in.Datapath)
	}
	if err := checkGiven("datapath", in.Datapath); err != nil {
		return nil, err
	}
	return nil, c.run(ctx, workdir.SB, argv...)
}

func ovnTrace(ctx context.Context, c *toolCall, in OVNTraceParams) (any, error) {
	mode, modes := cmp.Or(in.Mode, "detailed"), []string{"detailed", "summary", "minimal"}
	if !slices.Contains(modes, mode) {
		return nil, wrongValue("mode", in.Mode, modes...)
	}
	if err := cmp.Or(checkText("datapath", in.Datapath), checkText("microflow", in.Microflow)); err != nil {
		return nil, err
	}
	c.rows.whole()
	return nil, c.run(ctx, workdir.SB, "ovn-trace", "--"+mode, in.Datapath, in.Microflow)
}
