package k8s_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"ovs-offline/collect/k8s"
	"ovs-offline/workdir"
	"ovs-offline/workdir/services"
)

// TestServicesOfKubeOVN collects the names of services where the databases have only their
// addresses, for all nodes of a cluster. Without permission, a remark says what is missing.
func TestServicesOfKubeOVN(t *testing.T) {
	_, exec := live(t, shared)
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "front", Name: "web"},
		Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.7", "fd00:10:96::7"},
			Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80}}}}
	rule := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "slr-inner",
		Annotations: map[string]string{"ovn.kubernetes.io/switch_lb_vip": "172.30.0.100"}},
		Spec: corev1.ServiceSpec{ClusterIPs: []string{"None"},
			Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolUDP, Port: 8088}}}}
	objects := []runtime.Object{
		node("n1"), pod("kube-system", "ovs-ovn-1", "n1", "app=ovs", "openvswitch"),
		pod("kube-system", "ovn-central-1", "n1", "app=ovn-central", "ovn-central"), web, rule,
	}
	for _, refused := range []bool{false, true} {
		api := fake.NewSimpleClientset(objects...)
		if refused {
			api.PrependReactor("list", "services", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", nil)
			})
		}
		at := filepath.Join(t.TempDir(), "wd")
		r := collectOne(t, &k8s.Cluster{Name: "https://cluster.test:6443", API: objectTracker{api}, Executor: exec}, at,
			k8s.Options{Nodes: []string{"n1"}})
		wd, err := workdir.Find(at)
		if err != nil {
			t.Fatal(err)
		}
		names, err := services.Read(wd.Services())
		if err != nil {
			t.Fatal(err)
		}
		for vip, want := range map[string]string{"10.96.0.7:80": "front/web", "[fd00:10:96::7]:80": "front/web"} {
			if refused {
				want = ""
			}
			if got := names.Of("tcp", vip); got != want {
				t.Errorf("%s: %q, want %q", vip, got, want)
			}
		}
		if got := names.Of("udp", "172.30.0.100:8088"); !refused && got != "blue/slr-inner" {
			t.Errorf("a SwitchLBRule: %q", got)
		}
		said := slices.ContainsFunc(r.Collections, func(c workdir.Collection) bool {
			return slices.ContainsFunc(c.Remarks,
				func(text string) bool { return strings.Contains(text, "the services of the cluster have no names") })
		})
		if said != refused {
			t.Errorf("refused %t, and a remark says so: %t", refused, said)
		}
	}
}
