package pods

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The labels and annotations of all objects.
const (
	labelName    = "app.kubernetes.io/name"
	labelManager = "app.kubernetes.io/managed-by"
	labelSet     = "ovs-offline/set"

	annotationNodes   = "ovs-offline/nodes" // of each pod, as a list of lists in JSON
	annotationHost    = "ovs-offline/client-host"
	annotationPath    = "ovs-offline/client-path"
	annotationVersion = "ovs-offline/version"

	program = "ovs-offline" // the value of labelName and labelManager
)

// ours selects all objects of this program.
const ours = labelName + "=" + program + "," + labelManager + "=" + program

// setSelector selects the objects of one start.
func setSelector(set string) string { return labelSet + "=" + set }

func labels(set string) map[string]string {
	return map[string]string{labelName: program, labelManager: program, labelSet: set}
}

const (
	// user is the user and group that the container runs as. Any but root would do.
	user = 65532
	// milliCPUs is what a replica asks for. It is idle until it is asked.
	milliCPUs = 5
	// lost is how often a pod is replaced, for example after an eviction.
	lost = 10
	// left is how long the cluster keeps what has ended at its deadline.
	left = 10 * time.Second
)

// jobs returns a Job for each image and size class of the groups, and the groups of each
// in the order of their pods' indices.
func (s *start) jobs() (jobs []*batchv1.Job, groups [][]*group) {
	type kind struct {
		image string
		class int64
	}
	var kinds []kind
	byKind := map[kind][]*group{}
	for _, group := range s.groups {
		k := kind{group.image, group.class()}
		if byKind[k] == nil {
			kinds = append(kinds, k)
		}
		byKind[k] = append(byKind[k], group)
	}
	for i, k := range kinds {
		groups = append(groups, byKind[k])
		jobs = append(jobs, s.job(i, k.image, k.class, byKind[k]))
	}
	return jobs, groups
}

func (s *start) job(number int, image string, memory int64, groups []*group) *batchv1.Job {
	names := make([][]string, len(groups))
	most := 0
	for i, group := range groups {
		for _, node := range group.nodes {
			names[i] = append(names[i], node.Name)
		}
		most = max(most, len(group.nodes))
	}
	nodes, _ := json.Marshal(names) // it is a list of lists of texts
	host, _ := os.Hostname()        // it is for people only
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.place.Namespace, Name: fmt.Sprintf("%s-%s-%d", program, s.place.Set, number), Labels: labels(s.place.Set),
			Annotations: map[string]string{annotationNodes: string(nodes), annotationHost: host, annotationPath: s.options.Path, annotationVersion: s.clusters.version},
		},
		Spec: batchv1.JobSpec{
			Completions: new(int32(len(groups))), Parallelism: new(int32(len(groups))), CompletionMode: new(batchv1.IndexedCompletion),
			BackoffLimitPerIndex:    new(int32(lost)),
			ActiveDeadlineSeconds:   new(int64(s.options.Keep.Seconds())),
			TTLSecondsAfterFinished: new(int32(left.Seconds())),
			Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(s.place.Set)}, Spec: s.podSpec(image, memory, most)},
		},
	}
}

// podSpec returns the specification of the pods with replicas. It keeps to the profile
// "restricted" of Pod Security.
func (s *start) podSpec(image string, memory int64, replicas int) corev1.PodSpec {
	var secrets []corev1.LocalObjectReference
	for _, name := range s.options.PullSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	empty := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	}
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		TerminationGracePeriodSeconds: new(int64(2)),
		NodeSelector:                  s.options.NodeSelector, Tolerations: s.options.Tolerations, ImagePullSecrets: secrets,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(user)), RunAsGroup: new(int64(user)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: []corev1.Volume{empty("replicas"), empty("tmp")},
		Containers: []corev1.Container{{
			Name: container, Image: image, Command: []string{program, "pod", "wait"},
			Env:          []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "replicas", MountPath: volume}, {Name: "tmp", MountPath: "/tmp"}},
			Resources:    resources(memory, replicas),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}

// resources returns what a pod asks for. Its limit leaves room for traces of many steps.
func resources(memory int64, replicas int) corev1.ResourceRequirements {
	const room = 512 << 20
	quantity := func(bytes int64) resource.Quantity { return *resource.NewQuantity(bytes, resource.BinarySI) }
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: quantity(memory), corev1.ResourceCPU: *resource.NewMilliQuantity(int64(milliCPUs*replicas), resource.DecimalSI)},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: quantity(2*memory + room)},
	}
}

// policy returns the NetworkPolicy that allows the pods no connection. It ends with the
// Jobs that own it.
func (s *start) policy(jobs []*batchv1.Job) *networkingv1.NetworkPolicy {
	var owners []metav1.OwnerReference
	for _, job := range jobs {
		owners = append(owners, metav1.OwnerReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.place.Namespace, Name: program + "-" + s.place.Set, Labels: labels(s.place.Set), OwnerReferences: owners},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{labelSet: s.place.Set}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		},
	}
}

// ParseToleration reads a toleration as "kubectl taint" spells the taint: KEY=VALUE:EFFECT,
// or without VALUE or EFFECT for any.
func ParseToleration(text string) (corev1.Toleration, error) {
	taint, effect, _ := strings.Cut(text, ":")
	key, value, equal := strings.Cut(taint, "=")
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if equal {
		toleration.Operator, toleration.Value = corev1.TolerationOpEqual, value
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if key == "" || !slices.Contains(effects, toleration.Effect) {
		return toleration, fmt.Errorf("%q is not KEY=VALUE:EFFECT, KEY:EFFECT or KEY, where EFFECT is NoSchedule, PreferNoSchedule or NoExecute", text)
	}
	return toleration, nil
}
