package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/answer/flows"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/whatif"
	"ovs-offline/snapshot/names"
)

// CheckParams are the parameters of check.
type CheckParams struct {
	NodesParams
	LineParams
}

// PacketParams are the parameters of why and bisect.
type PacketParams struct {
	NodesParams
	From     string `json:"from"`
	To       string `json:"to"`
	Protocol string `json:"protocol,omitempty"`
	Family   int    `json:"family,omitempty"`
	Network  string `json:"network,omitempty"`
	LineParams
}

// between returns the packet.
func (in *PacketParams) between() (trace.Between, error) {
	packet := TraceParams{From: in.From, To: in.To, Protocol: in.Protocol, Family: in.Family, Network: in.Network}
	return packet.between(), packet.check()
}

// TraceParams are the parameters of trace.
type TraceParams struct {
	From       string `json:"from,omitempty" jsonschema:"where the packet starts: ns1/web-0"`
	To         string `json:"to,omitempty" jsonschema:"where it goes: svc/ns2/db:5432"`
	Protocol   string `json:"protocol,omitempty" jsonschema:"tcp, udp, sctp, icmp or icmp6"`
	Family     int    `json:"family,omitempty" jsonschema:"4 or 6; without it IPv4 where both ends have it. A typed address has its own"`
	Network    string `json:"network,omitempty" jsonschema:"network or logical switch of names that several have"`
	Size       int    `json:"size,omitempty" jsonschema:"size of the frame in bytes"`
	TTL        int    `json:"ttl,omitempty"`
	SourcePort uint16 `json:"source_port,omitempty"`
	Name       string `json:"name,omitempty" jsonschema:"with flow: the node where the packet starts"`
	Flow       string `json:"flow,omitempty" jsonschema:"in place of from and to: BRIDGE in_port=PORT,..."`
	NewOnly    bool   `json:"new_connection,omitempty" jsonschema:"take the connection as new, whatever was recorded"`
	Stages     bool   `json:"stages,omitempty" jsonschema:"also return every stage that the packet passes"`
	LineParams
}

// between returns the packet between two endpoints.
func (in *TraceParams) between() trace.Between {
	return trace.Between{From: in.From, To: in.To, Network: in.Network, Size: in.Size,
		Question: names.Question{Protocol: in.Protocol, TTL: in.TTL, SrcPort: in.SourcePort, Family: in.Family}}
}

func (in *TraceParams) check() error {
	if (in.Flow == "") == (in.From == "" || in.To == "") {
		return errors.New("from and to are needed, or flow")
	}
	for what, text := range map[string]string{"from": in.From, "to": in.To, "protocol": in.Protocol, "network": in.Network, "name": in.Name, "flow": in.Flow} {
		if err := checkGiven(what, text); err != nil {
			return err
		}
	}
	if known := names.Protocols(); in.Protocol != "" && !slices.Contains(known, in.Protocol) {
		return fmt.Errorf("protocol is one of %s, not %q", strings.Join(known, ", "), in.Protocol)
	}
	return checkFamily(in.Family)
}

func checkFamily(family int) error {
	if family != 0 && family != 4 && family != 6 {
		return fmt.Errorf("family is 4 or 6, not %d", family)
	}
	return nil
}

// ReachParams are the parameters of reach.
type ReachParams struct {
	From     []string `json:"from,omitempty" jsonschema:"names of groups or endpoints, * stands for any text; all without it"`
	To       []string `json:"to,omitempty" jsonschema:"names of groups or endpoints, * stands for any text; all without it"`
	Ports    []string `json:"ports,omitempty" jsonschema:"icmp, tcp/80, udp/53; the ports of ACLs and load balancers without it"`
	By       string   `json:"by,omitempty" jsonschema:"namespace, group, network or port; what fits the deployment without it"`
	Services bool     `json:"services,omitempty" jsonschema:"also ask for the addresses of services"`
	Family   int      `json:"family,omitempty" jsonschema:"4 or 6; without it IPv4 where both ends have it"`
	LineParams
}

// options returns the options of a matrix.
func (in *ReachParams) options() (reach.Options, error) {
	options := reach.Options{By: reach.By(in.By), From: in.From, To: in.To, Services: in.Services, Family: in.Family}
	if ways := []string{string(reach.ByNamespace), string(reach.ByGroup), string(reach.ByNetwork), string(reach.ByPort)}; in.By != "" && !slices.Contains(ways, in.By) {
		return options, wrongValue("by", in.By, ways...)
	}
	for _, text := range in.Ports {
		port, err := reach.ParsePort(text)
		if err != nil {
			return options, err
		}
		options.Ports = append(options.Ports, port)
	}
	return options, checkFamily(in.Family)
}

// FlowsParams are the parameters of flows.
type FlowsParams struct {
	NodeParams
	Bridge   string   `json:"bridge,omitempty"`
	Table    string   `json:"table,omitempty" jsonschema:"number, or name of a stage"`
	Match    []string `json:"match,omitempty" jsonschema:"fields with or without values"`
	Port     string   `json:"port,omitempty" jsonschema:"logical port or interface"`
	Switch   string   `json:"switch,omitempty"`
	Router   string   `json:"router,omitempty"`
	Policy   string   `json:"policy,omitempty" jsonschema:"part of what the flow is for"`
	Hit      bool     `json:"hit,omitempty" jsonschema:"only flows that matched packets"`
	NeverHit bool     `json:"never_hit,omitempty"`
	Sort     string   `json:"sort,omitempty" jsonschema:"packets, bytes or table"`
	LineParams
}

// query returns the flows to list.
func (in *FlowsParams) query() (flows.Query, error) {
	query := flows.Query{Bridge: in.Bridge, Sort: flows.Order(in.Sort), Filter: flows.Filter{Table: in.Table, Match: in.Match, Port: in.Port,
		Switch: in.Switch, Router: in.Router, Policy: in.Policy, Hit: in.Hit, NeverHit: in.NeverHit}}
	if !slices.Contains([]flows.Order{flows.AsRecorded, flows.ByPackets, flows.ByBytes, flows.ByTable}, query.Sort) {
		return query, wrongValue("sort", in.Sort, "packets", "bytes", "table")
	}
	return query, nil
}

// TopParams are the parameters of top.
type TopParams struct {
	NodesParams
	By    string `json:"by,omitempty" jsonschema:"rule (the default), acl, policy, lb, route, stage, table or node"`
	Limit int    `json:"limit,omitempty" jsonschema:"length of each list (default 10)"`
}

// HistoryParams are the parameters of history.
type HistoryParams struct {
	NodeParams
	Database string `json:"database" jsonschema:"nbdb, sbdb or conf (Open vSwitch)"`
	Table    string `json:"table,omitempty"`
	Record   string `json:"record,omitempty" jsonschema:"name, UUID or its beginning"`
	Column   string `json:"column,omitempty"`
	Since    string `json:"since,omitempty" jsonschema:"time as in 2026-11-22T14:57:26Z"`
	Until    string `json:"until,omitempty"`
	LineParams
}

// TimelineParams are the parameters of timeline.
type TimelineParams struct {
	NodesParams
	Since  string `json:"since,omitempty" jsonschema:"time as in 2026-11-22T14:57:26Z"`
	Until  string `json:"until,omitempty"`
	Record string `json:"record,omitempty" jsonschema:"name or UUID"`
	Level  string `json:"level,omitempty" jsonschema:"this or worse: dbg, info, warn, err; without it also what changed"`
	LineParams
}

// WhatIfParams are the parameters of what-if.
type WhatIfParams struct {
	NodesParams
	Change   []string `json:"change" jsonschema:"commands of ovn-nbctl: acl-add web to-lport 1001 'tcp' drop"`
	From     string   `json:"from,omitempty" jsonschema:"also follow a packet before and after"`
	To       string   `json:"to,omitempty"`
	Protocol string   `json:"protocol,omitempty"`
	LineParams
}

// ask adds the change and the packet to a question.
func (in *WhatIfParams) ask(question *whatif.Question) (err error) {
	if question.Change, err = whatif.ReadScript(strings.NewReader(strings.Join(in.Change, "\n"))); err != nil {
		return err
	}
	if (in.From == "") != (in.To == "") {
		return errors.New("from and to go together")
	}
	if in.From == "" {
		return nil
	}
	packet := PacketParams{From: in.From, To: in.To, Protocol: in.Protocol}
	between, err := packet.between()
	question.Trace = &between
	return err
}

// DriftParams are the parameters of drift.
type DriftParams struct {
	NodeParams
	Northd bool `json:"northd,omitempty" jsonschema:"also compare the logical flows with what ovn-northd makes of the northbound database"`
	LineParams
}

// CompareParams are the parameters of compare.
type CompareParams struct {
	Old string `json:"old" jsonschema:"the earlier capture: an sos report, a must-gather, or a file or folder of ovs-offline, relative to the server's root"`
	New string `json:"new" jsonschema:"the later capture"`
	LineParams
}
