// Package page writes a whole case, of one node or of many, as one page that needs no server and no
// network: what was collected, what is wrong, the networks, the flows, who reaches whom, and what happened.
package page

import (
	"time"

	"ovs-offline/answer/check"
	"ovs-offline/answer/drift"
	"ovs-offline/answer/graph"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/timeline"
	"ovs-offline/replica/report"
)

// Case is what the page shows at once; the flows of a node are read when they are looked at.
type Case struct {
	Title   string    `json:"title"`
	Folder  string    `json:"folder"`
	Made    time.Time `json:"made"`
	Version string    `json:"version"` // of ovs-offline
	Nodes   []*Node   `json:"nodes"`   // in the order of their names
	// Check is what is wrong.
	Check *check.Report `json:"check"`
	// Physical has the bridges and ports of all nodes, and Logical the switches and routers of OVN; nil
	// where there is nothing to draw.
	Physical *graph.Graph `json:"physical,omitempty"`
	Logical  *graph.Graph `json:"logical,omitempty"`
	// Endpoints are what sends and receives packets, by the names that users know.
	Endpoints []Endpoint `json:"endpoints"`
	// Rules are the rows of the databases that flows were made from.
	Rules []*Rule `json:"rules"`
	// Matrix says who reaches whom; nil where it was not asked.
	Matrix *reach.Document `json:"matrix,omitempty"`
	// Legend explains what the matrix shows.
	Legend []reach.Explained `json:"legend"`
	// Timeline is what happened, the earliest first.
	Timeline []*timeline.Entry `json:"timeline"`
	// Traces are the answers to the questions that the user named.
	Traces []Trace `json:"traces,omitempty"`
	// Absent lists what the page does not have, and why.
	Absent []Absent `json:"absent,omitempty"`
	// Remarks are sentences about the databases and the nodes.
	Remarks []string `json:"remarks,omitempty"`
}

// Node is a node in the overview.
type Node struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	OVS  string `json:"ovs,omitempty"` // version
	OVN  string `json:"ovn,omitempty"` // version
	// Recorded is when the node was recorded, or only the day; "" if neither is known.
	Recorded string `json:"recorded,omitempty"`
	// Collected lists what was collected: a line for each source.
	Collected []string `json:"collected"`
	// Lost names what the sources held and could not be read.
	Lost []string `json:"lost,omitempty"`
	// Synthesised says what the switch was made up from; "" for a switch that was collected.
	Synthesised string `json:"synthesised,omitempty"`
	// Report is how faithful the node's replica is, and Fidelity its sentence; nil and the reason without
	// a replica.
	Report   *report.Report `json:"report,omitempty"`
	Fidelity string         `json:"fidelity"`
	// ItemsLeftOut is the number of entries of the report that the page does not have.
	ItemsLeftOut int    `json:"items_left_out,omitempty"`
	Restored     string `json:"restored,omitempty"` // "100 %"
	// Drift compares the flows with what OVN computes; nil where it was not compared.
	Drift   *drift.Report `json:"drift,omitempty"`
	Drifted string        `json:"drifted,omitempty"` // its sentence
	// Flows is the number of flows that were recorded, and Shown of those in the page. Packets are theirs.
	Flows   int    `json:"flows"`
	Shown   int    `json:"shown"`
	Packets uint64 `json:"packets"`
	// Datapath is the number of recorded flows of the datapath, and DatapathShown of those in the page.
	Datapath      int `json:"datapath"`
	DatapathShown int `json:"datapath_shown"`
	// Chunk is the id of the element of the page that holds the NodeFlows; "" for none.
	Chunk string `json:"chunk,omitempty"`
}

// NodeFlows are the flows of a node.
type NodeFlows struct {
	Stages []Stage `json:"stages"`
	// Flows has a line for each flow: the index of its stage, priority, packets and bytes (null if they
	// were not recorded), datapath, inport, outport, match, the index of its rule in the case (-1 for none),
	// what it is for in words, and its text as recorded.
	Flows [][11]any `json:"flows"`
	// Datapath are the flows of the datapath.
	Datapath []DatapathFlow `json:"datapath"`
}

// Stage is a table of a bridge, with the numbers of all its recorded flows.
type Stage struct {
	Bridge   string `json:"bridge"`
	Table    int    `json:"table"`
	Name     string `json:"name,omitempty"` // of OVN's stage, or what the table is for
	Flows    int    `json:"flows"`
	NeverHit int    `json:"never_hit"`
	Packets  uint64 `json:"packets"`
}

// DatapathFlow is a flow of the datapath in names.
type DatapathFlow struct {
	// Recirc is the number of the recirculation after which packets meet this flow, 0 for packets that come from a port.
	// Next has the numbers of the recirculations that the flow sends packets to. The page draws the flows as a tree by
	// these numbers.
	Recirc  uint32   `json:"recirc"`
	Next    []uint32 `json:"next,omitempty"`
	Packets uint64   `json:"packets"`
	Bytes   uint64   `json:"bytes"`
	Used    string   `json:"used,omitempty"`
	From    string   `json:"from"` // the port by which the packets came in
	Match   string   `json:"match"`
	Actions string   `json:"actions"`
}

// Endpoint is a pod, a VM, a service or another end of packets.
type Endpoint struct {
	Name        string   `json:"name"`
	Kind        string   `json:"kind"`
	LogicalPort string   `json:"port,omitempty"`
	Node        string   `json:"node,omitempty"`
	Chassis     string   `json:"chassis,omitempty"`
	IPs         []string `json:"ips,omitempty"`
	MAC         string   `json:"mac,omitempty"`
	Switch      string   `json:"switch,omitempty"`
	Network     string   `json:"network,omitempty"`
	Backends    []string `json:"backends,omitempty"`
}

// Rule is a row that flows were made from: an ACL, a NAT rule, a load balancer.
type Rule struct {
	UUID  string `json:"uuid"`
	Table string `json:"table"`
	Name  string `json:"name"` // in the words of its user
	// Columns are the columns of its row that are not empty.
	Columns []Column `json:"columns,omitempty"`
	// Flows is the number of its flows by the index of the node, and Packets of what these matched.
	Flows   map[int]int `json:"flows"`
	Packets uint64      `json:"packets"`
}

// Column is a column of a row.
type Column struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Trace is the answer to a question of the user.
type Trace struct {
	Question string `json:"question"`
	Verdict  string `json:"verdict,omitempty"`
	Expected string `json:"expected,omitempty"`
	Passed   bool   `json:"passed"`
	Headline string `json:"headline,omitempty"`
	Error    string `json:"error,omitempty"` // why the question could not be asked
	// Element is the id of the element of the page that holds the drawn answer; "" for none.
	Element string `json:"element,omitempty"`
}

// Absent is a part that the page does not have.
type Absent struct {
	Part string `json:"part"` // the heading of the part
	Why  string `json:"why"`
	Next string `json:"next,omitempty"` // the command that makes it
}
