package shrink

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/whatif"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// without removes the lines of a recorded dump of compute1 that have all these parts.
func without(t *testing.T, deployment whatif.Deployment, dump workdir.Dump, parts ...string) {
	t.Helper()
	path, removed, kept := compute1(t, deployment).Dir.DumpFile("br-int", dump), 0, ""
	for line := range strings.Lines(files.Read(t, path)) {
		if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			kept += line
		} else {
			removed++
		}
	}
	if removed == 0 {
		t.Fatalf("no line has %q", parts)
	}
	files.Write(t, path, kept)
}

func compute1(t *testing.T, deployment whatif.Deployment) snapshot.Member {
	t.Helper()
	for _, node := range deployment.Nodes {
		if node.Name == "compute1" {
			return node
		}
	}
	t.Fatal("no compute1")
	return snapshot.Member{}
}

func lackingIn(t *testing.T, deployment whatif.Deployment, text string) (*Result, error) {
	t.Helper()
	deployment.Nodes = []snapshot.Member{compute1(t, deployment)}
	result, err := Find(t.Context(), Question{Drift: text,
		Question: whatif.Question{Deployment: deployment, Runtime: process.Name, Runtimes: local.Runtimes,
			Replica: replicaAt}})
	if err == nil {
		t.Logf("%d of %d rows, %d commands, %d steps, %.0f s", result.Kept, result.Rows, len(result.Commands), result.Steps,
			result.Seconds)
	}
	return result, err
}

// installs returns what a real ovn-controller installs in a sandbox that the script of a result has filled.
func installs(t *testing.T, result *Result) (flows, groups string) {
	t.Helper()
	central := sandbox(t, result)
	compute := ovs.Start(t)
	compute.Join(central, "compute1")
	for _, of := range result.Bindings {
		compute.Vsctl(attach(of)...)
		central.Nbctl(ovs.Timeout(), "wait-until", "Logical_Switch_Port", of.LogicalPort, "up=true")
	}
	central.Nbctl("--wait=hv", "sync")
	return compute.Ofctl("dump-flows", "br-int"), compute.Ofctl("-O", "OpenFlow15", "dump-groups", "br-int")
}

// TestAFlowThatANodeLacksIsFound removes a flow of an ACL from a node's recorded flows, and shrinks the database to
// what a person would write: a switch, a port, a port group and the ACL.
func TestAFlowThatANodeLacksIsFound(t *testing.T) {
	deployment := recorded(t)
	without(t, deployment, workdir.Flows, "table=46,", "nw_src=192.168.10.0/24,tp_dst=161")
	result, err := lackingIn(t, deployment, "tp_dst=161")
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Commands) > 4 || result.Verdict != "DRIFT" || !strings.Contains(result.Rule, "allow-stateless") ||
		len(result.Bindings) != 1 {
		t.Errorf("%+v", result)
	}
	if flows, _ := installs(t, result); !strings.Contains(flows,
		"nw_src=192.168.10.0/24,tp_dst=161 actions=resubmit(,47)") {
		t.Errorf("not in the flows that the script gives: %q\n%s", result.Commands, flows)
	}
	if _, err := lackingIn(t, deployment, "tp_dst=162"); !errors.Is(err, ErrNothing) ||
		!strings.Contains(err.Error(), "compute1: drift") {
		t.Errorf("an entry that no node lacks: %v", err)
	}
}

// TestAGroupThatANodeLacksIsFound removes the group of a load balancer, whose number depends on the rest of the
// database.
func TestAGroupThatANodeLacksIsFound(t *testing.T) {
	sweep.Only(t, "TestAFlowThatANodeLacksIsFound, but for the numbers of groups,")
	deployment := recorded(t)
	without(t, deployment, workdir.Groups, "nat(dst=192.168.10.6:443)")
	result, err := lackingIn(t, deployment, "nat(dst=192.168.10.6:443)")
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Commands) > 6 || !strings.Contains(result.Rule, "load balancer") {
		t.Errorf("%+v", result)
	}
	if _, groups := installs(t, result); !strings.Contains(groups, "nat(dst=192.168.10.6:443)") {
		t.Errorf("not in the groups that the script gives: %+v\n%s", result, groups)
	}
}

// TestALogicalFlowThatTheDatabaseLacksIsFound removes a logical flow from the SB database, as an ovn-northd does that
// does not see a change.
func TestALogicalFlowThatTheDatabaseLacksIsFound(t *testing.T) {
	deployment := recorded(t)
	server := ovs.Serve(t, compute1(t, deployment).Dir.Database(workdir.SB))
	found := server.Run("ovn-sbctl", "--db="+server.Remote, "--bare", "--columns=_uuid", "find", "Logical_Flow",
		"priority=2006", "pipeline=egress",
		`match="outport == @pg_0daadabe_77d2_42be_8221_3f08341f48d7 && ip4.src == 192.168.10.0/24 && udp.dst == 161"`)
	server.Run(append([]string{"ovn-sbctl", "--db=" + server.Remote, "destroy", "Logical_Flow"},
		strings.Fields(found)...)...)
	server.Stop()
	result, err := lackingIn(t, deployment, "udp.dst == 161), action=(next;)")
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Commands) > 5 || !strings.Contains(result.LogicalFlow, "udp.dst == 161), action=(next;)") {
		t.Errorf("%+v", result)
	}
	central := sandbox(t, result)
	if flows := central.Sbctl("lflow-list"); !strings.Contains(flows, result.LogicalFlow) {
		t.Errorf("no %s in %s", result.LogicalFlow, flows)
	}
}
