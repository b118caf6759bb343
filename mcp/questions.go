package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// questions are the tools whose answers name what a user knows: pods, policies, routes.
type questions struct{ nodes }

func (q questions) add(server *sdk.Server) {
	addTool(server, &sdk.Tool{Name: "check", Annotations: readOnly(),
		Description: "Find out what is wrong in everything that was collected of nodes: ports, tunnels, control plane, addresses, load balancers, gateways, tables, flows, logs, versions. The worst findings come first, each with its consequence and the next command. Begin with it. No replica needs to run."}, q.check)
	addTool(server, &sdk.Tool{Name: "trace", Annotations: readOnly(),
		Description: "Follow a packet between two endpoints over all nodes, and the reply: whether it arrives, or else where it is dropped and by which rule (NetworkPolicy, security group, route, NAT). Endpoints: NAMESPACE/POD, svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, the name of a port or an instance, a MAC or IP address."}, q.trace)
	addTool(server, &sdk.Tool{Name: "reach", Annotations: readOnly(),
		Description: "Show who reaches whom: the verdict of a trace for each pair of groups of endpoints that behave alike, and each port. Narrow it with from, to and ports; use pattern, for example \"UNREACHABLE\", to choose among the cells."}, q.reach)
	addTool(server, &sdk.Tool{Name: "flows", Annotations: readOnly(),
		Description: "List the recorded flows of a node in names, with packets, stage, match and what each is for."}, q.flows)
	addTool(server, &sdk.Tool{Name: "top", Annotations: readOnly(),
		Description: "Show which rules cost the most recorded flows, which matched no packet, and which are cross products, conjunctions or duplicates."}, q.top)
	addTool(server, &sdk.Tool{Name: "history", Annotations: readOnly(),
		Description: "Show who changed what in a recorded database, and when."}, q.history)
	addTool(server, &sdk.Tool{Name: "timeline", Annotations: readOnly(),
		Description: "Show what the daemons of all nodes logged and what changed in the databases, in order of time and in names."}, q.timeline)
	addTool(server, &sdk.Tool{Name: "what-if", Annotations: readOnly(),
		Description: "Compute on copies what a change of the northbound database does to the flows of nodes, and to a packet."}, q.whatIf)
	addTool(server, &sdk.Tool{Name: "drift", Annotations: readOnly(),
		Description: "Compare the flows, groups and meters that were recorded on a node with what the node's own release of OVN computes from the recorded databases. The result lists what is missing, extra or altered, with its policy, service or port. No replica needs to run."}, q.drift)
	if q.Root != "" {
		addTool(server, &sdk.Tool{Name: "compare", Annotations: readOnly(),
			Description: "Compare two captures of nodes below the server's root, in names: what was added, is gone or changed in OVN and Open vSwitch, and flows that nothing explains. Differences in numbers alone are left out."}, q.compare)
	}
}
