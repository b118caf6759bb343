package k8s

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/machine"
)

// startAgain is the advice of commands that can't reach their pod.
const startAgain = `start the replicas again with "ovs-offline start"`

// freshNode returns a further node of the cluster, which has the image of the tools, and
// the flags of a start on it.
func (j *jobs) freshNode(t *testing.T, name string) (*cluster.Node, []string) {
	t.Helper()
	n := j.addNode(t, name, "--register-with-taints=only="+name+":NoSchedule") // no pods of other tests
	return n, []string{"--node-selector", "kubernetes.io/hostname=" + n.Name, "--toleration",
		"only=" + name + ":NoSchedule"}
}

// mustFail runs a command on the workdir, and checks that it fails, and that its last line
// says something.
func (c client) mustFail(t *testing.T, said []string, args ...string) {
	t.Helper()
	r := c.on(t, args...)
	t.Logf("%s: exit %d: %s", args[0], r.code, r.complaints)
	if r.code == 0 {
		t.Errorf("%s: exit 0", args[0])
	}
	lines := strings.Split(strings.TrimSpace(r.complaints), "\n")
	for _, text := range said {
		if !strings.Contains(lines[len(lines)-1], text) {
			t.Errorf("%s: the last line does not hold %q: %s", args[0], text, lines[len(lines)-1])
		}
	}
}

// TestKubeletGone stops the kubelet of a node on which replicas run, one of them until its
// deadline, and on which others are started. Nothing hangs, and once the kubelet is back,
// nothing is left that was stopped or whose time was over.
func TestKubeletGone(t *testing.T) {
	t.Parallel()
	stays := newClient(t, copyOfNode(t))
	ends, late := stays, stays
	ends.workdir, late.workdir = copyOfNode(t), copyOfNode(t)
	n, there := stays.freshNode(t, "gone")
	before := collection(t, ends.workdir)
	stays.mustStart(t, there...)
	ends.mustStart(t, append(there, "--keep", "30s")...)
	n.Kubelet.Signal(syscall.SIGSTOP)
	var atOnce sync.WaitGroup
	for _, args := range [][]string{{"exec", "ovs-vsctl", "list-br"}, {"trace", "ns1/web-0", "ns1/client-0:80"},
		{"status"}} {
		atOnce.Go(func() {
			stays.mustFail(t, []string{"the pod runs on node " + n.Name, startAgain}, args...)
		})
	}
	atOnce.Go(func() {
		r := late.start(t, there...)
		t.Logf("start: exit %d: %s", r.code, r.complaints)
		if r.code != 1 || !strings.Contains(r.complaints, "the kubelet of node "+n.Name+" has done nothing") {
			t.Errorf("start: exit %d, want 1 and the node", r.code)
		}
	})
	atOnce.Wait()
	ovs.Await(t, "the cluster to notice", func() bool {
		return slices.ContainsFunc(stays.list(t),
			func(l listed) bool { return strings.Contains(l.Problem, "kubelet of node "+n.Name) })
	})
	t.Run("noticed", func(t *testing.T) {
		stays.mustFail(t, []string{"and the kubelet of its node " + n.Name + " does not report", startAgain}, "exec",
			"ovs-vsctl", "list-br")
		ends.mustFail(t, []string{"has ended", "active longer than specified deadline", `"ovs-offline start"`}, "exec",
			"ovs-vsctl", "list-br")
		ends.mustFail(t, []string{"not everything is gone", "on node " + n.Name + ", whose kubelet does not report",
			"kubectl delete pod --force"}, "stop")
	})
	t.Run("start elsewhere", func(t *testing.T) {
		r := ends.start(t, "--node-selector", "kubernetes.io/hostname="+ends.node.Name)
		if r.code != 0 || !strings.Contains(r.complaints, "warning: the replicas that ran before: ") {
			t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
		if r := ends.on(t, "exec", "ovs-vsctl", "list-br"); r.code != 0 {
			t.Errorf("exec: exit %d\n%s", r.code, r.complaints)
		}
		if r := ends.on(t, "stop"); r.code != 0 {
			t.Errorf("stop: exit %d\n%s", r.code, r.complaints)
		}
	})
	expectUntouched(t, ends.workdir, before)
	n.Kubelet.Kill() // as when its machine is restarted
	if err := n.Kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "the replicas to answer again",
		func() bool { return stays.on(t, "exec", "ovs-vsctl", "list-br").code == 0 })
	for _, c := range []client{late, stays} {
		if r := c.on(t, "stop"); r.code != 0 {
			t.Errorf("stop: exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
	}
	stays.awaitNothing(t)
}

// TestQuotaUsedUpByOthers takes the quota away that a pod needs which is to replace another.
func TestQuotaUsedUpByOthers(t *testing.T) {
	t.Parallel()
	c := newClient(t, copyOfNode(t))
	before := collection(t, c.workdir)
	c.mustStart(t)
	none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "used-up"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	c.limit(t, none)
	// The API server's admission learns of a quota after its status is set.
	another := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "another"},
		Spec: restrictedJob(c.tools.Name).Spec.Template.Spec}
	ovs.Await(t, "the quota to refuse pods", func() bool {
		_, err := c.Client.CoreV1().Pods(c.namespace).Create(t.Context(), another,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
	})
	pod := c.pods(t, c.namespace)[0].Name
	if err := c.Client.CoreV1().Pods(c.namespace).Delete(t.Context(), pod, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	c.awaitEnd(t, pod)
	c.mustFail(t, []string{"pod " + c.namespace + "/" + pod + " is gone, and none runs in its place",
		"exceeded quota: used-up", startAgain}, "exec", "ovs-vsctl", "list-br")
	if sets := c.list(t); len(sets) != 1 || sets[0].Ready != 0 {
		t.Errorf("listed: %+v", sets)
	}
	expectUntouched(t, c.workdir, before)
	if err := c.Client.CoreV1().ResourceQuotas(c.namespace).Delete(t.Context(), none.Name,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "the replica to be made good", func() bool { return c.on(t, "exec", "ovs-vsctl", "list-br").code == 0 })
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}

// questions writes a file of questions for trace --file, and returns its path. They differ in
// the TTL: trace asks about each, since a router reads it.
func questions(t *testing.T) (path string, count int) {
	t.Helper()
	var text strings.Builder
	text.WriteString("checks:\n")
	for _, to := range []string{"ns2/db-0:5432", "ns1/client-0:80"} {
		for ttl := 3; ttl < 250; ttl++ {
			fmt.Fprintf(&text, "- {from: ns1/web-0, to: '%s', ttl: %d}\n", to, ttl)
			count++
		}
	}
	path = filepath.Join(t.TempDir(), "questions.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, count
}

// verdicts returns the verdicts in the output of trace --file -o json, and the text of one
// that is undetermined. A question that could not be asked has an error and no answer.
func verdicts(t *testing.T, out string) (list []string, undetermined string) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(out))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		t.Fatalf("the output is not a list: %v\n%.500s", err, out)
	}
	for decoder.More() {
		var raw json.RawMessage
		var one struct {
			Answer struct{ Verdict string }
			Error  string
		}
		if err := decoder.Decode(&raw); err != nil {
			t.Fatalf("%v\n%.500s", err, out)
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			t.Fatalf("%v\n%.500s", err, raw)
		}
		if one.Error != "" {
			one.Answer.Verdict = "UNDETERMINED"
		}
		if list = append(list, one.Answer.Verdict); one.Answer.Verdict == "UNDETERMINED" {
			undetermined = string(raw)
		}
	}
	return list, undetermined
}

// TestQuestionsInProgress disturbs commands that ask many questions: their client is killed,
// and the API server goes away, for some seconds and for good.
func TestQuestionsInProgress(t *testing.T) {
	t.Parallel()
	folder, _ := copyOfSet(t)
	c := newClient(t, folder)
	hop, err := cluster.Listen(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hop.Stop)
	c.address = hop.Address
	c.mustStart(t)
	file, count := questions(t)
	ask := []string{"trace", "--file", file, "-o", "json"}
	hop.Watch(0, nil)
	c.on(t, "trace", "ns1/web-0", "ns2/db-0:5432")
	one := hop.Total() // most of it is what trace reads before it asks
	hop.Watch(0, nil)
	want := c.on(t, ask...)
	half := (one + hop.Total()) / 2
	wanted, _ := verdicts(t, want.out)
	if len(wanted) != count || half < one*5/4 || strings.Contains(want.out, "UNDETERMINED") {
		t.Fatalf("exit %d, %d answers, %d bytes of one question, half of all: %d\n%s", want.code, len(wanted), one, half,
			want.complaints)
	}
	t.Logf("one question: %d bytes from the API server; half of %d questions: %d", one, count, half)
	t.Run("killed client", func(t *testing.T) { c.killedWhileAsking(t, hop, half, ask) })
	t.Run("API server away", func(t *testing.T) {
		back := make(chan struct{})
		hop.Watch(half, func() {
			hop.Cut()
			time.AfterFunc(4*time.Second, func() {
				hop.Target(c.Address)
				close(back)
			})
		})
		got := c.on(t, ask...)
		t.Logf("exit %d: %s", got.code, got.complaints)
		if given, why := verdicts(t, got.out); got.code != want.code || !slices.Equal(given, wanted) {
			t.Errorf("exit %d, want %d; other answers, such as %.1000s", got.code, want.code, why)
		}
		select {
		case <-back:
		default:
			t.Error("the questions were answered before the API server was back")
		}
	})
	t.Run("API server gone", func(t *testing.T) {
		hop.Watch(half, hop.Cut)
		defer hop.Target(c.Address)
		got := c.on(t, ask...)
		given, why := verdicts(t, got.out)
		t.Logf("exit %d: %s\n%.1000s", got.code, got.complaints, why)
		if got.code == 0 || len(given) != len(wanted) || !strings.Contains(why, "looking for pod") {
			t.Errorf("exit %d, %d answers, want a failure, and %d answers", got.code, len(given), len(wanted))
		}
		for i, verdict := range given {
			if verdict != "UNDETERMINED" && verdict != wanted[i] {
				t.Errorf("question %d: %s, want %s", i, verdict, wanted[i])
			}
		}
	})
	if again := c.on(t, ask...); again.code != want.code {
		t.Errorf("afterwards: exit %d, want %d\n%s", again.code, want.code, again.complaints)
	}
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}

// processes returns the processes of the only pod, except its first one.
func (c client) processes(t *testing.T) []int {
	t.Helper()
	first, err := c.FirstProcess(t.Context(), c.namespace, c.pods(t, c.namespace)[0].Name, "replicas")
	if err != nil {
		t.Fatal(err)
	}
	namespace := func(pid int) string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)) // fails for one that has ended
		return name
	}
	wanted := namespace(first)
	return slices.DeleteFunc(c.node.Processes(), func(pid int) bool { return namespace(pid) != wanted })
}

// killedWhileAsking kills trace and reach in the middle. What they ran in the pods ends, the
// next command removes what is left on this machine, and the replicas go on.
func (c client) killedWhileAsking(t *testing.T, hop *cluster.Hop, half int64, ask []string) {
	sockets := t.TempDir()
	run := func(args ...string) result {
		t.Helper()
		command := program(t, append([]string{"-w", c.workdir}, args...)...)
		command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+sockets)
		return finish(t, command)
	}
	serves := func() bool {
		return slices.ContainsFunc(c.processes(t),
			func(pid int) bool { return strings.Contains(machine.CommandLine(pid), "pod link") })
	}
	daemons := len(c.processes(t))
	for _, args := range [][]string{ask, {"reach", "-o", "json"}} {
		command := program(t, append([]string{"-w", c.workdir}, args...)...)
		command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+sockets)
		// It is stopped at half of the bytes, so that it does not end before it is killed.
		started, reached := make(chan int, 1), make(chan struct{})
		hop.Watch(half, func() {
			syscall.Kill(<-started, syscall.SIGSTOP)
			close(reached)
		})
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		started <- command.Process.Pid
		ovs.Receive(t, "half of the answers of "+args[0], reached)
		if left, err := os.ReadDir(sockets); err != nil || len(left) != 1 {
			t.Errorf("%s: folders of sockets while it runs: %v, %v", args[0], left, err)
		}
		syscall.Kill(command.Process.Pid, syscall.SIGKILL)
		if err := command.Wait(); err == nil {
			t.Errorf("%s had ended before it was killed", args[0])
		}
		ovs.Await(t, "what runs in the pods to end", func() bool { return !serves() })
		if r := run("trace", "ns1/web-0", "ns2/db-0:5432"); r.code != 0 {
			t.Errorf("the next trace: exit %d\n%s\n%s", r.code, r.out, r.complaints)
		}
		if left, err := os.ReadDir(sockets); err != nil || len(left) > 0 {
			t.Errorf("%s: left on this machine: %v, %v", args[0], left, err)
		}
		ovs.Await(t, "the daemons alone to run", func() bool { return len(c.processes(t)) == daemons })
	}
}
