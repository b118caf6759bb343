package mcp

import (
	"context"
	"io"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/set"
)

// ShowParams are the parameters of ovn-show.
type ShowParams struct {
	NodeParams
	Database string `json:"database" jsonschema:"nbdb or sbdb"`
	LineParams
}

// ShowResult is the result of ovn-show.
type ShowResult struct {
	Trust    Trust  `json:"trust"`
	Database string `json:"database"`
	Output   string `json:"output"`
	Excerpt
}

// GetParams are the parameters of ovn-get.
type GetParams struct {
	NodeParams
	Database string `json:"database" jsonschema:"nbdb or sbdb"`
	Table    string `json:"table" jsonschema:"name of the table, such as Logical_Switch or Port_Binding"`
	Record   string `json:"record,omitempty" jsonschema:"UUID or name of a record; all records without it"`
	Columns  string `json:"columns,omitempty" jsonschema:"columns, separated by commas: name,_uuid,ports"`
	PatternParams
	LineParams
}

// GetResult is the result of ovn-get.
type GetResult struct {
	Trust    Trust  `json:"trust"`
	Database string `json:"database"`
	Table    string `json:"table"`
	Record   string `json:"record,omitempty"`
	Output   string `json:"output"`
	Excerpt
}

// FlowListParams are the parameters of ovn-lflow-list.
type FlowListParams struct {
	NodeParams
	Datapath string `json:"datapath,omitempty" jsonschema:"name or UUID of a logical switch or router; all without it"`
	PatternParams
	LineParams
}

// FlowListResult is the result of ovn-lflow-list.
type FlowListResult struct {
	Trust    Trust    `json:"trust"`
	Datapath string   `json:"datapath,omitempty"`
	Flows    []string `json:"flows"`
	Excerpt
}

// OVNTraceParams are the parameters of ovn-trace.
type OVNTraceParams struct {
	NodeParams
	Datapath  string `json:"datapath" jsonschema:"name of the logical switch or router where the packet starts"`
	Microflow string `json:"microflow" jsonschema:"the packet: inport==\"pod1\" && eth.src==00:00:00:00:00:01 && ip4.src==10.244.0.5"`
	Mode      string `json:"mode,omitempty" jsonschema:"detailed (the default), summary or minimal"`
	PatternParams
	LineParams
}

// OVNTraceResult is the result of ovn-trace.
type OVNTraceResult struct {
	Trust     Trust  `json:"trust"`
	Datapath  string `json:"datapath"`
	Microflow string `json:"microflow"`
	Output    string `json:"output"`
	Excerpt
}

// ovnTools answer as the tools of OVN do.
type ovnTools struct{ nodes }

func (t ovnTools) add(server *sdk.Server) {
	addTool(server, &sdk.Tool{Name: "ovn-show", Annotations: readOnly(),
		Description: "Show the logical network of a node's OVN northbound database (nbdb), or chassis and port bindings of its southbound database (sbdb)."}, t.show)
	addTool(server, &sdk.Tool{Name: "ovn-get", Annotations: readOnly(),
		Description: "List the records of a table of an OVN database, or get one record. Northbound: Logical_Switch, Logical_Router, Logical_Switch_Port, ACL, Address_Set, Port_Group, Load_Balancer, NAT. Southbound: Chassis, Port_Binding, Datapath_Binding, MAC_Binding."}, t.get)
	addTool(server, &sdk.Tool{Name: "ovn-lflow-list", Annotations: readOnly(),
		Description: "List the logical flows of the OVN southbound database, of one datapath or of all."}, t.flowList)
	addTool(server, &sdk.Tool{Name: "ovn-trace", Annotations: readOnly(),
		Description: "Trace a packet through the logical network of the OVN southbound database. It does not know connections, or flows that are missing on a node: the tool trace does."}, t.trace)
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

func (t ovnTools) show(ctx context.Context, _ *sdk.CallToolRequest, in ShowParams) (_ *sdk.CallToolResult, out ShowResult, err error) {
	kind, program, err := databaseOf(in.Database)
	if err != nil {
		return nil, out, err
	}
	node, wd, err := t.serving(ctx, in.Name, kind)
	if err != nil {
		return nil, out, err
	}
	out = ShowResult{Trust: trustIn(node, wd), Database: in.Database}
	out.Output, out.Excerpt, err = toolLines(ctx, node, wd, in.LineParams, PatternParams{}, program, "--timeout=30", "show")
	return nil, out, err
}

// toolLines runs a tool and returns the lines of its output that were asked for.
func toolLines(ctx context.Context, node *set.Node, wd *workdir.Dir, lines LineParams, pattern PatternParams, argv ...string) (string, Excerpt, error) {
	chosen, excerpt, err := chooseLines(lines, pattern, func(w io.Writer) error { return runTool(ctx, node, wd, w, argv...) })
	return strings.Join(chosen, "\n"), excerpt, err
}

func (t ovnTools) get(ctx context.Context, _ *sdk.CallToolRequest, in GetParams) (_ *sdk.CallToolResult, out GetResult, err error) {
	kind, program, err := databaseOf(in.Database)
	if err == nil {
		err = checkPattern("table", in.Table, tableName)
	}
	if err == nil && in.Record != "" {
		err = checkText("record", in.Record)
	}
	if err == nil && in.Columns != "" {
		err = checkPattern("columns", in.Columns, columnNames)
	}
	if err != nil {
		return nil, out, err
	}
	node, wd, err := t.serving(ctx, in.Name, kind)
	if err != nil {
		return nil, out, err
	}
	argv := []string{program, "--timeout=30"}
	if in.Columns != "" {
		argv = append(argv, "--columns="+in.Columns)
	}
	argv = append(argv, "list", in.Table)
	if in.Record != "" {
		argv = append(argv, in.Record)
	}
	out = GetResult{Trust: trustIn(node, wd), Database: in.Database, Table: in.Table, Record: in.Record}
	out.Output, out.Excerpt, err = toolLines(ctx, node, wd, in.LineParams, in.PatternParams, argv...)
	return nil, out, err
}

func (t ovnTools) flowList(ctx context.Context, _ *sdk.CallToolRequest, in FlowListParams) (_ *sdk.CallToolResult, out FlowListResult, err error) {
	argv := []string{"ovn-sbctl", "--timeout=30", "lflow-list"}
	if in.Datapath != "" {
		if err := checkText("datapath", in.Datapath); err != nil {
			return nil, out, err
		}
		argv = append(argv, in.Datapath)
	}
	node, wd, err := t.serving(ctx, in.Name, workdir.SB)
	if err != nil {
		return nil, out, err
	}
	out = FlowListResult{Trust: trustIn(node, wd), Datapath: in.Datapath}
	out.Flows, out.Excerpt, err = chooseLines(in.LineParams, in.PatternParams, func(w io.Writer) error { return runTool(ctx, node, wd, w, argv...) })
	return nil, out, err
}

func (t ovnTools) trace(ctx context.Context, _ *sdk.CallToolRequest, in OVNTraceParams) (_ *sdk.CallToolResult, out OVNTraceResult, err error) {
	if in.Mode == "" {
		in.Mode = "detailed"
	}
	if modes := []string{"detailed", "summary", "minimal"}; !slices.Contains(modes, in.Mode) {
		return nil, out, wrongValue("mode", in.Mode, modes...)
	}
	err = checkText("datapath", in.Datapath)
	if err == nil {
		err = checkText("microflow", in.Microflow)
	}
	if err != nil {
		return nil, out, err
	}
	node, wd, err := t.serving(ctx, in.Name, workdir.SB)
	if err != nil {
		return nil, out, err
	}
	if in.LineParams == (LineParams{}) {
		in.Head = maxLines
	}
	out = OVNTraceResult{Trust: trustIn(node, wd), Datapath: in.Datapath, Microflow: in.Microflow}
	out.Output, out.Excerpt, err = toolLines(ctx, node, wd, in.LineParams, in.PatternParams, "ovn-trace", "--"+in.Mode, in.Datapath, in.Microflow)
	return nil, out, err
}
