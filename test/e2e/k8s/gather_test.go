package k8s

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/test/daemons/ovs"
)

// ocCommand is what `oc adm must-gather` runs in the container gather, without its check
// of the disk's usage, whose programs the tests of package image run.
const ocCommand = `if command -v setsid >/dev/null 2>&1 && command -v ps >/dev/null 2>&1 && command -v pkill >/dev/null 2>&1; then
  setsid -w bash <<-MUSTGATHER_EOF
/usr/bin/gather
MUSTGATHER_EOF
else
  echo the image lacks programs; exit 1
fi; sync && echo 'Caches written to disk'`

// TestGatherInAPod runs the image as `oc adm must-gather --image` does, copies its files
// with tar as oc does, loads them, and replays the node. It does not run in parallel, so
// that it runs before the long tests: five minutes after the traces of the live node, its
// MAC bindings are aged.
func TestGatherInAPod(t *testing.T) {
	j, _ := withJobs(t)
	var p platform
	for _, p = range platforms {
		if p.layout == "openshift" {
			break
		}
	}
	b := deploy(t, j.Cluster, j.node, p)
	pod := j.gather(t)
	var log []byte
	ovs.Await(t, "gather to end", func() bool {
		found, err := j.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil || len(found.Status.ContainerStatuses) == 0 {
			return false
		}
		log, _ = j.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name,
			&corev1.PodLogOptions{Container: "gather"}).DoRaw(t.Context())
		return strings.Contains(string(log), "Caches written to disk")
	})
	if !strings.Contains(string(log), "nodes.ovs-offline") {
		t.Errorf("gather logged:\n%s", log)
	}
	var copied, complaints bytes.Buffer
	if err := executors(t, j.Cluster)["SPDY"](pod.Namespace, pod.Name, "copy",
		[]string{"tar", "-C", "/must-gather", "-c", "-f", "-", "."}, &copied, &complaints); err != nil {
		t.Fatal(err, complaints.String())
	}
	dir := t.TempDir()
	names := extract(t, &copied, dir)
	if strings.Join(names, " ") != "ovs-offline/gather.log ovs-offline/nodes.ovs-offline" &&
		strings.Join(names, " ") != "ovs-offline/nodes.ovs-offline ovs-offline/gather.log" {
		t.Errorf("files %q", names)
	}
	loaded := filepath.Join(dir, "loaded")
	if r := ovsOfflineRun(t, "-w", loaded, "load", filepath.Join(dir, "ovs-offline/nodes.ovs-offline")); r.code != 0 {
		t.Fatalf("load: exit %d\n%s\n%s\nlog:\n%s", r.code, r.out, r.complaints, log)
	}
	b.checkReplica(filepath.Join(loaded, j.node.Name))
}

// gather starts the pod of `oc adm must-gather`, in a namespace of its own whose service
// account has all rights. The rig has no network between pods: the pod has the host's.
func (j *jobs) gather(t *testing.T) *corev1.Pod {
	t.Helper()
	const namespace = "openshift-must-gather-x"
	if err := j.AddNamespace(t.Context(), namespace, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Client.CoreV1().Namespaces().Delete(background, namespace, metav1.DeleteOptions{}) })
	binding := rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: namespace}},
	}
	if _, err := j.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Client.RbacV1().ClusterRoleBindings().Delete(background, namespace, metav1.DeleteOptions{}) })
	host, port, err := net.SplitHostPort(j.Address)
	if err != nil {
		t.Fatal(err)
	}
	output := []corev1.VolumeMount{{Name: "must-gather-output", MountPath: "/must-gather"}}
	grace := int64(0)
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "must-gather"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, HostNetwork: true, TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{{Name: "must-gather-output",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			Containers: []corev1.Container{{
				Name: "gather", Image: j.tools.Name, ImagePullPolicy: corev1.PullNever, VolumeMounts: output,
				Command: []string{"/bin/bash", "-c", ocCommand},
				Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: host},
					{Name: "KUBERNETES_SERVICE_PORT", Value: port}},
			}, {
				Name: "copy", Image: j.tools.Name, ImagePullPolicy: corev1.PullNever, VolumeMounts: output,
				Command: []string{"/bin/bash", "-c", "trap : TERM INT; sleep infinity & wait"},
			}},
		},
	}
	made, err := j.Client.CoreV1().Pods(namespace).Create(t.Context(), &pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// extract writes the files of a tar below a folder, and returns their names.
func extract(t *testing.T, content io.Reader, dir string) (names []string) {
	t.Helper()
	for archive := tar.NewReader(content); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		text, err := io.ReadAll(archive)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, "./"))
	}
}
