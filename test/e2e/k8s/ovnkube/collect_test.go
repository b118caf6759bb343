package ovnkube

import (
	_ "embed"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/e2e/k8s/rigtest"
)

//go:embed testdata/permissions.yaml
var permissions []byte

// TestCollectWithFewPermissions collects one node as a user who may list the pods of OVN-Kubernetes's
// namespace and run commands in them, and nothing else.
func TestCollectWithFewPermissions(t *testing.T) {
	need(t)
	if err := lab.Cluster.Apply(t.Context(), permissions); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := lab.Cluster.Kubeconfig(rigtest.Limited, "")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "node2")
	var out struct {
		Nodes []struct{ Name, Layout, Outcome string }
	}
	lab.Program.Run("-w", folder, "collect-k8s", "node2", "--kubeconfig", kubeconfig, "-o", "json").Read(t, &out)
	if len(out.Nodes) != 1 || out.Nodes[0].Outcome != "whole" || out.Nodes[0].Name != "node2" {
		t.Errorf("%+v", out)
	}
	if r := lab.Program.Run("-w", folder, "drift"); r.Code != 0 && r.Code != 3 {
		t.Error(r)
	}
	r := lab.Program.Run("-w", filepath.Join(t.TempDir(), "all"), "collect-k8s", "--all", "--kubeconfig", kubeconfig)
	if r.Code != 0 {
		t.Errorf("all nodes, which the pods name: %v", r)
	}
}

//go:embed testdata/gather.yaml
var gather string

// TestGatherInAPod collects the nodes from a pod that `oc adm must-gather` starts, and loads what it wrote.
func TestGatherInAPod(t *testing.T) {
	need(t)
	tools, err := cluster.WriteTools(t.Context(), filepath.Join(t.TempDir(), "tools.tar"), string(lab.Program))
	if err != nil {
		t.Fatal(err)
	}
	n := lab.deployment.Nodes[0]
	if err := n.Import(t.Context(), tools.File); err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(lab.Cluster.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Cluster.AddNamespace(t.Context(), "must-gather", nil); err != nil {
		t.Fatal(err)
	}
	pod := strings.NewReplacer("$NODE", n.Name, "$IMAGE", tools.Name, "$HOST", host, "$PORT", port).Replace(gather)
	if err := lab.Cluster.Apply(t.Context(), []byte(pod)); err != nil {
		t.Fatal(err)
	}
	uid := ""
	await(t, func() error {
		pod, err := lab.Cluster.Client.CoreV1().Pods("must-gather").Get(t.Context(), "must-gather", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, status := range pod.Status.ContainerStatuses {
			if ended := status.State.Terminated; status.Name == "gather" && ended != nil && ended.ExitCode == 0 {
				uid = string(pod.UID)
				return nil
			}
		}
		return fmt.Errorf("gather has not ended well: %+v", pod.Status.ContainerStatuses)
	})
	kubelet, err := n.Folder("kubelet")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(kubelet, "pods", uid,
		"volumes/kubernetes.io~empty-dir/must-gather-output/ovs-offline/nodes.ovs-offline")
	loaded := filepath.Join(t.TempDir(), "loaded")
	if r := lab.Program.Run("-w", loaded, "load", file); r.Code != 0 {
		t.Fatal(r)
	}
	if r := lab.Program.Run("-w", loaded, "drift"); r.Code != 0 && r.Code != 3 || !strings.Contains(r.Out, "node1: ") ||
		!strings.Contains(r.Out, "node2: ") {
		t.Error(r)
	}
}
