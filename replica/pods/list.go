package pods

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"ovs-offline/internal/kube"
)

// Listed is one start in a cluster, from any machine.
type Listed struct {
	Set       string    `json:"set"`
	Namespace string    `json:"namespace"`
	Nodes     []string  `json:"nodes"`
	Images    []string  `json:"images"`
	Pods      int       `json:"pods"`
	Ready     int       `json:"ready"` // of the pods
	Started   time.Time `json:"started"`
	Ends      time.Time `json:"ends"`
	Host      string    `json:"client_host"` // on which start ran
	Path      string    `json:"client_path"` // of the workdir, or of the folder of the set
	Version   string    `json:"version"`     // of ovs-offline
	Problem   string    `json:"problem"`     // why not all pods are ready, or why the set has not gone; "" if not known

	ending bool // it was deleted, or its time is over
}

// ErrNoSet is wrapped when a cluster has no such set.
var ErrNoSet = errors.New("no such set")

// List returns what runs in the namespace of a configuration, or in all, in the order of the
// starts. All texts in it are from the cluster.
func List(ctx context.Context, kubeconfig *kube.Config, allNamespaces bool) ([]Listed, error) {
	cluster, namespace, err := open(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	where := "namespace " + namespace
	if allNamespaces {
		namespace, where = "", "all namespaces"
	}
	jobs, err := cluster.client.Jobs(ctx, namespace, ours)
	if err != nil {
		return nil, kube.Explain(err, "listing Jobs in "+where)
	}
	list := []Listed{}
	for _, job := range jobs.Items {
		list = add(list, job)
	}
	if slices.ContainsFunc(list, func(listed Listed) bool { return listed.ending || listed.Ready < listed.Pods }) {
		pods, err := cluster.client.Pods(ctx, namespace, ours)
		if err != nil {
			return nil, kube.Explain(err, "listing pods in "+where)
		}
		for i := range list {
			list[i].Problem = problemOf(list[i], pods.Items)
		}
	}
	slices.SortStableFunc(list, func(a, b Listed) int { return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.Set, b.Set)) })
	return list, nil
}

// problemOf returns why pods of a set are not ready, or why it has not gone.
func problemOf(listed Listed, pods []corev1.Pod) string {
	var texts []string
	for _, pod := range pods {
		if pod.Labels[labelSet] != listed.Set || pod.Namespace != listed.Namespace {
			continue
		}
		switch state := stateOf(&pod); {
		case isSilent(&pod):
			texts = append(texts, fmt.Sprintf("the kubelet of node %s does not report on pod %s", pod.Spec.NodeName, pod.Name))
		case listed.ending && pod.DeletionTimestamp == nil && !hasEnded(&pod):
			texts = append(texts, fmt.Sprintf("pod %s has not ended", pod.Name))
		case state.problem != "":
			texts = append(texts, state.problem)
		}
	}
	if listed.ending {
		texts = append([]string{"it ends"}, texts...)
	}
	return strings.Join(texts, "; ")
}

// add adds a Job to the set that it is of.
func add(list []Listed, job batchv1.Job) []Listed {
	set := job.Labels[labelSet]
	i := slices.IndexFunc(list, func(listed Listed) bool { return listed.Set == set && listed.Namespace == job.Namespace })
	if i < 0 {
		i = len(list)
		list = append(list, Listed{Set: set, Namespace: job.Namespace, Started: job.CreationTimestamp.Time.UTC(),
			Host: job.Annotations[annotationHost], Path: job.Annotations[annotationPath], Version: job.Annotations[annotationVersion]})
	}
	listed := &list[i]
	var names [][]string
	_ = json.Unmarshal([]byte(job.Annotations[annotationNodes]), &names) // anybody can change it
	listed.Nodes = slices.Concat(append([][]string{listed.Nodes}, names...)...)
	if containers := job.Spec.Template.Spec.Containers; len(containers) > 0 && !slices.Contains(listed.Images, containers[0].Image) {
		listed.Images = append(listed.Images, containers[0].Image)
	}
	listed.Pods += int(value(job.Spec.Completions))
	listed.Ready += int(value(job.Status.Ready))
	listed.ending = listed.ending || job.DeletionTimestamp != nil || failure(&job) != nil
	if keep := value(job.Spec.ActiveDeadlineSeconds); keep > 0 {
		listed.Ends = job.CreationTimestamp.Time.UTC().Add(time.Duration(keep) * time.Second)
	}
	return list
}

// value returns what a pointer points to, zero for nil.
func value[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}

// Delete deletes sets in the namespace of a configuration, and waits until they are gone.
func Delete(ctx context.Context, kubeconfig *kube.Config, sets []string) error {
	cluster, namespace, err := open(ctx, kubeconfig)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if !isSet(set) {
			return fmt.Errorf("%w: %q", ErrNoSet, set)
		}
		jobs, err := cluster.client.Jobs(ctx, namespace, ours+","+setSelector(set))
		if err != nil {
			return kube.Explain(err, "listing Jobs in namespace "+namespace)
		}
		if len(jobs.Items) == 0 {
			return fmt.Errorf("%w: %s in namespace %s: \"ovs-offline list --runtime kubernetes\" lists them", ErrNoSet, set, namespace)
		}
		if err := cluster.delete(ctx, namespace, set); err != nil {
			return err
		}
	}
	return nil
}

// isSet reports whether a text can be the name of a set: it becomes part of a selector.
func isSet(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(char rune) bool { return (char < 'a' || char > 'z') && (char < '0' || char > '9') })
}

// open connects to the cluster of a configuration.
func open(ctx context.Context, kubeconfig *kube.Config) (*cluster, string, error) {
	config, err := kubeconfig.Load(ctx)
	if err != nil {
		return nil, "", err
	}
	namespace, err := kubeconfig.Namespace()
	if err != nil {
		return nil, "", err
	}
	cluster, err := newCluster(config)
	return cluster, namespace, err
}
