package mcp

import (
	"context"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ovs-offline/internal/workdir"
	"ovs-offline/set"
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

func (s *Server) addOVNTools() {
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovn-show", Annotations: readOnly(),
		Description: "Show the logical network of a node's OVN northbound database (nbdb), or chassis and port bindings of its southbound database (sbdb)."}, s.ovnShow)
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovn-get", Annotations: readOnly(),
		Description: "List the records of a table of an OVN database, or get one record. Northbound: Logical_Switch, Logical_Router, Logical_Switch_Port, ACL, Address_Set, Port_Group, Load_Balancer, NAT. Southbound: Chassis, Port_Binding, Datapath_Binding, MAC_Binding."}, s.ovnGet)
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovn-lflow-list", Annotations: readOnly(),
		Description: "List the logical flows of the OVN southbound database, of one datapath or of all."}, s.flowList)
	sdk.AddTool(s.server, &sdk.Tool{Name: "ovn-trace", Annotations: readOnly(),
		Description: "Trace a packet through the logical network of the OVN southbound database. It knows no connections and no flows that are missing on a node: the tool trace does."}, s.ovnTrace)
}

// database returns the kind of a database and the program that reads it.
func database(name string) (workdir.Kind, string, error) {
	switch name {
	case "nbdb":
		return workdir.NB, "ovn-nbctl", nil
	case "sbdb":
		return workdir.SB, "ovn-sbctl", nil
	}
	return "", "", fmt.Errorf("database %q is refused; it is nbdb or sbdb", name[:min(len(name), 80)])
}

// served returns a node and its workdir if its replica serves a database.
func (s *Server) served(ctx context.Context, name string, kind workdir.Kind) (*set.Node, *workdir.Dir, error) {
	n, wd, err := s.node(name)
	if err != nil {
		return nil, nil, err
	}
	state, err := running(ctx, n, wd)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range state.Kinds {
		if k == kind {
			return n, wd, nil
		}
	}
	return nil, nil, fmt.Errorf("no %s database was collected for node %s", kind.Title(), nodeName(n))
}

func (s *Server) ovnShow(ctx context.Context, _ *sdk.CallToolRequest, in ShowParams) (_ *sdk.CallToolResult, out ShowResult, err error) {
	kind, program, err := database(in.Database)
	if err != nil {
		return nil, out, err
	}
	n, wd, err := s.served(ctx, in.Name, kind)
	if err != nil {
		return nil, out, err
	}
	out = ShowResult{Trust: trust(n, wd), Database: in.Database}
	out.Output, out.Excerpt, err = output(ctx, n, wd, in.LineParams, PatternParams{}, program, "--timeout=30", "show")
	return nil, out, err
}

// output runs a tool and returns the lines of its output that were asked for.
func output(ctx context.Context, n *set.Node, wd *workdir.Dir, l LineParams, p PatternParams, argv ...string) (string, Excerpt, error) {
	lines, excerpt, err := chosen(l, p, func(w io.Writer) error { return run(ctx, n, wd, w, argv...) })
	return strings.Join(lines, "\n"), excerpt, err
}

func (s *Server) ovnGet(ctx context.Context, _ *sdk.CallToolRequest, in GetParams) (_ *sdk.CallToolResult, out GetResult, err error) {
	kind, program, err := database(in.Database)
	if err == nil {
		err = matching("table", in.Table, tableName)
	}
	if err == nil && in.Record != "" {
		err = name("record", in.Record)
	}
	if err == nil && in.Columns != "" {
		err = matching("columns", in.Columns, columnNames)
	}
	if err != nil {
		return nil, out, err
	}
	n, wd, err := s.served(ctx, in.Name, kind)
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
	out = GetResult{Trust: trust(n, wd), Database: in.Database, Table: in.Table, Record: in.Record}
	out.Output, out.Excerpt, err = output(ctx, n, wd, in.LineParams, in.PatternParams, argv...)
	return nil, out, err
}

func (s *Server) flowList(ctx context.Context, _ *sdk.CallToolRequest, in FlowListParams) (_ *sdk.CallToolResult, out FlowListResult, err error) {
	argv := []string{"ovn-sbctl", "--timeout=30", "lflow-list"}
	if in.Datapath != "" {
		if err := name("datapath", in.Datapath); err != nil {
			return nil, out, err
		}
		argv = append(argv, in.Datapath)
	}
	n, wd, err := s.served(ctx, in.Name, workdir.SB)
	if err != nil {
		return nil, out, err
	}
	out = FlowListResult{Trust: trust(n, wd), Datapath: in.Datapath}
	out.Flows, out.Excerpt, err = chosen(in.LineParams, in.PatternParams, func(w io.Writer) error { return run(ctx, n, wd, w, argv...) })
	return nil, out, err
}

func (s *Server) ovnTrace(ctx context.Context, _ *sdk.CallToolRequest, in OVNTraceParams) (_ *sdk.CallToolResult, out OVNTraceResult, err error) {
	if in.Mode == "" {
		in.Mode = "detailed"
	}
	if in.Mode != "detailed" && in.Mode != "summary" && in.Mode != "minimal" {
		return nil, out, fmt.Errorf("mode %q is refused; it is detailed, summary or minimal", in.Mode[:min(len(in.Mode), 80)])
	}
	err = name("datapath", in.Datapath)
	if err == nil {
		err = name("microflow", in.Microflow)
	}
	if err != nil {
		return nil, out, err
	}
	n, wd, err := s.served(ctx, in.Name, workdir.SB)
	if err != nil {
		return nil, out, err
	}
	if in.LineParams == (LineParams{}) {
		in.Head = maxLines
	}
	out = OVNTraceResult{Trust: trust(n, wd), Datapath: in.Datapath, Microflow: in.Microflow}
	out.Output, out.Excerpt, err = output(ctx, n, wd, in.LineParams, in.PatternParams, "ovn-trace", "--"+in.Mode, in.Datapath, in.Microflow)
	return nil, out, err
}
