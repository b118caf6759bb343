package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ovs-offline/internal/workdir"
)

// ErrUsage is wrapped by errors in what was asked for.
var ErrUsage = errors.New("wrong usage")

// survey holds the pods of a cluster by namespace and label. Each list is queried once.
type survey struct {
	cluster *Cluster
	layouts []layout
	lists   map[string]podList
}

// podList is the answer to one query.
type podList struct {
	pods []corev1.Pod
	err  error // the list is forbidden
}

// look queries the pods of all layouts.
func look(ctx context.Context, c *Cluster, layouts []layout) (*survey, error) {
	s := &survey{cluster: c, layouts: layouts, lists: map[string]podList{}}
	for _, l := range layouts {
		for _, p := range append(slices.Clone(l.ovs), l.nb, l.sb) {
			if err := s.list(ctx, l.namespace, p.selector); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *survey) list(ctx context.Context, namespace, selector string) error {
	key := namespace + "\x00" + selector
	if _, asked := s.lists[key]; asked {
		return nil
	}
	list, err := s.cluster.API.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	switch {
	case apierrors.IsForbidden(err):
		s.lists[key] = podList{err: fmt.Errorf("you may not list pods in %s", inNamespace(namespace))}
		return nil
	case err != nil:
		return explain(err, "listing pods in "+inNamespace(namespace))
	}
	s.lists[key] = podList{pods: list.Items}
	return nil
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return "all namespaces (-n NAMESPACE asks one)"
	}
	return "namespace " + namespace
}

// pods returns the pods that have the container, in any state; node "" matches any.
func (s *survey) pods(l layout, p podContainer, node string) []corev1.Pod {
	var found []corev1.Pod
	for _, pod := range s.lists[l.namespace+"\x00"+p.selector].pods {
		has := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == p.container })
		if has && (node == "" || pod.Spec.NodeName == node) {
			found = append(found, pod)
		}
	}
	return found
}

// nodes returns all nodes that run OVS in any layout.
func (s *survey) nodes() []string {
	var names []string
	for _, l := range s.layouts {
		for _, p := range l.ovs {
			for _, pod := range s.pods(l, p, "") {
				if name := pod.Spec.NodeName; name != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	sort.Strings(names)
	return names
}

// matches reports whether a node has a layout: the pods of OVS run on it, and those
// of OVN where the layout has them. If only one layout is allowed, OVS suffices.
func (s *survey) matches(l layout, node string) bool {
	hasOVS := slices.ContainsFunc(l.ovs, func(p podContainer) bool { return len(s.pods(l, p, node)) > 0 })
	if len(s.layouts) == 1 {
		return hasOVS
	}
	ovnNode := ""
	if l.perNode {
		ovnNode = node
	}
	return hasOVS && len(s.pods(l, l.nb, ovnNode)) > 0
}

// layoutOf returns the layout of a node.
func (s *survey) layoutOf(ctx context.Context, node string) (layout, error) {
	var found []layout
	for _, l := range s.layouts {
		known := slices.ContainsFunc(found, func(f layout) bool { return f.namespace == l.namespace })
		if !known && s.matches(l, node) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return layout{}, s.nothing(ctx, node)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, l := range found {
		names = append(names, l.name+" ("+l.title+")")
	}
	return layout{}, fmt.Errorf("%w: node %s has several layouts: %s; choose with --layout, or with --openshift for OpenShift's own", ErrUsage, node, strings.Join(names, ", "))
}

// nothing returns why a node has no layout: the cluster has no such node, or what
// was looked for.
func (s *survey) nothing(ctx context.Context, node string) error {
	if missing := s.forbidden(); len(missing) > 0 && len(s.nodes()) == 0 {
		return fmt.Errorf("permission is missing: verb list on resource pods in %s; docs/kubernetes.md has a role with all that is needed", strings.Join(missing, ", "))
	}
	_, err := s.cluster.API.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster has no node %q; nodes that run OVS: %s", node, orNone(s.nodes()))
	}
	var lines []string
	for _, l := range s.layouts {
		lines = append(lines, "  "+s.lookedFor(l, node))
	}
	return fmt.Errorf("no known layout of OVS and OVN on node %s; looked for\n%s\nnodes that run OVS: %s", node, strings.Join(lines, "\n"), orNone(s.nodes()))
}

// forbidden returns the namespaces whose pods may not be listed.
func (s *survey) forbidden() []string {
	var missing []string
	for _, l := range s.layouts {
		where := inNamespace(l.namespace)
		if s.lists[l.namespace+"\x00"+l.ovs[0].selector].err != nil && !slices.Contains(missing, where) {
			missing = append(missing, where)
		}
	}
	return missing
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// lookedFor describes a layout, and the pods that were found of it.
func (s *survey) lookedFor(l layout, node string) string {
	var parts []string
	for _, p := range append(slices.Clone(l.ovs), l.nb) {
		on, at := node, "on the node"
		if p == l.nb && !l.perNode {
			on, at = "", "anywhere"
		}
		found := fmt.Sprintf("%d", len(s.pods(l, p, on)))
		if err := s.lists[l.namespace+"\x00"+p.selector].err; err != nil {
			found = err.Error()
		}
		parts = append(parts, fmt.Sprintf("pods %s with container %s %s: %s", p.selector, p.container, at, found))
	}
	return fmt.Sprintf("%s (%s), in %s: %s", l.name, l.title, inNamespace(l.namespace), strings.Join(parts, "; "))
}

// ovs returns the container that runs OVS's tools for a node.
func (s *survey) ovs(l layout, node string) (Target, error) {
	var why []string
	for _, p := range l.ovs {
		var found []Target
		for _, pod := range newestFirst(s.pods(l, p, node)) {
			if reason := notRunning(pod, p.container); reason != "" {
				why = append(why, reason)
				continue
			}
			found = append(found, Target{pod.Namespace, pod.Name, p.container})
		}
		if i := slices.IndexFunc(found, func(t Target) bool { return t.Namespace != found[0].Namespace }); i > 0 {
			return Target{}, fmt.Errorf("%w: node %s has layout %s in namespaces %s and %s; choose with -n", ErrUsage, node, l.name, found[0].Namespace, found[i].Namespace)
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return Target{}, fmt.Errorf("node %s: no container to ask OVS in: %s", node, strings.Join(why, "; "))
}

// databases returns the containers that have a database, in the namespace of the
// node's OVS: first the leader's, then those of ready pods, then others.
func (s *survey) databases(l layout, k workdir.Kind, node, namespace string) ([]Target, error) {
	p := l.databaseContainer(k)
	on := ""
	if l.perNode {
		on = node
	}
	pods := newestFirst(s.pods(l, p, on))
	sort.SliceStable(pods, func(i, j int) bool { return rank(l, k, pods[i]) > rank(l, k, pods[j]) })
	var targets []Target
	var why []string
	for _, pod := range pods {
		if pod.Namespace != namespace {
			continue
		}
		if reason := notRunning(pod, p.container); reason != "" {
			why = append(why, reason)
			continue
		}
		targets = append(targets, Target{pod.Namespace, pod.Name, p.container})
	}
	if len(targets) > 0 {
		return targets, nil
	}
	if err := s.lists[l.namespace+"\x00"+p.selector].err; err != nil {
		why = append(why, err.Error())
	}
	if len(why) == 0 {
		why = append(why, fmt.Sprintf("there are no pods %s with container %s in namespace %s", p.selector, p.container, namespace))
	}
	return nil, errors.New(strings.Join(why, "; "))
}

func rank(l layout, k workdir.Kind, pod corev1.Pod) int {
	n := 0
	if l.leads(k, pod.Labels) {
		n += 2
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			n++
		}
	}
	return n
}

// newestFirst sorts pods: an old one may still be terminating.
func newestFirst(pods []corev1.Pod) []corev1.Pod {
	sorted := slices.Clone(pods)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[j].CreationTimestamp.Before(&sorted[i].CreationTimestamp) })
	return sorted
}

// notRunning returns why no command can run in a container, "" if one can. A pod
// that is not ready is used: its fault may be what the user looks for.
func notRunning(pod corev1.Pod, container string) string {
	name := "pod " + pod.Namespace + "/" + pod.Name
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != container || c.State.Running != nil {
			continue
		}
		if w := c.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("%s: container %s is waiting: %s: %s", name, container, w.Reason, w.Message), ": ")
		}
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("%s: container %s has ended: %s, exit code %d", name, container, t.Reason, t.ExitCode)
		}
	}
	running := slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == container && c.State.Running != nil })
	if !running {
		return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, pod.Status.Phase, pod.Status.Message), ": ")
	}
	return ""
}

// selected returns the nodes that a label selector matches.
func (s *survey) selected(ctx context.Context, selector string) ([]string, error) {
	names, err := s.cluster.Nodes(ctx, selector)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no node has the labels %q", selector)
	}
	return names, nil
}
