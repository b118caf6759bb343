package k8s

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/oracle/sets"
)

// recordedSet is a set of three nodes, and its collection.
type recordedSet struct {
	*sets.Set
	folder string // with a workdir for each node
}

// theSet is collected once. Each test uses a copy.
var theSet struct {
	once sync.Once
	recordedSet
}

// copyOfSet returns a folder with the workdirs of a set.
func copyOfSet(t *testing.T) (folder string, set *sets.Set) {
	t.Helper()
	theSet.once.Do(func() {
		folder := filepath.Join(scratch(), "set")
		recorded := sets.Recorded(t, labScript, "kubernetes-ic")
		if _, err := recorded.Workdirs(t.Context(), folder, sets.Native); err != nil {
			t.Fatal(err)
		}
		theSet.recordedSet = recordedSet{recorded, folder}
	})
	if theSet.Set == nil {
		t.Fatal("the set was not collected")
	}
	folder = filepath.Join(t.TempDir(), "set")
	if err := run("cp", "-a", theSet.folder, folder); err != nil {
		t.Fatal(err)
	}
	return folder, theSet.Set
}

// copyOfNode returns the workdir of one node of the set.
func copyOfNode(t *testing.T) string {
	t.Helper()
	folder, set := copyOfSet(t)
	return filepath.Join(folder, set.Nodes[0])
}

// collection returns the content of the files that were collected into the workdirs below
// a folder. What belongs to a replica is left out.
func collection(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && slices.Contains([]string{"bin", "run", "var-run"}, name):
			return fs.SkipDir
		case !entry.Type().IsRegular() || slices.Contains([]string{"replica.json", "report.json", ".lock"}, name):
			return nil
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// expectUntouched checks that a collection is as it was.
func expectUntouched(t *testing.T, folder string, before map[string]string) {
	t.Helper()
	after := collection(t, folder)
	for path, text := range before {
		if now, there := after[path]; !there || now != text {
			t.Errorf("%s: there %t, %d bytes, before %d", path, there, len(now), len(text))
		}
	}
	for path := range after {
		if _, there := before[path]; !there {
			t.Errorf("%s is new", path)
		}
	}
}

// client is a user with a workdir who runs replicas in a namespace.
type client struct {
	*jobs
	namespace string
	workdir   string
	user      string
	address   string // of a proxy before the API server; "" for none
	image     string
}

// newClient returns the administrator as a client, with a namespace of the test.
func newClient(t *testing.T, workdir string) client {
	t.Helper()
	j, namespace := withJobs(t)
	return client{jobs: j, namespace: namespace, workdir: workdir, user: cluster.Admin, image: j.tools.Name}
}

// place returns the flags that name the cluster and the namespace.
func (c client) place(t *testing.T) []string {
	t.Helper()
	path, err := c.Kubeconfig(c.user, c.address)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--runtime", "kubernetes", "--kubeconfig", path, "--namespace", c.namespace}
}

// startArgs returns the arguments of a start in the cluster.
func (c client) startArgs(t *testing.T, more ...string) []string {
	t.Helper()
	return slices.Concat([]string{"-w", c.workdir, "start", "--image", c.image}, c.place(t), more)
}

func (c client) start(t *testing.T, more ...string) result {
	t.Helper()
	return ovsOfflineRun(t, c.startArgs(t, more...)...)
}

// mustStart starts the replicas.
func (c client) mustStart(t *testing.T, more ...string) {
	t.Helper()
	if r := c.start(t, more...); r.code != 0 {
		t.Fatalf("start: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
}

// on runs a command on the workdir.
func (c client) on(t *testing.T, args ...string) result {
	t.Helper()
	return ovsOfflineRun(t, append([]string{"-w", c.workdir}, args...)...)
}

// left returns the names of what ovs-offline has in the namespace.
func (c client) left(t *testing.T) (names []string) {
	t.Helper()
	mine := metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=ovs-offline"}
	jobs, err := c.Client.BatchV1().Jobs(c.namespace).List(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs.Items {
		names = append(names, "Job "+job.Name)
	}
	policies, err := c.Client.NetworkingV1().NetworkPolicies(c.namespace).List(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies.Items {
		names = append(names, "NetworkPolicy "+policy.Name)
	}
	for _, pod := range c.pods(t, c.namespace) {
		names = append(names, "Pod "+pod.Name)
	}
	return names
}

// awaitNothing waits until nothing of ovs-offline is in the namespace.
func (c client) awaitNothing(t *testing.T) {
	t.Helper()
	ovs.Await(t, "all of ovs-offline to go", func() bool { return len(c.left(t)) == 0 })
}

// listed is a set as "list --runtime kubernetes" prints it.
type listed struct {
	Set, Namespace string
	Nodes          []string
	Pods, Ready    int
	Problem        string
	Path           string `json:"client_path"`
}

// list lists the sets of the namespace from another folder than the workdir.
func (c client) list(t *testing.T) (sets []listed) {
	t.Helper()
	r := ovsOfflineRun(t, slices.Concat([]string{"-w", t.TempDir(), "list", "-o", "json"}, c.place(t))...)
	if err := json.Unmarshal([]byte(r.out), &sets); r.code != 0 || err != nil {
		t.Fatalf("list: exit %d, %v\n%s\n%s", r.code, err, r.out, r.complaints)
	}
	return sets
}

// TestReplicasInPods starts the replicas of a set of three nodes in a namespace with Pod
// Security. Another user lists and stops them. TestCommandsOnPods compares what they answer with local processes.
func TestReplicasInPods(t *testing.T) {
	t.Parallel()
	folder, set := copyOfSet(t)
	c := newClient(t, folder)
	before := collection(t, folder)
	if r := c.start(t); r.code != 0 || !strings.Contains(r.complaints, c.namespace) ||
		!strings.Contains(r.complaints, c.image) {
		t.Fatalf("start: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	t.Run("locked down", func(t *testing.T) { c.expectLockedDown(t) })
	found := c.list(t)
	if len(found) != 1 || !slices.Equal(found[0].Nodes, set.Nodes) || found[0].Ready != found[0].Pods ||
		found[0].Path != folder || found[0].Namespace != c.namespace {
		t.Fatalf("listed: %+v", found)
	}
	r := ovsOfflineRun(t, slices.Concat([]string{"-w", t.TempDir(), "stop", found[0].Set}, c.place(t))...)
	if left := c.left(t); r.code != 0 || len(left) > 0 {
		t.Errorf("stop of the set: exit %d, left: %q\n%s\n%s", r.code, left, r.out, r.complaints)
	}
	if r := c.on(t, "stop"); r.code != 0 {
		t.Errorf("stop of what another has stopped: exit %d\n%s\n%s", r.code, r.out, r.complaints)
	}
	expectUntouched(t, folder, before)
}

// reportLines returns the lines of reports without what differs between runtimes: the
// folder, and how the daemons are kept from the network.
func reportLines(text, folder string) string {
	var kept []string
	for line := range strings.Lines(strings.ReplaceAll(text, folder, "FOLDER")) {
		if !strings.HasPrefix(strings.TrimSpace(line), `"daemons run `) {
			kept = append(kept, strings.TrimRight(line, ",\n"))
		}
	}
	return strings.Join(kept, "\n")
}

// firstDifference returns the first lines in which two texts differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "got  " + a[i] + "\nwant " + b[i]
		}
	}
	return "one is longer:\n" + strings.Join(a[min(len(a), len(b)):], "\n") + strings.Join(b[min(len(a), len(b)):], "\n")
}

// expectLockedDown checks that the pods have no way to the cluster's network or API.
func (c client) expectLockedDown(t *testing.T) {
	t.Helper()
	pods := c.pods(t, c.namespace)
	for _, pod := range pods {
		if spec := pod.Spec; spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken ||
			spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
			t.Errorf("pod %s has the token of a service account, or the addresses of services", pod.Name)
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.EmptyDir == nil {
				t.Errorf("pod %s has the volume %+v", pod.Name, volume)
			}
		}
	}
	policies, err := c.Client.NetworkingV1().NetworkPolicies(c.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(policies.Items) != 1 {
		t.Fatalf("%d network policies, %v", len(policies.Items), err)
	}
	policy := policies.Items[0]
	denied := policy.Spec.PolicyTypes
	if !slices.Contains(denied, networkingv1.PolicyTypeIngress) ||
		!slices.Contains(denied, networkingv1.PolicyTypeEgress) || len(policy.Spec.Ingress)+len(policy.Spec.Egress) > 0 {
		t.Errorf("the policy allows something: %+v", policy.Spec)
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		if !selector.Matches(labels.Set(pod.Labels)) {
			t.Errorf("the policy does not concern pod %s", pod.Name)
		}
	}
	if len(policy.OwnerReferences) == 0 || policy.OwnerReferences[0].Kind != "Job" {
		t.Errorf("no Job owns the policy: %+v", policy.OwnerReferences)
	}
}
