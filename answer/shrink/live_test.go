package shrink

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/show"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/local"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/test/oracle/sets"
)

// blue is the switch of vm1 and vm2 in the set openstack.
const blue = "neutron-e3c647f7-8126-4a93-8c43-b76ffa808cd7"

// replicaAt returns the replica of the workdir at path.
func replicaAt(string) whatif.Replica { return local.Replica{} }

// recorded returns the deployment of the set openstack.
func recorded(t *testing.T) whatif.Deployment {
	t.Helper()
	fidelity.NeedScratch(t)
	folder := ovs.Dir(t)
	if _, err := sets.Recorded(t, "../../scripts/lab/lab", "openstack").Workdirs(t.Context(), folder,
		sets.Native); err != nil {
		t.Fatal(err)
	}
	selected, err := snapshot.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := whatif.Of(t.Context(), selected)
	if err != nil {
		t.Fatal(err)
	}
	return deployment
}

// planted returns a recorded deployment in whose NB database many ACLs were added to a switch, of which one drops what
// is sent to port 5432, and what more words for ovn-nbctl add.
func planted(t *testing.T, acls int, more ...string) whatif.Deployment {
	t.Helper()
	deployment := recorded(t)
	path := filepath.Join(ovs.Dir(t), "nb.db")
	if _, _, err := file.Standalone(t.Context(), deployment.NB, path); err != nil {
		t.Fatal(err)
	}
	server := ovs.Serve(t, path)
	words := []string{"ovn-nbctl", "--db=" + server.Remote, "--name=culprit", "acl-add", blue, "to-lport", "3000",
		"ip4.src == 192.168.10.0/24 && tcp.dst == 5432", "drop"}
	for i := range acls {
		action := []string{"drop", "allow-related"}[i%2]
		words = append(words, "--", "acl-add", blue, "to-lport", fmt.Sprint(1100+i%500),
			fmt.Sprintf("ip4.src == 10.%d.%d.0/24 && tcp.dst == %d", i/250, i%250, 6000+i), action)
	}
	ovs.Run(t, append(words, more...)...)
	server.Stop()
	deployment.NB = path
	return deployment
}

func found(t *testing.T, deployment whatif.Deployment, from, to string) *Result {
	t.Helper()
	result, err := Find(t.Context(), Question{Question: whatif.Question{Deployment: deployment,
		Trace: &trace.Between{From: from, To: to}, Runtime: process.Name, Runtimes: local.Runtimes, Replica: replicaAt}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// inSandbox runs the script of a result with empty databases, and returns what ovn-trace says of its packet.
func inSandbox(t *testing.T, result *Result) string {
	t.Helper()
	central := sandbox(t, result)
	return central.Run(append([]string{"ovn-trace", "--db=" + central.Remote}, result.TraceArguments()...)...)
}

// sandbox runs the script of a result with empty databases.
func sandbox(t *testing.T, result *Result) *ovs.Central {
	t.Helper()
	var script bytes.Buffer
	result.Script(&show.Page{Out: &script, Err: &script})
	path := filepath.Join(ovs.Dir(t), "script.sh")
	if err := os.WriteFile(path, script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	central := ovs.StartCentral(t)
	central.Northd()
	run := exec.Command("sh", "-e", path)
	run.Env = append(os.Environ(), "OVN_NB_DB="+central.Remote)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script.String())
	}
	central.Nbctl("--wait=sb", "sync")
	return central
}

// TestAPlantedDropIsFound shrinks a database of many ACLs to what a person would write for a test of one of them, and
// asks ovn-trace in a sandbox that only the printed script has filled. In a sweep there are hundreds of ACLs, and the
// packet passes two nodes.
func TestAPlantedDropIsFound(t *testing.T) {
	acls, to := sweep.Count(400, 12), "vm3" // on the node of vm2
	if sweep.Whole() {
		to = "vm1"
	}
	deployment := planted(t, acls)
	result := found(t, deployment, "vm2", to+":5432")
	byHand := []string{"ls-add", "lsp-add", "lsp-set-addresses", "lsp-add", "lsp-set-addresses", "acl-add"}
	if len(result.Commands) > 2*len(byHand) || result.Verdict != "UNREACHABLE" ||
		!strings.Contains(result.Rule, "culprit") || result.Rows < acls {
		t.Errorf("%+v", result)
	}
	t.Logf("%d of %d rows, %d commands, %d steps, %.0f s", result.Kept, result.Rows, len(result.Commands), result.Steps,
		result.Seconds)
	if said := inSandbox(t, result); strings.Contains(said, "output(") {
		t.Errorf("the packet is delivered: %s", said)
	}
	allows := *result
	allows.Commands = nil
	for _, words := range result.Commands {
		if !strings.Contains(strings.Join(words, " "), "acl") {
			allows.Commands = append(allows.Commands, words)
		}
	}
	if said := inSandbox(t, &allows); !strings.Contains(said, "output(") {
		t.Errorf("without the ACL, the packet is not delivered: %s", said)
	}
	var test bytes.Buffer
	result.Autotest(&show.Page{Out: &test, Err: &test})
	for _, line := range []string{"AT_SETUP([vm2 " + to + ":5432: UNREACHABLE])", "ovn_start",
		"check ovn-nbctl ls-add " + blue, "| grep -q 'output@{:@'], [1])", "AT_CLEANUP"} {
		if !strings.Contains(test.String(), line) {
			t.Errorf("no %s in %s", line, test.String())
		}
	}
}

// TestAMessageIsFound shrinks a database to the one ACL that the ovn-controller of a node can't parse.
func TestAMessageIsFound(t *testing.T) {
	deployment := planted(t, sweep.Count(50, 12), "--", "acl-add", blue, "to-lport", "2000",
		"ip4 && tcp.dst == {1, 2} && nonsense == 5", "drop")
	deployment.Nodes = []snapshot.Member{compute1(t, deployment)}
	result, err := Find(t.Context(), Question{Log: "nonsense",
		Question: whatif.Question{Deployment: deployment, Runtime: process.Name, Runtimes: local.Runtimes,
			Replica: replicaAt}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d rows, %d commands, %d steps, %.0f s: %s", result.Kept, result.Rows, len(result.Commands),
		result.Steps, result.Seconds, result.Headline)
	last := result.Commands[len(result.Commands)-1]
	if len(result.Commands) > 4 || !strings.Contains(strings.Join(last, " "), "nonsense == 5") ||
		!strings.Contains(result.Headline, "nonsense") {
		t.Errorf("%q", result.Commands)
	}
}

// TestHostileNamesStayWords prints names that would mean something to a shell or to Autoconf.
func TestHostileNamesStayWords(t *testing.T) {
	result := &Result{Question: "a]) b\n$(touch x)", Verdict: "UNREACHABLE",
		Commands: [][]string{{"ls-add", "'; touch owned; '"}, {"ls-add", "$(touch owned)"}, {"ls-add", "a\ntouch owned"}}}
	dir := ovs.Dir(t)
	var script, test bytes.Buffer
	result.Script(&show.Page{Out: &script, Err: &script})
	result.Autotest(&show.Page{Out: &test, Err: &test})
	if err := os.WriteFile(filepath.Join(dir, "ovn-nbctl"), []byte("#!/bin/sh\nprintf '%s|' \"$@\"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("sh")
	run.Dir, run.Stdin, run.Env = dir, &script, []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := run.CombinedOutput()
	if _, owned := os.Stat(filepath.Join(dir, "owned")); err != nil || owned == nil ||
		!strings.Contains(string(out), "ls-add|$(touch owned)|") {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(test.String(), "a])") || !isBalanced(test.String()) {
		t.Error(test.String())
	}
}
