package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"ovs-offline/internal/kube"
	"ovs-offline/internal/workdir"
)

// ErrUsage is wrapped by errors in the options.
var ErrUsage = errors.New("wrong usage")

// survey holds the pods of a cluster by namespace and label. Each list is queried once,
// and anew after failures.
type survey struct {
	cluster *Cluster
	layouts []layout

	mu    sync.Mutex // guards lists
	lists map[podQuery][]corev1.Pod

	forbidden []string // the namespaces whose pods the user must not list, as messages name them
}

type podQuery struct{ namespace, selector string }

// look queries the pods of all layouts.
func look(ctx context.Context, c *Cluster, layouts []layout) (*survey, error) {
	s := &survey{cluster: c, layouts: layouts, lists: map[podQuery][]corev1.Pod{}}
	for _, l := range layouts {
		where := inNamespace(l.namespace)
		for _, p := range append(slices.Clone(l.ovs), l.nb, l.sb) {
			query := podQuery{l.namespace, p.selector}
			if _, asked := s.lists[query]; asked || slices.Contains(s.forbidden, where) {
				continue
			}
			list, err := c.API.Pods(ctx, l.namespace, p.selector)
			switch {
			case err == nil:
				s.lists[query] = list.Items
			case apierrors.IsForbidden(err):
				s.forbidden = append(s.forbidden, where)
			default:
				return nil, kube.Explain(err, "listing pods in "+where)
			}
		}
	}
	return s, nil
}

// listAgain queries the pods of containers of a layout anew.
func (s *survey) listAgain(ctx context.Context, l layout, containers ...podContainer) error {
	for _, p := range containers {
		list, err := s.cluster.API.Pods(ctx, l.namespace, p.selector)
		if err != nil {
			return kube.Explain(err, "listing pods in "+inNamespace(l.namespace))
		}
		s.mu.Lock()
		s.lists[podQuery{l.namespace, p.selector}] = list.Items
		s.mu.Unlock()
	}
	return nil
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return "all namespaces (-n NAMESPACE selects one)"
	}
	return "namespace " + namespace
}

// databasePods returns the pods that have the container of a database of a node.
func (s *survey) databasePods(l layout, p podContainer, node string) []corev1.Pod {
	if l.perNode {
		return s.pods(l, p, node)
	}
	return s.pods(l, p, "")
}

// pods returns the pods that have the container, in any state; node "" matches any.
func (s *survey) pods(l layout, p podContainer, node string) []corev1.Pod {
	s.mu.Lock()
	list := s.lists[podQuery{l.namespace, p.selector}]
	s.mu.Unlock()
	var found []corev1.Pod
	for _, pod := range list {
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
	slices.Sort(names)
	return names
}

// matches reports whether a node has a layout: the pods of OVS run on it, and those
// of OVN where the layout has them. If only one layout is allowed, OVS suffices.
func (s *survey) matches(l layout, node string) bool {
	hasOVS := slices.ContainsFunc(l.ovs, func(p podContainer) bool { return len(s.pods(l, p, node)) > 0 })
	if len(s.layouts) == 1 {
		return hasOVS
	}
	return hasOVS && len(s.databasePods(l, l.nb, node)) > 0
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

// nothing returns the error for a node without a layout: the cluster has no such node,
// or the node has none of the pods that were looked for.
func (s *survey) nothing(ctx context.Context, node string) error {
	if len(s.forbidden) > 0 && len(s.nodes()) == 0 {
		return fmt.Errorf("permission is missing: verb list on resource pods in %s; docs/kubernetes.md has a role with all required permissions", strings.Join(s.forbidden, ", "))
	}
	_, err := s.cluster.API.Node(ctx, node)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster has no node %q; nodes that run OVS: %s", node, cmp.Or(strings.Join(s.nodes(), ", "), "none"))
	}
	var lines []string
	for _, l := range s.layouts {
		lines = append(lines, "  "+s.lookedFor(l, node))
	}
	return fmt.Errorf("no known layout of OVS and OVN on node %s; looked for\n%s\nnodes that run OVS: %s", node, strings.Join(lines, "\n"), cmp.Or(strings.Join(s.nodes(), ", "), "none"))
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
		if where := inNamespace(l.namespace); slices.Contains(s.forbidden, where) {
			found = "no permission to list pods in " + where
		}
		parts = append(parts, fmt.Sprintf("pods %s with container %s %s: %s", p.selector, p.container, at, found))
	}
	return fmt.Sprintf("%s (%s), in %s: %s", l.name, l.title, inNamespace(l.namespace), strings.Join(parts, "; "))
}

// ovs returns the container that runs OVS's tools for a node.
func (s *survey) ovs(l layout, node string) (Target, error) {
	var why []string
	for _, p := range l.ovs {
		found, reasons := running(newestFirst(s.pods(l, p, node)), p.container)
		why = append(why, reasons...)
		if i := slices.IndexFunc(found, func(t Target) bool { return t.Namespace != found[0].Namespace }); i > 0 {
			return Target{}, fmt.Errorf("%w: node %s has layout %s in namespaces %s and %s; choose with -n", ErrUsage, node, l.name, found[0].Namespace, found[i].Namespace)
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return Target{}, fmt.Errorf("node %s: no container in which OVS's tools can run: %s", node, strings.Join(why, "; "))
}

// databases returns the containers that have a database, in the namespace of the
// node's OVS: first the leader's, then those of ready pods, then others.
func (s *survey) databases(l layout, k workdir.Kind, node, namespace string) ([]Target, error) {
	p := l.databaseContainer(k)
	pods := newestFirst(s.databasePods(l, p, node))
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Namespace != namespace })
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return rank(l, k, b) - rank(l, k, a) })
	targets, why := running(pods, p.container)
	if len(targets) > 0 {
		return targets, nil
	}
	if where := inNamespace(l.namespace); slices.Contains(s.forbidden, where) {
		why = append(why, "no permission to list pods in "+where)
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
	return slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
}

// running returns the containers of pods that can run commands, and why others cannot.
func running(pods []corev1.Pod, container string) (targets []Target, why []string) {
	for _, pod := range pods {
		if reason := notRunning(pod, container); reason != "" {
			why = append(why, reason)
		} else {
			targets = append(targets, Target{pod.Namespace, pod.Name, container, imageOf(pod, container), statusOf(pod, container).ContainerID})
		}
	}
	return targets, why
}

// notRunning returns why no command can run in a container, "" if one can. A pod that
// is not ready is used, because its problem may be the one that the user investigates.
func notRunning(pod corev1.Pod, container string) string {
	name := "pod " + pod.Namespace + "/" + pod.Name
	state := statusOf(pod, container).State
	switch w, t := state.Waiting, state.Terminated; {
	case state.Running != nil:
		return ""
	case w != nil:
		return strings.TrimSuffix(fmt.Sprintf("%s: container %s is waiting: %s: %s", name, container, w.Reason, w.Message), ": ")
	case t != nil:
		return fmt.Sprintf("%s: container %s has ended: %s, exit code %d", name, container, t.Reason, t.ExitCode)
	}
	return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", name, pod.Status.Phase, pod.Status.Message), ": ")
}

// statusOf returns the status of a container, the zero value if it has none yet.
func statusOf(pod corev1.Pod, container string) (status corev1.ContainerStatus) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			status = c
		}
	}
	return status
}

// imageOf returns the reference of the image of a pod's container.
func imageOf(pod corev1.Pod, container string) string {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		return ""
	}
	return pod.Spec.Containers[i].Image
}
