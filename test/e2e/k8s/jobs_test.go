package k8s

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
)

// theJobs is the cluster with the controllers of Jobs, which tests share. Each test makes
// a namespace of its own.
var theJobs = sync.OnceValues(func() (*jobs, error) {
	j := &jobs{}
	var err error
	if j.Cluster, err = newCluster("jobs", cluster.Options{Jobs: true}); err != nil {
		return nil, err
	}
	if j.node, err = j.StartNode(background, "node-1"); err != nil {
		return nil, err
	}
	program, err := filepath.Abs(ovsOffline)
	if err != nil {
		return nil, err
	}
	if j.tools, err = cluster.WriteTools(background, filepath.Join(scratch(), "tools.tar"), program); err != nil {
		return nil, err
	}
	return j, j.node.Import(background, j.tools.File)
})

// jobs is a cluster that runs Jobs on one node, which has the image of the tools.
type jobs struct {
	*cluster.Cluster
	node  *cluster.Node
	tools cluster.Tools
}

// withJobs returns the cluster with the controllers of Jobs, and a new namespace there
// with the Pod Security level "restricted", which the end of the test removes.
func withJobs(t *testing.T) (j *jobs, namespace string) {
	t.Helper()
	needRig(t)
	j, err := theJobs()
	if err != nil {
		t.Fatal(err)
	}
	namespace = strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if err := j.AddNamespace(t.Context(), namespace,
		map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Client.CoreV1().Namespaces().Delete(background, namespace, metav1.DeleteOptions{}) })
	return j, namespace
}

// TestJobsRun checks what all tests of replicas in pods rely on: Pod Security refuses
// what is not restricted, a Job's pod is scheduled, runs the image and can be reached, and
// nothing is left of the Job after its deadline, and of a namespace that is deleted.
func TestJobsRun(t *testing.T) {
	t.Parallel()
	j, namespace := withJobs(t)
	job := restrictedJob(j.tools.Name)
	loose := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "loose"}, Spec: *job.Spec.Template.Spec.DeepCopy()}
	loose.Spec.SecurityContext = nil
	if _, err := j.Client.CoreV1().Pods(namespace).Create(t.Context(), &loose,
		metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a pod that is not restricted: %v", err)
	}
	if _, err := j.Client.BatchV1().Jobs(namespace).Create(t.Context(), &job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var pods []corev1.Pod
	ovs.Await(t, "the pod of the Job to run", func() bool {
		pods = j.pods(t, namespace)
		return len(pods) == 1 && pods[0].Status.Phase == corev1.PodRunning
	})
	for name, executor := range executors(t, j.Cluster) {
		var out, complaints bytes.Buffer
		err := executor(namespace, pods[0].Name, "replicas", []string{"ovs-offline", "--version"}, &out, &complaints)
		if want := finish(t, program(t, "--version")); err != nil || out.String() != want.out || complaints.Len() > 0 {
			t.Errorf("%s: %q, %q, %v", name, out.String(), complaints.String(), err)
		}
	}
	sooner := []byte(`{"spec": {"activeDeadlineSeconds": 1}}`)
	if _, err := j.Client.BatchV1().Jobs(namespace).Patch(t.Context(), job.Name, types.MergePatchType, sooner,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ovs.Await(t, "the Job and its pod to go", func() bool {
		left, err := j.Client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(left.Items) == 0 && len(j.pods(t, namespace)) == 0
	})
	if err := j.Client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	ovs.Await(t, "the namespace to go", func() bool {
		_, err := j.Client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (j *jobs) pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := j.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// restrictedJob returns a Job of one pod that waits until the Job's deadline.
func restrictedJob(image string) batchv1.Job {
	yes, no := true, false
	deadline, ttl, grace, user := int64(600), int32(0), int64(0), int64(65532)
	return batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: &deadline, TTLSecondsAfterFinished: &ttl,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
				AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user,
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{{
					Name: "replicas", Image: image, Command: []string{"cat"}, Stdin: true,
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
					}},
					SecurityContext: &corev1.SecurityContext{
						AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
						Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					},
				}},
			}},
		},
	}
}
