package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/snapshot/names"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
	"ovs-offline/workdir"
)

// TestQuestionsThroughNamespaces asks by names about packets of the kinds that the lab sent through the namespaces of
// its routers and bridges, and compares the verdict with what became of those, and the rule with the one that the
// agents had written for it.
func TestQuestionsThroughNamespaces(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "unshare", "xz")
	for name, questions := range map[string][]asked{
		"neutron-routers": {
			{"10.201.0.12", "external/198.51.100.9", "tcp", 443, answer.Reachable, "SNAT of the router to 203.0.113.5"},
			{"10.201.0.11", "external/198.51.100.9", "icmp", 0, answer.Reachable, "floating IP 203.0.113.21 of 10.201.0.11"},
			{"10.201.0.11", "10.202.0.12", "tcp", 22, answer.Reachable, "no SNAT between the router's own networks"},
			{"10.201.0.11", "10.202.0.12", "tcp", 80, answer.Unreachable, "ACL"},
			{"10.201.0.11", "203.0.113.31", "icmp", 0, answer.Reachable, "floating IP 203.0.113.31 of 10.205.0.11"},
			{"10.205.0.11", "10.206.0.12", "icmp", 0, answer.Reachable, "qrouter-"},
			{"10.201.0.11", "10.201.0.1", "icmp", 0, answer.Reachable, "answered by qrouter-"},
			{"external/203.0.113.9", "203.0.113.21:22", "tcp", 0, answer.Reachable, "floating IP 203.0.113.21 of 10.201.0.11"},
			{"external/198.51.100.9", "203.0.113.31", "icmp", 0, answer.Reachable, "floating IP 203.0.113.31 of 10.205.0.11"},
			{"external/198.51.100.9", "203.0.113.32", "icmp", 0, answer.Reachable, "floating IP 203.0.113.32 of 10.206.0.12"},
			{"10.203.0.11", "external/198.51.100.9", "tcp", 443, answer.Unreachable, "no route"},
		},
		"neutron-hybrid": {
			{"10.211.0.11", "10.211.0.13", "tcp", 22, answer.Reachable, "qvo"},
			{"10.211.0.11", "10.211.0.13", "tcp", 443, answer.Unreachable, "security groups: nothing allows the packet"},
		},
		"kubernetes-host": {
			{"ns1/web-0", "10.244.1.2", "tcp", 10250, answer.Reachable, "arrives at node"},
			{"external/172.18.0.1", "172.18.0.2:31080", "tcp", 0, answer.Reachable, "worker1 node -> breth0"},
			{"external/172.18.0.1", "172.18.0.2:31081", "tcp", 0, answer.Reachable, "Service ns4/hostapi"},
			{"external/172.18.0.1", "172.18.0.3:31080", "tcp", 0, answer.Unreachable, "Service ns4/hostweb"},
			{"external/172.18.0.1", "172.18.0.2:31083", "tcp", 0, answer.Unreachable, "only from this node"},
			{"ns1/web-0", "172.18.0.2:31081", "tcp", 0, answer.Reachable, "policy route priority 1004"},
			{"ns1/web-0", "172.18.0.2:31083", "tcp", 0, answer.Unreachable, "only from this node"},
			{"ns1/web-1", "svc/ns4/hostapi:80", "tcp", 0, answer.Reachable, "worker1 breth0 -> breth0 -> node"},
			{"node/worker1", "172.18.0.2:31086", "tcp", 0, answer.Reachable, "node port 31086 of Service ns3/shown"},
			{"node/worker1", "192.0.2.93:80", "tcp", 0, answer.Reachable,
				"address 192.0.2.93 outside, port 80, of Service ns3/shown"},
			{"node/worker3", "svc/ns3/inner:80", "tcp", 0, answer.Reachable,
				"internalTrafficPolicy Local, by the management port, of Service ns3/inner"},
			{"node/worker1", "svc/ns3/near:80", "tcp", 0, answer.Reachable, "169.254.169.2:40000 -> 10.96.3.13:80"},
			{"node/worker3", "172.18.0.4:31084", "tcp", 0, answer.Unreachable, "NetworkPolicies of namespace ns2"},
			{"node/worker1", "external/198.51.100.9", "tcp", 443, answer.Reachable, "172.18.0.2:40000 -> 198.51.100.9:443"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := sets.RecordedNamespaces(t, "../../scripts/lab/lab", name)
			askAll(t, openSet(t, startReplicas(t, recorded), nil), questions)
		})
	}
}

// TestSettingsThatWereNotRecorded asks about packets through routers of which no report had a sysctl: they forward, as
// routers do, and the answer says that this is assumed.
func TestSettingsThatWereNotRecorded(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovs-ofctl", "unshare", "xz")
	recorded := sets.RecordedNamespaces(t, "../../scripts/lab/lab", "neutron-routers")
	folder := ovs.Dir(t)
	paths, err := recorded.Workdirs(t.Context(), folder, sets.Native)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		settings, err := filepath.Glob(filepath.Join(path, "recorded", "*", "*", workdir.HostSysctl))
		if err != nil || len(settings) == 0 {
			t.Fatalf("%s has no recorded settings: %v", path, err)
		}
		for _, file := range settings {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		recordPhysicalNetwork(t, filepath.Join(path, "db", "ovs", "conf.db"))
		fidelity.Started(t, path)
	}
	const says = " forwards packets, and has all other settings of a new one: sysctl -a of it was not recorded"
	askAll(t, openSet(t, folder, nil), []asked{
		{"10.201.0.12", "external/198.51.100.9", "tcp", 443, answer.Reachable,
			"assumed: qrouter-7fbcf5e3-f5df-4221-81b1-3bd126f9e078 of network" + says},
		{"10.205.0.12", "external/192.0.2.9", "tcp", 443, answer.Reachable,
			"assumed: snat-237218fb-2258-46d7-81ab-e1fb62f00360 of network" + says},
		{"10.205.0.11", "external/198.51.100.9", "icmp", 0, answer.Reachable,
			"assumed: fip-a8ac8161-73f5-4d6a-8a72-3b7126b86730 of compute1" + says},
		{"external/198.51.100.9", "203.0.113.31", "icmp", 0, answer.Reachable, "floating IP 203.0.113.31 of 10.205.0.11"},
		{"external/203.0.113.1", "203.0.113.21:22", "tcp", 0, answer.Reachable, "floating IP 203.0.113.21 of 10.201.0.11"},
		{"10.201.0.11", "10.202.0.12", "tcp", 80, answer.Unreachable, "ACL"},
	})
}

// recordPhysicalNetwork writes the physical network of the network outside into an OVS database, as neutron's agent
// does beside its UUID.
func recordPhysicalNetwork(t *testing.T, database string) {
	t.Helper()
	server := ovs.Serve(t, database)
	defer server.Stop()
	vsctl := func(args ...string) string {
		return server.Run(append([]string{"ovs-vsctl", "--no-wait", "--db=" + server.Remote}, args...)...)
	}
	const outside = "other_config:net_uuid=a8ac8161-73f5-4d6a-8a72-3b7126b86730"
	for port := range strings.FieldsSeq(vsctl("--bare", "--columns=_uuid", "find", "Port", outside)) {
		vsctl("set", "Port", port, "other_config:physical_network=public", "other_config:network_type=flat")
	}
}

// TestQuestionsThroughVRFsAreWhatTheKernelDid asks by names about packets of the kinds that the lab sent through the
// VRFs of its nodes.
func TestQuestionsThroughVRFsAreWhatTheKernelDid(t *testing.T) {
	for _, recorded := range sets.OfKernel(t, sets.VRFNames()) {
		askAll(t, openSet(t, startReplicas(t, recorded), nil), []asked{
			{"blue/b1", "svc/kube-system/dns:53", "udp", 0, answer.Reachable, "ovn-k8s-mp1"},
			{"blue/b1", "10.100.1.2", "icmp", 0, answer.Reachable, "answered by node"},
			{"blue/b1", "10.100.1.2", "tcp", 10250, answer.Reachable,
				"a process gets the packet that listens in the VRF mp1-udn-vrf, and no other"},
			{"blue/b1", "10.100.2.2", "icmp", 0, answer.Reachable, "answered by node"},
			{"blue/b1", "blue/b2", "icmp", 0, answer.Reachable, "of router blue_net_ovn_cluster_router"},
			{"blue/b1", "svc/blue/web:80", "tcp", 0, answer.Reachable, "blue/b2"},
			{"blue/b1", "external/198.51.100.9", "tcp", 443, answer.Reachable, "snat 169.254.169.11 for 10.100.0.0/16"},
			{"blue/b1", "svc/ns3/open:80", "tcp", 0, answer.Unreachable, "dropped on worker1"},
			{"ns1/web-0", "10.244.1.18", "tcp", 8080, answer.Unreachable, "isolation of user-defined networks: DenyPrimaryUDN"},
			{"external/198.51.100.9", "172.18.0.2:31002", "tcp", 0, answer.Reachable, "blue/b2"},
		})
	}
}

// asked is a question by names, and what its answer has to say.
type asked struct {
	from, to, protocol string
	port               uint16
	verdict            answer.Verdict
	says               string // a part of the short form
}

func askAll(t *testing.T, s *Session, questions []asked) {
	t.Helper()
	for _, q := range questions {
		got, err := s.Ask(t.Context(), Between{From: q.from, To: q.to,
			Question: names.Question{Protocol: q.protocol, DstPort: q.port}})
		if err != nil {
			t.Errorf("%s to %s: %v", q.from, q.to, err)
			continue
		}
		var text strings.Builder
		if err := got.Write(&text, answer.Options{}); err != nil {
			t.Fatal(err)
		}
		if got.Verdict != q.verdict || !strings.Contains(text.String(), q.says) {
			t.Errorf("%s to %s, %s %d: want %s with %q\n%s", q.from, q.to, q.protocol, q.port, q.verdict, q.says, text.String())
		}
	}
}
