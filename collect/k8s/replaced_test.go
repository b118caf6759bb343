package k8s_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"ovs-offline/collect/k8s"
)

// replacing fails the first commands in a pod, and replaces the pod meanwhile.
type replacing struct {
	k8s.Executor
	t        *testing.T
	replace  func()
	replaced bool
}

func (r *replacing) Exec(ctx context.Context, target k8s.Target, argv []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	if !r.replaced {
		r.replaced = true
		r.replace()
		return errors.New(`container not found ("ovnkube-controller")`)
	}
	if strings.Contains(target.Pod, "old") {
		r.t.Errorf("a command for %s, which is gone", target)
	}
	return r.Executor.Exec(ctx, target, argv, stdin, stdout, stderr)
}

// TestReplacedPodIsFound checks that a pod which came back under another name during a
// collection is found, and that the collection names the replacement.
func TestReplacedPodIsFound(t *testing.T) {
	_, local := live(t, shared)
	const namespace = "ovn-kubernetes"
	containers := []string{"nb-ovsdb", "sb-ovsdb", "ovnkube-controller"}
	api := fake.NewSimpleClientset(node("worker"), pod(namespace, "old", "worker", "app=ovnkube-node", containers...))
	exec := &replacing{Executor: local, t: t, replace: func() {
		pods := api.CoreV1().Pods(namespace)
		if err := pods.Delete(t.Context(), "old", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := pods.Create(t.Context(), pod(namespace, "new", "worker", "app=ovnkube-node", containers...),
			metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}}
	r := collectOne(t, &k8s.Cluster{API: objectTracker{api}, Executor: exec}, filepath.Join(t.TempDir(), "wd"),
		k8s.Options{Nodes: []string{"worker"}})
	checkNothingLost(t, r)
	remarks := strings.Join(r.Collections[0].Remarks, "\n")
	if len(r.Collections) != 4 || !strings.Contains(remarks,
		"container ovn-kubernetes/old/ovnkube-controller was replaced by ovn-kubernetes/new/ovnkube-controller during the collection") {
		t.Errorf("%d collections, %s", len(r.Collections), remarks)
	}
}
