package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"ovs-offline/collect/k8s"
	"ovs-offline/test/daemons/ovs"
)

const lab = "../../scripts/lab/lab"

// pod returns a running pod.
func pod(namespace, name, node, label string, containers ...string) *corev1.Pod {
	key, value, _ := strings.Cut(label, "=")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{key: value}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c, Image: "registry.example/" + name + "/" + c})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
	}
	return p
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// local runs on this machine the commands that would run in containers.
type local struct {
	t     *testing.T
	shell []string          // in place of sh
	env   map[string]string // additional or changed variables
}

func (l *local) Exec(ctx context.Context, _ k8s.Target, argv []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	if len(l.shell) > 0 {
		argv = append(append([]string{}, l.shell...), argv[1:]...)
	}
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Stdout, c.Stderr = stdout, stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, stdin) // the command may end first
		_ = in.Close()
	}()
	c.Env = os.Environ()
	for k, v := range l.env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = ovs.Patience()
	return c.Run()
}

// shared is the topology of the lab that the tests share: collecting changes nothing on a node.
const shared = "kubernetes"

// startShared starts the shared node when a test first asks for it, and returns its folder.
var startShared = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "collect-k8s")
	if err != nil {
		return "", err
	}
	stopShared = func() error { return errors.Join(labRun("down", filepath.Join(dir, "lab")), os.RemoveAll(dir)) }
	return filepath.Join(dir, "lab"), labRun("up", shared, filepath.Join(dir, "lab"))
})

// stopShared ends the shared node after all tests.
var stopShared = func() error { return nil }

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// live returns the folder of a live node of a topology of the lab, and an executor that runs commands on it.
func live(t *testing.T, topology string) (dir string, exec *local) {
	t.Helper()
	ovs.Need(t, "ovs-vswitchd", "ovn-northd", "ovn-controller", "ip")
	if topology == shared {
		dir, err := startShared()
		if err != nil {
			t.Fatal(err)
		}
		return dir, onLab(t, dir)
	}
	dir = filepath.Join(t.TempDir(), "lab")
	mustLab(t, "up", topology, dir)
	t.Cleanup(func() { mustLab(t, "down", dir) })
	return dir, onLab(t, dir)
}

func mustLab(t *testing.T, args ...string) {
	t.Helper()
	if err := labRun(args...); err != nil {
		t.Fatal(err)
	}
}

func labRun(args ...string) error {
	if out, err := exec.Command(lab, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("lab %s: %w: %s", args, err, out)
	}
	return nil
}

// onLab returns an executor that runs commands with the folders of a lab in place of
// those of OVS and OVN.
func onLab(t *testing.T, dir string) *local {
	t.Helper()
	bin, err := filepath.Abs("testdata/bin")
	if err != nil {
		t.Fatal(err)
	}
	return &local{t: t, env: map[string]string{
		"PATH":       bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"OVS_RUNDIR": filepath.Join(dir, "ovs"), "OVN_RUNDIR": filepath.Join(dir, "ovn"), "LC_ALL": "C",
	}}
}

// objectTracker answers requests to the API from client-go's store of objects.
type objectTracker struct{ kubernetes.Interface }

func (o objectTracker) Version(ctx context.Context) (string, error) {
	info, err := o.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

func (o objectTracker) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return o.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

func (o objectTracker) Nodes(ctx context.Context, selector string) (*corev1.NodeList, error) {
	return o.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
}

func (o objectTracker) Pods(ctx context.Context, namespace, selector string) (*corev1.PodList, error) {
	return o.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
}

func (o objectTracker) PodLog(ctx context.Context, namespace, pod string, options *corev1.PodLogOptions) (io.ReadCloser,
	error) {
	return o.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
}

func (o objectTracker) Services(ctx context.Context) (*corev1.ServiceList, error) {
	return o.CoreV1().Services("").List(ctx, metav1.ListOptions{})
}

func (o objectTracker) Review(ctx context.Context,
	review *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
	return o.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
}

// cluster returns a cluster of objects, with one executor for all containers.
func cluster(executor k8s.Executor, objects ...runtime.Object) *k8s.Cluster {
	return &k8s.Cluster{Name: "https://cluster.test:6443", API: objectTracker{fake.NewSimpleClientset(objects...)},
		Executor: executor}
}

// interconnect returns the pods of a node of ovn-kubernetes with interconnect.
func interconnect(name string) []runtime.Object {
	return []runtime.Object{node(name), pod("ovn-kubernetes", "ovnkube-node-"+name, name, "app=ovnkube-node", "nb-ovsdb",
		"sb-ovsdb", "ovnkube-controller")}
}

// impatient returns the options for tests in which a node fails for good.
func impatient(o k8s.Options) k8s.Options {
	o.Patience = time.Millisecond
	return o
}

// collectOne collects one node, and fails the test if that fails.
func collectOne(t *testing.T, c *k8s.Cluster, dir string, opts k8s.Options) k8s.Result {
	t.Helper()
	results, err := k8s.Collect(t.Context(), c, dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(results[0].Err); err != nil {
		t.Fatal(err)
	}
	return results[0]
}
