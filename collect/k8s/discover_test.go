package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"ovs-offline/collect"
	"ovs-offline/collect/k8s"
	"ovs-offline/internal/fault"
	"ovs-offline/workdir"
)

// failing is an executor that records which containers get commands, and runs none.
type failing struct{ asked []string }

func (d *failing) Exec(_ context.Context, target k8s.Target, argv []string, _ io.Reader, _, _ io.Writer) error {
	d.asked = append(d.asked, target.String())
	return errors.New("failing")
}

func objects(lists ...[]runtime.Object) []runtime.Object {
	var all []runtime.Object
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

const ovnk, ocp = "ovn-kubernetes", "openshift-ovn-kubernetes"

// clusters returns the platforms, each with two nodes.
func clusters() map[string][]runtime.Object {
	nodes := []runtime.Object{node("n1"), node("n2")}
	kind := []runtime.Object{
		pod(ovnk, "ovs-node-1", "n1", "app=ovs-node", "ovs-daemons"),
		pod(ovnk, "ovs-node-2", "n2", "app=ovs-node", "ovs-daemons"),
	}
	openshift := []runtime.Object{
		pod(ocp, "ovnkube-node-1", "n1", "app=ovnkube-node", "ovn-controller", "ovn-acl-logging", "northd", "nbdb", "sbdb",
			"ovnkube-controller"),
		pod(ocp, "ovnkube-node-2", "n2", "app=ovnkube-node", "ovn-controller", "ovn-acl-logging", "northd", "nbdb", "sbdb",
			"ovnkube-controller"),
	}
	return map[string][]runtime.Object{
		"openshift": objects(nodes, openshift),
		"openshift 4.12": objects(nodes, []runtime.Object{
			pod(ocp, "ovnkube-node-1", "n1", "app=ovnkube-node", "ovn-controller", "ovnkube-node"),
			pod(ocp, "ovnkube-node-2", "n2", "app=ovnkube-node", "ovn-controller", "ovnkube-node"),
			pod(ocp, "ovnkube-master-1", "n2", "app=ovnkube-master", "northd", "nbdb", "sbdb", "ovnkube-master"),
		}),
		"openshift 4.5": objects(nodes, []runtime.Object{
			pod(ocp, "ovs-node-1", "n1", "app=ovs-node", "ovs-daemons"),
			pod(ocp, "ovnkube-node-1", "n1", "app=ovnkube-node", "ovn-controller", "ovnkube-node"),
			pod(ocp, "ovnkube-master-1", "n2", "app=ovnkube-master", "northd", "nbdb", "sbdb", "ovnkube-master"),
		}),
		"kind interconnect": objects(nodes, kind, []runtime.Object{
			pod(ovnk, "ovnkube-node-1", "n1", "app=ovnkube-node", "nb-ovsdb", "sb-ovsdb", "ovnkube-controller", "ovn-northd",
				"ovn-controller"),
			pod(ovnk, "ovnkube-node-2", "n2", "app=ovnkube-node", "nb-ovsdb", "sb-ovsdb", "ovnkube-controller", "ovn-northd",
				"ovn-controller"),
		}),
		"kind central": objects(nodes, kind, []runtime.Object{
			pod(ovnk, "ovnkube-node-1", "n1", "app=ovnkube-node", "ovnkube-node", "ovn-controller"),
			pod(ovnk, "ovnkube-node-2", "n2", "app=ovnkube-node", "ovnkube-node", "ovn-controller"),
			pod(ovnk, "ovnkube-db-1", "n2", "name=ovnkube-db", "nb-ovsdb", "sb-ovsdb"),
		}),
		"rhoso": objects(nodes, openshift, []runtime.Object{
			pod("openstack", "ovn-controller-ovs-1", "n1", "service=ovn-controller-ovs", "ovsdb-server", "ovs-vswitchd"),
			pod("openstack", "ovsdbserver-nb-0", "n2", "service=ovsdbserver-nb", "ovsdbserver-nb"),
			pod("openstack", "ovsdbserver-sb-0", "n2", "service=ovsdbserver-sb", "ovsdbserver-sb"),
		}),
		"two clouds": objects(nodes, []runtime.Object{
			pod("openstack", "ovn-controller-ovs-1", "n1", "service=ovn-controller-ovs", "ovsdb-server", "ovs-vswitchd"),
			pod("other", "ovn-controller-ovs-2", "n1", "service=ovn-controller-ovs", "ovsdb-server", "ovs-vswitchd"),
			pod("other", "ovsdbserver-nb-0", "n2", "service=ovsdbserver-nb", "ovsdbserver-nb"),
		}),
		"kube-ovn": objects(nodes, []runtime.Object{
			pod("kube-system", "ovs-ovn-1", "n1", "app=ovs", "openvswitch"),
			pod("kube-system", "ovs-ovn-2", "n2", "app=ovs", "openvswitch"),
			pod("kube-system", "ovn-central-1", "n2", "app=ovn-central", "ovn-central"),
		}),
		"nothing": nodes,
	}
}

// TestLayoutsAreDetected checks that each platform is recognised, and that the commands
// of OVS run in the right container.
func TestLayoutsAreDetected(t *testing.T) {
	for _, c := range []struct {
		name, cluster string
		opts          k8s.Options
		layout, asks  string // or
		err           string
	}{
		{name: "openshift", cluster: "openshift", layout: "openshift", asks: ocp + "/ovnkube-node-1/ovnkube-controller"},
		{name: "openshift -o", cluster: "openshift", opts: k8s.Options{OpenShift: true}, layout: "openshift",
			asks: ocp + "/ovnkube-node-1/ovnkube-controller"},
		{name: "openshift 4.12", cluster: "openshift 4.12", layout: "openshift-central",
			asks: ocp + "/ovnkube-node-1/ovnkube-node"},
		{name: "openshift 4.5", cluster: "openshift 4.5", layout: "openshift-central", asks: ocp + "/ovs-node-1/ovs-daemons"},
		{name: "kind interconnect", cluster: "kind interconnect", layout: "ovn-kubernetes",
			asks: ovnk + "/ovnkube-node-1/ovnkube-controller"},
		{name: "kind central", cluster: "kind central", layout: "ovn-kubernetes-central",
			asks: ovnk + "/ovnkube-node-1/ovnkube-node"},
		{name: "kube-ovn", cluster: "kube-ovn", layout: "kube-ovn", asks: "kube-system/ovs-ovn-1/openvswitch"},
		{name: "rhoso and openshift", cluster: "rhoso",
			err: "node n1 has several layouts: openshift (OpenShift 4.14 and later), rhoso (OpenStack on OpenShift (RHOSO)); choose with --layout, or with --openshift"},
		{name: "rhoso by name", cluster: "rhoso", opts: k8s.Options{Layout: "rhoso"}, layout: "rhoso",
			asks: "openstack/ovn-controller-ovs-1/ovs-vswitchd"},
		{name: "rhoso by namespace", cluster: "rhoso", opts: k8s.Options{Namespace: "openstack"}, layout: "rhoso",
			asks: "openstack/ovn-controller-ovs-1/ovs-vswitchd"},
		{name: "two clouds", cluster: "two clouds", opts: k8s.Options{Layout: "rhoso"},
			err: "node n1 has layout rhoso in namespaces openstack and other; choose with -n"},
		{name: "one of two clouds", cluster: "two clouds", opts: k8s.Options{Namespace: "other"}, layout: "rhoso",
			asks: "other/ovn-controller-ovs-2/ovs-vswitchd"},
		{name: "rhoso's openshift", cluster: "rhoso", opts: k8s.Options{OpenShift: true}, layout: "openshift",
			asks: ocp + "/ovnkube-node-1/ovnkube-controller"},
		{name: "nothing", cluster: "nothing", err: "no known layout of OVS and OVN on node n1; looked for\n  openshift (OpenShift 4.14 and later), in namespace openshift-ovn-kubernetes: pods app=ovnkube-node with container ovnkube-controller on the node: 0;"},
		{name: "kind as openshift", cluster: "kind central", opts: k8s.Options{OpenShift: true}, err: "no known layout"},
		{name: "kind by a wrong name", cluster: "kind central", opts: k8s.Options{Layout: "kube-ovn"},
			err: "kube-ovn (kube-ovn), in namespace kube-system: pods app=ovs with container openvswitch on the node: 0"},
		{name: "no such node", cluster: "kind central", opts: k8s.Options{Nodes: []string{"n3"}},
			err: `the cluster has no node "n3"; nodes that run OVS: n1, n2`},
		{name: "no OVS on it", cluster: "openshift 4.5", opts: k8s.Options{Nodes: []string{"n2"}},
			err: "nodes that run OVS: n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &failing{}
			if c.opts.Nodes == nil {
				c.opts.Nodes = []string{"n1"}
			}
			results, err := k8s.Collect(t.Context(), cluster(d, clusters()[c.cluster]...), filepath.Join(t.TempDir(), "wd"),
				impatient(c.opts))
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			if c.err != "" {
				if r.Err == nil || !strings.Contains(r.Err.Error(), c.err) || len(d.asked) > 0 {
					t.Errorf("asked %q, with the error: %v", d.asked, r.Err)
				}
				return
			}
			if r.Layout != c.layout || len(d.asked) == 0 || d.asked[0] != c.asks || r.Err == nil ||
				!strings.Contains(r.Err.Error(), c.asks) {
				t.Errorf("layout %s, asked %q, with the error: %v", r.Layout, d.asked, r.Err)
			}
		})
	}
}

func TestUnknownLayoutIsRefused(t *testing.T) {
	for want, opts := range map[string]k8s.Options{
		"no layout \"flannel\"; there are openshift, ": {Nodes: []string{"n1"}, Layout: "flannel"},
		"is not OpenShift's":                           {Nodes: []string{"n1"}, Layout: "kube-ovn", OpenShift: true},
	} {
		_, err := k8s.Collect(t.Context(), cluster(&failing{}), t.TempDir(), opts)
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

// TestStateOfUnusablePodIsNamed checks that the error names the state of a container
// that cannot be used, and that a newer pod or another container is used in its place.
func TestStateOfUnusablePodIsNamed(t *testing.T) {
	state := func(p *corev1.Pod, s corev1.ContainerState) *corev1.Pod {
		for i := range p.Status.ContainerStatuses {
			p.Status.ContainerStatuses[i].State = s
		}
		return p
	}
	crashing := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
		Message: "back-off 5m0s"}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 137}}
	ovnkube := func(name string) *corev1.Pod {
		return pod(ovnk, name, "n1", "app=ovnkube-node", "nb-ovsdb", "sb-ovsdb", "ovnkube-controller")
	}
	pending := ovnkube("p")
	pending.Status = corev1.PodStatus{Phase: corev1.PodPending, Message: "no room"}
	for name, c := range map[string]struct {
		pods []runtime.Object
		want string
	}{
		"crash loop": {[]runtime.Object{state(ovnkube("p"), crashing)},
			"pod ovn-kubernetes/p: container ovnkube-controller is waiting: CrashLoopBackOff: back-off 5m0s"},
		"ended": {[]runtime.Object{state(ovnkube("p"), ended)},
			"container ovnkube-controller has ended: Error, exit code 137"},
		"pending": {[]runtime.Object{pending}, "pod ovn-kubernetes/p is Pending: no room"},
		"two pods": {[]runtime.Object{state(ovnkube("old"), ended), ovnkube("new")},
			"ovn-kubernetes/new/ovnkube-controller: failing"},
		"other container": {[]runtime.Object{state(ovnkube("p"), crashing),
			pod(ovnk, "ovs", "n1", "app=ovs-node", "ovs-daemons")},
			"ovn-kubernetes/ovs/ovs-daemons: failing"},
	} {
		t.Run(name, func(t *testing.T) {
			results, err := k8s.Collect(t.Context(), cluster(&failing{}, append(c.pods, node("n1"))...),
				filepath.Join(t.TempDir(), "wd"), impatient(k8s.Options{Nodes: []string{"n1"}}))
			if err != nil || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), c.want) {
				t.Errorf("%v, %v", err, results)
			}
		})
	}
}

// TestMissingPermissionIsNamed checks that the error names the verb, resource and
// namespace of a missing permission.
func TestMissingPermissionIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		allowed string // verbs on pods/exec
		want    string
	}{
		"none":   {"", "permission is missing: verbs create and get on resource pods/exec in namespace ovn-kubernetes"},
		"create": {"create", "failing"},
		"get":    {"get", "permission is missing: verb create on resource pods/exec in namespace ovn-kubernetes; docs/kubernetes.md has a role with all required permissions (ovn-kubernetes/ovnkube-node-1/ovnkube-node: failing"},
		"both":   {"create get", "failing"},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewSimpleClientset(clusters()["kind central"]...)
			api.PrependReactor("create", "selfsubjectaccessreviews",
				func(action k8stesting.Action) (bool, runtime.Object, error) {
					review := action.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
					asked := review.Spec.ResourceAttributes
					review.Status.Allowed = asked.Resource == "pods" && asked.Subresource == "exec" && asked.Namespace == ovnk &&
						strings.Contains(c.allowed, asked.Verb)
					return true, review, nil
				})
			results, err := k8s.Collect(t.Context(), &k8s.Cluster{API: objectTracker{api}, Executor: &failing{}},
				filepath.Join(t.TempDir(), "wd"), impatient(k8s.Options{Nodes: []string{"n1"}}))
			if err != nil || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), c.want) {
				t.Errorf("%v, %v", err, results)
			}
		})
	}
	api := fake.NewSimpleClientset()
	api.PrependReactor("list", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	})
	results, err := k8s.Collect(t.Context(), &k8s.Cluster{API: objectTracker{api}, Executor: &failing{}},
		filepath.Join(t.TempDir(), "wd"), impatient(k8s.Options{Nodes: []string{"n1"}, Layout: "kube-ovn"}))
	if err != nil || results[0].Err == nil {
		t.Fatal(err, results)
	}
	if !strings.Contains(results[0].Err.Error(),
		"permission is missing: verb list on resource pods in namespace kube-system") {
		t.Error(results[0].Err)
	}
}

// TestWorkdirsAreReplacedOnlyWithForce checks that existing data is replaced only with
// --force and is unchanged after a failure, and that several nodes get workdirs of
// their own.
func TestWorkdirsAreReplacedOnlyWithForce(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "wd")
	c := cluster(&failing{}, clusters()["kind central"]...)
	wd, err := workdir.Lock(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(wd.RestoreFlows(), 0o700); err != nil {
		t.Fatal(err)
	}
	mine := wd.DumpFile("br0", workdir.Flows)
	if err := os.WriteFile(mine, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	wd.Unlock()
	results, err := k8s.Collect(t.Context(), c, parent, impatient(k8s.Options{Nodes: []string{"n1"}}))
	if err != nil || !errors.Is(results[0].Err, collect.ErrOccupied) {
		t.Errorf("%v, %v", err, results)
	}
	opts := k8s.Options{Nodes: []string{"n1"}}
	opts.Force = true
	results, err = k8s.Collect(t.Context(), c, parent, impatient(opts))
	if err != nil || results[0].Err == nil || errors.Is(results[0].Err, collect.ErrOccupied) {
		t.Errorf("%v, %v", err, results)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("a collection that failed took away what was there: ", err)
	}
	// Below the workdir of a node, no command would find others.
	if _, err = k8s.Collect(t.Context(), c, parent, impatient(k8s.Options{All: true})); !errors.Is(err,
		collect.ErrOccupied) {
		t.Errorf("several nodes below the workdir of one: got %v, want %v", err, collect.ErrOccupied)
	}
	parent = filepath.Join(t.TempDir(), "nodes")
	results, err = k8s.Collect(t.Context(), c, parent, impatient(k8s.Options{All: true}))
	if err != nil || len(results) != 2 {
		t.Fatal(err, results)
	}
	for i, r := range results {
		if r.Workdir != filepath.Join(parent, fmt.Sprintf("n%d", i+1)) || r.Err == nil {
			t.Errorf("%+v", r)
		}
	}
	left, err := filepath.Glob(filepath.Join(parent, "*", ".incoming*"))
	more, err2 := filepath.Glob(filepath.Join(parent, ".incoming*"))
	if len(left)+len(more) > 0 || err != nil || err2 != nil {
		t.Errorf("left behind: %q %q", left, more)
	}
}

// unversioned is an API server that lists objects and never returns its version.
type unversioned struct {
	k8s.API
	cancel func()
}

func (m unversioned) Version(ctx context.Context) (string, error) {
	m.cancel() // the user presses Ctrl-C meanwhile
	<-ctx.Done()
	return "", ctx.Err()
}

// TestVersionRequestEndsWithItsContext checks that the request for the server's version
// ends with its context.
func TestVersionRequestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := cluster(&failing{}, interconnect("n1")...)
	c.API = unversioned{c.API, cancel}
	if _, err := k8s.Collect(ctx, c, filepath.Join(t.TempDir(), "wd"),
		impatient(k8s.Options{Nodes: []string{"n1"}})); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
