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

// Listed is what one start has made in a cluster, from any machine.
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
	c, namespace, err := open(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	where := "namespace " + namespace
	if allNamespaces {
		namespace, where = "", "all namespaces"
	}
	jobs, err := c.client.Jobs(ctx, namespace, ours)
	if err != nil {
		return nil, kube.Explain(err, "listing Jobs in "+where)
	}
	list := []Listed{}
	for _, j := range jobs.Items {
		list = add(list, j)
	}
	if slices.ContainsFunc(list, func(l Listed) bool { return l.ending || l.Ready < l.Pods }) {
		pods, err := c.client.Pods(ctx, namespace, ours)
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
func problemOf(l Listed, pods []corev1.Pod) string {
	var texts []string
	for _, p := range pods {
		if p.Labels[labelSet] != l.Set || p.Namespace != l.Namespace {
			continue
		}
		switch state := stateOf(&p); {
		case isSilent(&p):
			texts = append(texts, fmt.Sprintf("the kubelet of node %s does not report on pod %s", p.Spec.NodeName, p.Name))
		case l.ending && p.DeletionTimestamp == nil && !hasEnded(&p):
			texts = append(texts, fmt.Sprintf("pod %s has not ended", p.Name))
		case state.problem != "":
			texts = append(texts, state.problem)
		}
	}
	if l.ending {
		texts = append([]string{"it ends"}, texts...)
	}
	return strings.Join(texts, "; ")
}

// add adds a Job to the set that it is of.
func add(list []Listed, j batchv1.Job) []Listed {
	set := j.Labels[labelSet]
	i := slices.IndexFunc(list, func(l Listed) bool { return l.Set == set && l.Namespace == j.Namespace })
	if i < 0 {
		i = len(list)
		list = append(list, Listed{Set: set, Namespace: j.Namespace, Started: j.CreationTimestamp.Time.UTC(),
			Host: j.Annotations[annotationHost], Path: j.Annotations[annotationPath], Version: j.Annotations[annotationVersion]})
	}
	l := &list[i]
	var names [][]string
	_ = json.Unmarshal([]byte(j.Annotations[annotationNodes]), &names) // anybody can change it
	l.Nodes = slices.Concat(append([][]string{l.Nodes}, names...)...)
	if containers := j.Spec.Template.Spec.Containers; len(containers) > 0 && !slices.Contains(l.Images, containers[0].Image) {
		l.Images = append(l.Images, containers[0].Image)
	}
	l.Pods += int(value(j.Spec.Completions))
	l.Ready += int(value(j.Status.Ready))
	l.ending = l.ending || j.DeletionTimestamp != nil || failure(&j) != nil
	if keep := value(j.Spec.ActiveDeadlineSeconds); keep > 0 {
		l.Ends = j.CreationTimestamp.Time.UTC().Add(time.Duration(keep) * time.Second)
	}
	return list
}

// value returns what p points to, zero for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Delete deletes sets in the namespace of a configuration, and waits until they are gone.
func Delete(ctx context.Context, kubeconfig *kube.Config, sets []string) error {
	c, namespace, err := open(ctx, kubeconfig)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if !isSet(set) {
			return fmt.Errorf("%w: %q", ErrNoSet, set)
		}
		jobs, err := c.client.Jobs(ctx, namespace, ours+","+ofSet(set))
		if err != nil {
			return kube.Explain(err, "listing Jobs in namespace "+namespace)
		}
		if len(jobs.Items) == 0 {
			return fmt.Errorf("%w: %s in namespace %s: \"ovs-offline list --runtime kubernetes\" lists them", ErrNoSet, set, namespace)
		}
		if err := c.delete(ctx, namespace, set); err != nil {
			return err
		}
	}
	return nil
}

// isSet reports whether a text can be the name of a set: it becomes part of a selector.
func isSet(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
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
	c, err := newCluster(config)
	return c, namespace, err
}
