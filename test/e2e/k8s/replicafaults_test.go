package k8s

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
)

// refusal is a start that can't succeed.
type refusal struct {
	name  string
	spoil func(t *testing.T, c *client) (more []string) // returns further flags
	said  []string                                      // on stderr
}

// refusals are the starts that can't succeed.
func refusals() []refusal {
	return []refusal{
		{
			name: "quota",
			spoil: func(t *testing.T, c *client) []string {
				quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"},
					Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("1Mi")}}}
				c.limit(t, quota)
				return nil
			},
			said: []string{"the cluster refuses a pod with replicas", "exceeded quota: small"},
		},
		{
			name:  "no rights",
			spoil: func(_ *testing.T, c *client) []string { c.user = "nobody"; return nil },
			said:  []string{`User "nobody" cannot create resource`, roleInDocs},
		},
		{
			name: "no right to run commands",
			spoil: func(t *testing.T, c *client) []string {
				c.user = "nothing-but-get"
				c.allow(t, rule("batch", "jobs", "create", "get", "list", "watch", "delete"),
					rule("", "pods", "create", "get", "list", "watch"), rule("networking.k8s.io", "networkpolicies", "create"))
				return nil
			},
			said: []string{`User "nothing-but-get" cannot`, "pods/exec", roleInDocs},
		},
		{
			name:  "no such namespace",
			spoil: func(_ *testing.T, c *client) []string { c.namespace = "missing"; return nil },
			said:  []string{`namespaces "missing" not found`, "kubectl create namespace missing"},
		},
		{
			name:  "image without ovs-offline",
			spoil: func(_ *testing.T, c *client) []string { c.image = cluster.ImageWithoutTools; return nil },
			said:  []string{cluster.ImageWithoutTools + " has no ovs-offline that can be run"},
		},
		{
			name: "image of another version",
			spoil: func(t *testing.T, c *client) []string {
				c.image = c.otherVersion(t)
				return nil
			},
			said: []string{"another version of ovs-offline", "0.0.1", `"ovs-offline image push" makes`},
		},
		{
			name:  "registry down",
			spoil: func(_ *testing.T, c *client) []string { c.image = "127.0.0.1:1/ovs-offline:1"; return nil },
			said:  []string{"can't pull the image 127.0.0.1:1/ovs-offline:1", "connection refused"},
		},
		{
			name:  "no such node",
			spoil: func(_ *testing.T, c *client) []string { return []string{"--node-selector", "disktype=none"} },
			said:  []string{"finds no node", "0/"},
		},
		{
			name: "API server down",
			spoil: func(t *testing.T, c *client) []string {
				hop, err := cluster.Listen("127.0.0.1:1")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(hop.Stop)
				c.address = hop.Address
				return nil
			},
			said: []string{"asking the API server"},
		},
	}
}

const roleInDocs = "docs/kubernetes.md has a role"

// TestRefusedStartsAreNamed starts replicas that the cluster does not run: a line has the
// reason, nothing is left in the cluster, and the collection is as before.
func TestRefusedStartsAreNamed(t *testing.T) {
	t.Parallel()
	for _, r := range refusals() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, copyOfNode(t))
			its := c
			more := r.spoil(t, &its)
			before := collection(t, c.workdir)
			got := its.start(t, more...)
			t.Log(got.complaints)
			if got.code != 1 {
				t.Errorf("exit %d, want 1", got.code)
			}
			lines := strings.Split(strings.TrimSpace(got.complaints), "\n")
			for _, said := range r.said {
				if last := lines[len(lines)-1]; !strings.Contains(last, said) {
					t.Errorf("the last line does not hold %q: %s", said, last)
				}
			}
			c.awaitNothing(t)
			expectUntouched(t, c.workdir, before)
			if status := c.on(t, "status"); strings.Contains(status.out, "kubernetes") {
				t.Errorf("status after the start: exit %d\n%s\n%s", status.code, status.out, status.complaints)
			}
		})
	}
}

// limit creates a quota in the namespace, and waits until it counts.
func (c *client) limit(t *testing.T, quota *corev1.ResourceQuota) {
	t.Helper()
	quotas := c.Client.CoreV1().ResourceQuotas(c.namespace)
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "the quota to be observed", func() bool {
		now, err := quotas.Get(t.Context(), quota.Name, metav1.GetOptions{})
		return err == nil && len(now.Status.Hard) > 0
	})
}

// rule returns a rule of a role.
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// allow gives the client's user permissions in the namespace.
func (c *client) allow(t *testing.T, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: c.user}, Rules: rules}
	if _, err := c.Client.RbacV1().Roles(c.namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: c.user, APIGroup: rbacv1.GroupName}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: c.user, APIGroup: rbacv1.GroupName},
	}
	if _, err := c.Client.RbacV1().RoleBindings(c.namespace).Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// otherVersion returns an image on the node whose ovs-offline says that it is of another
// version.
func (c *client) otherVersion(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "other.tar")
	name, err := cluster.WriteOtherVersion(file, pause)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.node.Import(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestEndedStartsLeaveNothing ends a start before it is complete.
func TestEndedStartsLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, end := range []struct {
		how  string
		sig  syscall.Signal
		keep string
	}{{"Ctrl-C", syscall.SIGINT, "8h"}, {"SIGTERM", syscall.SIGTERM, "8h"}, {"SIGKILL", syscall.SIGKILL, "5s"}} {
		t.Run(end.how, func(t *testing.T) {
			t.Parallel()
			folder, _ := copyOfSet(t)
			c := newClient(t, folder)
			before := collection(t, folder)
			command := program(t, c.startArgs(t, "--keep", end.keep)...)
			var complaints bytes.Buffer
			command.Stderr = &complaints
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			ovs.Await(t, "the Job to be made", func() bool { return len(c.left(t)) > 0 })
			syscall.Kill(command.Process.Pid, end.sig)
			began := time.Now()
			command.Wait()
			t.Logf("exit %d, %.1f s after the signal: %s", command.ProcessState.ExitCode(), time.Since(began).Seconds(),
				complaints.String())
			if end.sig != syscall.SIGKILL && len(c.left(t)) > 0 {
				t.Errorf("left: %q", c.left(t))
			}
			c.awaitNothing(t)
			t.Logf("nothing was left %.1f s after the signal", time.Since(began).Seconds())
			expectUntouched(t, folder, before)
			if r := c.on(t, "stop"); r.code != 0 {
				t.Errorf("stop: exit %d\n%s\n%s", r.code, r.out, r.complaints)
			}
			expectUntouched(t, folder, before)
		})
	}
}

// TestNothingIsLeftAfterTheDeadline starts a replica with a deadline, which then comes sooner.
func TestNothingIsLeftAfterTheDeadline(t *testing.T) {
	t.Parallel()
	c := newClient(t, copyOfNode(t))
	before := collection(t, c.workdir)
	c.mustStart(t, "--keep", "40m")
	jobs, err := c.Client.BatchV1().Jobs(c.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Spec.ActiveDeadlineSeconds == nil {
		t.Fatalf("got %+v, %v, want one Job with a deadline", jobs, err)
	}
	if deadline := *jobs.Items[0].Spec.ActiveDeadlineSeconds; deadline != 40*60 {
		t.Errorf("--keep 40m gives the Job a deadline of %d s", deadline)
	}
	c.hurry(t, jobs.Items[0].Name)
	c.awaitNothing(t)
	if sets := c.list(t); len(sets) > 0 {
		t.Errorf("listed: %+v", sets)
	}
	expectUntouched(t, c.workdir, before)
	c.mustStart(t)
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}

// hurry lets the deadline of a Job come now.
func (c client) hurry(t *testing.T, job string) {
	t.Helper()
	sooner := []byte(`{"spec": {"activeDeadlineSeconds": 1}}`)
	if _, err := c.Client.BatchV1().Jobs(c.namespace).Patch(t.Context(), job, types.MergePatchType, sooner,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestStartReplacesFormer starts a set twice: of the first start, nothing is left.
func TestStartReplacesFormer(t *testing.T) {
	t.Parallel()
	c := newClient(t, copyOfNode(t))
	c.mustStart(t)
	former := c.list(t)
	c.mustStart(t)
	if now := c.list(t); len(now) != 1 || len(former) != 1 || now[0].Set == former[0].Set {
		t.Errorf("first %+v, then %+v", former, now)
	}
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}

// smallNode returns a second node of the cluster, which has room for one pod.
func (j *jobs) smallNode(t *testing.T) *cluster.Node { return j.addNode(t, "small", "--max-pods=1") }

// addNode adds a node, which has the image of the tools, to the cluster until the end of the
// test. The flags are those of its kubelet.
func (j *jobs) addNode(t *testing.T, name string, flags ...string) *cluster.Node {
	t.Helper()
	n, err := j.StartNode(t.Context(), name, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.Stop()
		j.RemoveNode(background, n.Name)
	})
	if err := n.Import(t.Context(), j.tools.File); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNodeFaults starts replicas on a node that is full, and whose kubelet is killed.
func TestNodeFaults(t *testing.T) {
	t.Parallel()
	c := newClient(t, copyOfNode(t))
	n := c.smallNode(t)
	here := []string{"--node-selector", "kubernetes.io/hostname=" + n.Name}
	c.mustStart(t, here...)
	t.Run("full", func(t *testing.T) {
		full := newClient(t, copyOfNode(t))
		r := full.start(t, here...)
		if r.code != 1 || !strings.Contains(r.complaints, "finds no node") ||
			!strings.Contains(r.complaints, "Too many pods") {
			t.Errorf("exit %d, want 1 and the reason: %s", r.code, r.complaints)
		}
		full.awaitNothing(t)
	})
	if r := c.on(t, "stop"); r.code != 0 {
		t.Fatalf("stop: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	t.Run("kubelet killed in a start", func(t *testing.T) {
		n.Kubelet.Kill()
		command, complaints := c.startsPod(t, here, func(pod corev1.Pod) bool { return pod.Spec.NodeName == n.Name })
		if err := n.Kubelet.Start(); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("start: %v\n%s", err, complaints)
		}
	})
	if r := c.on(t, "stop"); r.code != 0 {
		t.Fatalf("stop: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	t.Run("kubelet killed while a pod is loaded", func(t *testing.T) { c.killWhileLoading(t, n, here) })
	t.Run("kubelet killed in a command", func(t *testing.T) {
		n.Kubelet.Kill()
		r := c.on(t, "exec", "ovs-vsctl", "list-br")
		t.Logf("exit %d: %s", r.code, r.complaints)
		if r.code == 0 || strings.TrimSpace(r.complaints) == "" {
			t.Errorf("exit %d, want a failure that is named", r.code)
		}
		if err := n.Kubelet.Start(); err != nil {
			t.Fatal(err)
		}
		ovs.Await(t, "the replica to answer again", func() bool { return c.on(t, "exec", "ovs-vsctl", "list-br").code == 0 })
	})
	if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
		t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
	}
}

// killWhileLoading starts replicas, kills the kubelet as soon as their pod runs, and starts it
// again later.
func (c client) killWhileLoading(t *testing.T, n *cluster.Node, here []string) {
	const again = "trying again: "
	command, complaints := c.startsPod(t, here, func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	n.Kubelet.Kill()
	ovs.Await(t, "the start to find no kubelet", func() bool { return strings.Contains(complaints.String(), again) })
	if err := n.Kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("start: %v\n%s", err, complaints)
	}
}

// awaitEnd waits until a pod that was taken away no longer runs. The finalizer of its Job can
// keep it in the API until another pod replaces it.
func (c client) awaitEnd(t *testing.T, pod string) {
	t.Helper()
	ovs.Await(t, "the pod to end", func() bool {
		now, err := c.Client.CoreV1().Pods(c.namespace).Get(t.Context(), pod, metav1.GetOptions{})
		return err != nil || now.Status.Phase == corev1.PodFailed
	})
}

// startsPod starts replicas and waits until their only pod is as wanted. It returns the command,
// which still runs, and its messages.
func (c client) startsPod(t *testing.T, here []string, wanted func(corev1.Pod) bool) (*exec.Cmd, *shared) {
	t.Helper()
	command, complaints := program(t, c.startArgs(t, here...)...), &shared{}
	command.Stderr = complaints
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "a pod of the start", func() bool {
		pods := c.pods(t, c.namespace)
		return len(pods) == 1 && wanted(pods[0])
	})
	return command, complaints
}

// shared is a text that one goroutine writes and another reads.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestLostPodsAreMadeGood takes pods away. The next command loads the collection into the
// pod that replaces it.
func TestLostPodsAreMadeGood(t *testing.T) {
	t.Parallel()
	for how, lose := range map[string]func(t *testing.T, c client, pod string) error{
		"deleted": func(t *testing.T, c client, pod string) error {
			return c.Client.CoreV1().Pods(c.namespace).Delete(t.Context(), pod, *metav1.NewDeleteOptions(0))
		},
		"evicted": func(t *testing.T, c client, pod string) error {
			return c.Client.PolicyV1().Evictions(c.namespace).Evict(t.Context(),
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: pod}})
		},
		"killed": func(t *testing.T, c client, pod string) error {
			pid, err := c.FirstProcess(t.Context(), c.namespace, pod, "replicas")
			if err != nil {
				return err
			}
			return syscall.Kill(pid, syscall.SIGKILL)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, copyOfNode(t))
			before := collection(t, c.workdir)
			c.mustStart(t)
			flows := []string{"exec", "ovs-ofctl", "dump-flows", "--no-stats", "br-int"}
			want := c.on(t, flows...)
			if want.code != 0 || len(want.out) == 0 {
				t.Fatalf("exit %d\n%s", want.code, want.complaints)
			}
			pod := c.pods(t, c.namespace)[0].Name
			if err := lose(t, c, pod); err != nil {
				t.Fatal(err)
			}
			c.awaitEnd(t, pod)
			got := c.on(t, flows...)
			t.Log(got.complaints)
			if got.code != 0 || got.out != want.out || !strings.Contains(got.complaints, "pod "+pod+" was replaced by") {
				t.Errorf("exit %d, the same flows: %t", got.code, got.out == want.out)
			}
			if again := c.on(t, "exec", "ovs-vsctl", "list-br"); again.code != 0 || again.complaints != "" {
				t.Errorf("the second command: exit %d\n%s", again.code, again.complaints)
			}
			expectUntouched(t, c.workdir, before)
			if r := c.on(t, "stop"); r.code != 0 || len(c.left(t)) > 0 {
				t.Errorf("stop: exit %d, left: %q\n%s\n%s", r.code, c.left(t), r.out, r.complaints)
			}
		})
	}
}
