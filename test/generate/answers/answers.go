// Package answers makes answers to questions about packets, for tests of what prints and
// draws them.
package answers

import (
	"fmt"
	"strings"

	"ovs-offline/answer/trace/answer"
)

// All returns the answers by name.
func All() map[string]answer.Answer {
	return map[string]answer.Answer{
		"two-hops": twoHops(), "five-hops": fiveHops(), "twelve-hops": twelveHops(), "dropped": dropped(),
		"backends": backends(), "flood": flood(), "undetermined": undetermined(), "one-way": oneWay(),
		"long-names": longNames(), "many-stages": manyStages(), "patch": patch(), "generated": generated(),
		"hostile": Hostile(), "empty": {Question: "a b"}, "senders": senders(),
	}
}

const packet = "tcp,in_port=3,dl_src=0a:58:0a:f4:01:05,dl_dst=0a:58:0a:f4:01:01,nw_src=10.244.1.5,nw_dst=10.96.3.4,nw_ttl=64,tp_src=40000,tp_dst=5432"

func at(node, bridge, port, logical string) answer.Location {
	return answer.Location{Node: node, Bridge: bridge, Port: port, LogicalPort: logical}
}

// stages returns stages of a logical switch or router, the last with a rule.
func stages(datapath, pipeline, rule string, names ...string) []answer.Stage {
	var all []answer.Stage
	for i, name := range names {
		table := 8 + i
		if pipeline == "egress" {
			table = 40 + i
		}
		all = append(all, answer.Stage{
			Table: table, Name: name, Datapath: datapath, Pipeline: pipeline,
			Flow: "ip,reg14=0x2,metadata=0x3", Cookie: fmt.Sprintf("0x%x", 0x3c43a14+i), Match: "ip4 && inport == \"ns1_web-0\"",
			Actions: fmt.Sprintf("set_field:0/0x1000->reg10\nresubmit(,%d)", table+1),
		})
	}
	last := &all[len(all)-1]
	last.Rule, last.Row = rule, "ACL"
	if rule == "" {
		last.Row = ""
	}
	return all
}

func switchIn(name, rule string) []answer.Stage {
	return stages("switch "+name, "ingress", rule, "ls_in_check_port_sec", "ls_in_apply_port_sec", "ls_in_lookup_fdb", "ls_in_pre_acl", "ls_in_pre_lb", "ls_in_pre_stateful")
}

func switchAfter(name, rule string) []answer.Stage {
	return stages("switch "+name, "ingress", rule, "ls_in_acl_hint", "ls_in_acl_eval", "ls_in_acl_action", "ls_in_lb", "ls_in_l2_lkup")
}

func switchOut(name, rule string) []answer.Stage {
	return stages("switch "+name, "egress", rule, "ls_out_pre_acl", "ls_out_pre_stateful", "ls_out_acl_hint", "ls_out_acl_eval")
}

func router(name, rule string) []answer.Stage {
	return stages("router "+name, "ingress", rule, "lr_in_admission", "lr_in_ip_input", "lr_in_unsnat", "lr_in_ip_routing", "lr_in_arp_resolve")
}

func trust(nodes ...string) answer.Trust {
	t := answer.Trust{Assumed: []string{"the connection is new, because no dump of conntrack has an entry"}}
	for _, n := range nodes {
		t.Nodes = append(t.Nodes, answer.Fidelity{Name: n, Restored: 100})
	}
	return t
}

func hop(from int, via string, place answer.Location, passed ...[]answer.Stage) answer.Hop {
	h := answer.Hop{Location: place, From: from, Via: via, Packet: packet, Datapath: "ct(zone=8,nat),recirc(0x38)", Raw: "Flow: " + packet + "\n\nbridge(\"" + place.Bridge + "\")\n----------------\n 0. in_port=3, priority 100, cookie 0x3c43a14\n    resubmit(,8)\n"}
	for _, s := range passed {
		h.Stages = append(h.Stages, s...)
	}
	return h
}

func delivered(p answer.Location) answer.End { return answer.End{Kind: answer.Delivered, Location: p} }

func arrives(p answer.Location) []answer.Outcome {
	return []answer.Outcome{{Location: p, Packet: packet, Destination: true}}
}

// twoHops is the question of a pod about another one on the next node.
func twoHops() answer.Answer {
	dst := at("worker-2", "br-int", "8a2f1c77e3b1_3", "ns2_db-0")
	a := answer.Answer{
		Question: "ns1/web-0 ns2/db-0", Verdict: answer.Reachable, Outcomes: arrives(dst), Trust: trust("worker-1", "worker-2"),
		Path: []answer.Hop{
			hop(-1, "", at("worker-1", "br-int", "3c1d0e9a41f2_3", "ns1_web-0"), switchIn("worker-1", ""), router("ovn_cluster_router", "route 10.244.2.0/24 by way of rtos-worker-2")),
			hop(0, "geneve", at("worker-2", "br-int", "ovn-worker-1-0", ""), switchOut("worker-2", "NetworkPolicy ns2/allow-web (ACL priority 1001, allow-related)")),
		},
	}
	a.Path[1].Ends = []answer.End{delivered(dst)}
	back := at("worker-1", "br-int", "3c1d0e9a41f2_3", "ns1_web-0")
	a.Return = &answer.Answer{
		Question: "reply of ns2/db-0 to ns1/web-0", Verdict: answer.Reachable, Outcomes: arrives(back), Trust: a.Trust,
		Path: []answer.Hop{
			hop(-1, "", dst, switchIn("worker-2", "")),
			hop(0, "geneve", at("worker-1", "br-int", "ovn-worker-2-0", ""), switchOut("worker-1", "")),
		},
	}
	a.Return.Path[1].Ends = []answer.End{delivered(back)}
	return a
}

// fiveHops passes connection tracking on both nodes.
func fiveHops() answer.Answer {
	a := twoHops()
	a.Question = "ns1/web-0 svc/ns2/db:5432"
	first, last := a.Path[0], a.Path[1]
	conntrack := func(from int, p answer.Location, connection string, s []answer.Stage) answer.Hop {
		h := hop(from, "", p, s)
		h.Connection = connection
		return h
	}
	backend := conntrack(1, first.Location, "new: no entry in zone 8", router("ovn_cluster_router", "route 10.244.2.0/24 by way of rtos-worker-2"))
	backend.Choice = "backend 10.244.2.7:5432 (1 of 1)"
	last.From, last.Choice, last.Stages = 2, backend.Choice, switchOut("worker-2", "")
	end := conntrack(3, last.Location, "established: tcp 10.244.1.5:40000 to 10.244.2.7:5432 in zone 11", switchOut("worker-2", "NetworkPolicy ns2/allow-web (ACL priority 1001, allow-related)"))
	end.Ends, end.Choice, last.Ends = last.Ends, backend.Choice, nil
	first.Stages = switchIn("worker-1", "service ns2/db (load balancer 10.96.3.4:5432)")
	a.Path = []answer.Hop{first, conntrack(0, first.Location, "new: no entry in zone 8", switchAfter("worker-1", "")), backend, last, end}
	return a
}

// twelveHops goes from an instance by its gateway to a floating IP on another node.
func twelveHops() answer.Answer {
	dst := at("compute2", "br-int", "tap91b0c3f2-5e", "vm-17")
	a := answer.Answer{Question: "vm-3 external/203.0.113.20 tcp/22", Verdict: answer.Reachable, Outcomes: arrives(dst), Trust: trust("compute1", "gateway1", "compute2")}
	a.Trust.Nodes[1] = answer.Fidelity{Name: "gateway1", Restored: 99.97, Warnings: []string{"2 flows of br-int were rejected: unknown field nsh_mdtype"}}
	a.Trust.Assumed = append(a.Trust.Assumed, "the top-of-rack switch forwards VLAN 101 between gateway1 and compute2")
	add := func(node, bridge, via string, s []answer.Stage, connection string) {
		h := hop(len(a.Path)-1, via, at(node, bridge, "", ""), s)
		h.Connection = connection
		a.Path = append(a.Path, h)
	}
	add("compute1", "br-int", "", switchIn("private", ""), "")
	a.Path[0].Port, a.Path[0].LogicalPort = "tap7c22d0aa-14", "vm-3"
	add("compute1", "br-int", "", switchAfter("private", "security group default, rule 4d1c9b07-99bb-4c9f-a1e8-3f4ad3a0c2f1 (egress, any)"), "new: no entry in zone 4")
	add("compute1", "br-int", "", router("router1", "route 0.0.0.0/0 by way of 203.0.113.1"), "")
	add("gateway1", "br-int", "geneve", router("router1", "NAT: SNAT 192.168.10.0/24 to 203.0.113.5"), "")
	add("gateway1", "br-int", "", router("router1", ""), "new, source changed to 203.0.113.5:6504")
	add("gateway1", "br-int", "", switchOut("public", ""), "")
	add("gateway1", "br-ex", "patch port patch-provnet-1-to-br-int", []answer.Stage{{Table: 0, Flow: "priority=0", Actions: "NORMAL"}}, "")
	add("compute2", "br-ex", "physical network physnet1, VLAN 101", []answer.Stage{{Table: 0, Flow: "priority=0", Actions: "NORMAL"}}, "")
	add("compute2", "br-int", "patch port patch-br-int-to-provnet-1", switchIn("public", ""), "")
	add("compute2", "br-int", "", router("router1", "NAT: floating IP 203.0.113.20 of vm-17 (192.168.10.9)"), "new: no entry in zone 7")
	add("compute2", "br-int", "", switchIn("private", ""), "destination changed to 192.168.10.9")
	add("compute2", "br-int", "", switchOut("private", "security group ssh, rule 77d0 (ingress, tcp 22)"), "new: no entry in zone 12")
	a.Path[11].Ends = []answer.End{delivered(dst)}
	return a
}

// dropped ends at a network policy on the second node.
func dropped() answer.Answer {
	a := fiveHops()
	a.Verdict, a.Outcomes, a.Return = answer.Unreachable, nil, nil
	last := &a.Path[4]
	last.Stages[3].Rule, last.Stages[3].Row = "NetworkPolicy ns2/deny-all (ACL priority 1000, drop)", "ACL"
	place := at("worker-2", "br-int", "", "")
	a.Drop = &answer.Drop{Location: place, Stage: last.Stages[3], Reason: "ACL", Choice: last.Choice}
	last.Ends = []answer.End{{Kind: answer.Dropped, Location: place, Text: "ACL"}}
	return a
}

// backends is a service of three backends, one of which a policy protects.
func backends() answer.Answer {
	a := answer.Answer{Question: "ns1/web-0 svc/ns2/db:5432", Verdict: answer.Ambiguous, Trust: trust("worker-1", "worker-2", "worker-3")}
	a.Path = []answer.Hop{hop(-1, "", at("worker-1", "br-int", "3c1d0e9a41f2_3", "ns1_web-0"), switchIn("worker-1", "service ns2/db (load balancer 10.96.3.4:5432)"))}
	for i, node := range []string{"worker-1", "worker-2", "worker-3"} {
		choice := fmt.Sprintf("backend 10.244.%d.7:5432 (%d of 3)", i+1, i+1)
		dst := at(node, "br-int", fmt.Sprintf("b0%d_3", i), fmt.Sprintf("ns2_db-%d", i))
		h := hop(0, "", a.Path[0].Location, switchAfter("worker-1", ""))
		h.Choice = choice
		a.Path = append(a.Path, h)
		if i > 0 {
			a.Path = append(a.Path, hop(len(a.Path)-1, "geneve", at(node, "br-int", "ovn-worker-1-0", ""), switchOut(node, "")))
			a.Path[len(a.Path)-1].Choice = choice
		}
		last := &a.Path[len(a.Path)-1]
		if i == 2 {
			last.Stages[3].Rule, last.Stages[3].Row = "NetworkPolicy ns2/deny-all (ACL priority 1000, drop)", "ACL"
			last.Ends = []answer.End{{Kind: answer.Dropped, Location: at(node, "br-int", "", ""), Text: "ACL"}}
			continue
		}
		last.Ends = []answer.End{delivered(dst)}
		a.Outcomes = append(a.Outcomes, answer.Outcome{Location: dst, Packet: packet, Choice: choice, Destination: true})
	}
	return a
}

// flood is a broadcast with nine outcomes on three nodes.
func flood() answer.Answer {
	a := answer.Answer{Question: "vm-1 192.168.10.9 arp", Verdict: answer.Reachable, Trust: trust("compute1", "compute2", "compute3")}
	a.Path = []answer.Hop{hop(-1, "", at("compute1", "br-int", "tap1", "vm-1"), switchIn("private", "multicast group _MC_flood"))}
	for i, node := range []string{"compute1", "compute2", "compute3"} {
		if i > 0 {
			a.Path = append(a.Path, hop(0, "geneve", at(node, "br-int", "ovn-compute1-0", ""), switchOut("private", "multicast group _MC_flood")))
		}
		h := &a.Path[len(a.Path)-1]
		for j := range 3 {
			p := at(node, "br-int", fmt.Sprintf("tap%d%d", i, j), fmt.Sprintf("vm-%d", 3*i+j+2))
			h.Ends = append(h.Ends, delivered(p))
			a.Outcomes = append(a.Outcomes, answer.Outcome{Location: p, Packet: "arp,arp_spa=192.168.10.5,arp_tpa=192.168.10.9", Destination: i == 2 && j == 1})
		}
	}
	a.Path[0].Ends = append(a.Path[0].Ends, answer.End{Kind: answer.Dropped, Location: at("compute1", "br-int", "", ""), Text: "port security"})
	return a
}

// undetermined goes to a node that was not captured.
func undetermined() answer.Answer {
	a := twoHops()
	a.Verdict, a.Outcomes, a.Return = answer.Undetermined, nil, nil
	a.Missing = []string{"the chassis worker-2 (172.18.0.4) was not captured", "the conntrack dump of zone 8 on worker-1 was not recorded"}
	a.Path = a.Path[:1]
	a.Path[0].Ends = []answer.End{{Kind: answer.Unknown, Location: at("worker-2", "", "", ""), Text: "the chassis worker-2 (172.18.0.4) was not captured"}}
	a.Trust = trust("worker-1")
	return a
}

// oneWay arrives, but its reply is dropped.
func oneWay() answer.Answer {
	a := twoHops()
	a.Verdict = answer.OneWay
	r := a.Return
	r.Verdict, r.Outcomes = answer.Unreachable, nil
	place := at("worker-2", "br-int", "", "")
	r.Path = r.Path[:1]
	r.Path[0].Stages[5].Row = "Logical_Router_Static_Route"
	r.Path[0].Stages[5].Rule = "route 10.244.1.0/24 is missing in ovn_cluster_router"
	r.Path[0].Ends = []answer.End{{Kind: answer.Dropped, Location: place, Text: "no route"}}
	r.Drop = &answer.Drop{Location: place, Stage: r.Path[0].Stages[5], Reason: "no route"}
	return a
}

// longNames has names of 200 characters and rules of several lines.
func longNames() answer.Answer {
	a := dropped()
	long := func(s string) string { return strings.Repeat(s+"-", 200/(len(s)+1)) + "end" }
	a.Question = long("namespace-of-the-web-team") + "/" + long("web") + " svc/" + long("database") + ":5432"
	for i := range a.Path {
		h := &a.Path[i]
		h.Node, h.Bridge, h.Port, h.LogicalPort = long("worker.example.com"+fmt.Sprint(i/3)), long("br"), long("port"), long("logicalport")
		h.Via, h.Choice, h.Connection = long("tunnel"), strings.Repeat("backend of 日本語 ", 20), strings.Repeat("entry of zone ", 30)
		for j := range h.Stages {
			h.Stages[j].Datapath = "switch " + long(fmt.Sprint("network", j/3))
			h.Stages[j].Rule = strings.Repeat(fmt.Sprintf("a rule %d of many words ", j), 20)
			h.Stages[j].Row = "ACL"
			h.Stages[j].Name = long("ls_in_stage")
		}
		for j := range h.Ends {
			h.Ends[j].Location = h.Location
			h.Ends[j].Text = strings.Repeat("a reason of many words ", 20)
		}
	}
	a.Drop.Location, a.Drop.Stage = a.Path[4].Location, a.Path[4].Stages[3]
	a.Drop.Reason = strings.Repeat("a reason of many words ", 20)
	return a
}

// manyStages has 200 stages in two hops.
func manyStages() answer.Answer {
	a := twoHops()
	for i := range a.Path {
		a.Path[i].Stages = nil
		for j := range 20 {
			a.Path[i].Stages = append(a.Path[i].Stages, router(fmt.Sprintf("router%d", j), fmt.Sprintf("route %d.0.0.0/8 by way of router%d", j+1, j+1))...)
		}
	}
	return a
}

// patch passes two bridges in one run of ofproto/trace.
func patch() answer.Answer {
	dst := at("gateway1", "br-ex", "eth1", "")
	a := answer.Answer{Question: "--node gateway1 --flow br-int in_port=3,icmp", Verdict: answer.Reachable, Trust: trust("gateway1"),
		Outcomes: []answer.Outcome{{Location: dst, Packet: packet}}}
	a.Path = []answer.Hop{hop(-1, "", at("gateway1", "br-int", "3", ""), switchIn("public", ""))}
	a.Path[0].Stages = append(a.Path[0].Stages, answer.Stage{Table: 0, OnBridge: "br-ex", Flow: "priority=0", Actions: "NORMAL"})
	a.Path[0].Ends = []answer.End{delivered(dst)}
	return a
}

// generated is answered by OVN.
func generated() answer.Answer {
	a := twoHops()
	a.Verdict, a.Outcomes, a.Return = answer.Unreachable, nil, nil
	place := at("worker-1", "br-int", "3c1d0e9a41f2_3", "ns1_web-0")
	a.Generated = []answer.Generated{{Location: place, Packet: "icmp,icmp_type=11", Why: "ICMP time exceeded: the TTL is 1"}}
	a.Drop = &answer.Drop{Location: at("worker-1", "br-int", "", ""), Stage: a.Path[0].Stages[7], Reason: "TTL"}
	a.Path = a.Path[:1]
	a.Path[0].Stages = a.Path[0].Stages[:8]
	a.Path[0].Ends = []answer.End{{Kind: answer.Answered, Location: place, Text: "ICMP time exceeded: the TTL is 1"}}
	return a
}

// senders has hops whose senders are not earlier hops: each begins a way of its own.
func senders() answer.Answer {
	a := twoHops()
	a.Path[0].From, a.Path[1].From = 1, 99
	return a
}

// Evil is a name with markup, control characters and a change of the text's direction.
const Evil = "</text></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\x00\x1b[31m\"'\\&\xff\n\u202e{{.}}<b>"

// Hostile returns an answer whose every text is Evil.
func Hostile() answer.Answer {
	place := at(Evil, Evil, Evil, Evil)
	stage := answer.Stage{Name: Evil, Datapath: Evil, Pipeline: Evil, Flow: Evil, Cookie: Evil, Actions: Evil, Match: Evil, Rule: Evil, Row: "ACL", OnBridge: Evil}
	a := answer.Answer{
		Question: Evil, Verdict: Evil, Missing: []string{Evil},
		Outcomes:  []answer.Outcome{{Location: place, Packet: Evil, Choice: Evil, Destination: true}},
		Generated: []answer.Generated{{Location: place, Packet: Evil, Why: Evil}},
		Drop:      &answer.Drop{Location: place, Stage: stage, Reason: Evil, Choice: Evil},
		Trust:     answer.Trust{Nodes: []answer.Fidelity{{Name: Evil, Restored: 1, Warnings: []string{Evil}}}, Assumed: []string{Evil}},
	}
	for i, kind := range []answer.EndKind{answer.Delivered, answer.Dropped, answer.Answered, answer.Unknown, Evil} {
		a.Path = append(a.Path, answer.Hop{
			Location: place, From: i - 1, Via: Evil, Choice: Evil, Packet: Evil, Connection: Evil, Stages: []answer.Stage{stage}, Datapath: Evil, Raw: Evil,
			Ends: []answer.End{{Kind: kind, Location: place, Text: Evil}},
		})
	}
	reply := a
	a.Return = &reply
	return a
}
