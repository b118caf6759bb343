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

	"ovs-offline/internal/fault"
	"ovs-offline/internal/kube"
	"ovs-offline/workdir"
)

// survey holds the pods of a cluster by namespace and label. Each list is queried once,
// and again after failures.
type survey struct {
	cluster *Cluster
	layouts []layout

	mu    sync.Mutex // guards lists
	lists map[podQuery][]corev1.Pod

	services func(context.Context) ([]byte, error) // lists the services of the cluster once

	forbidden []string // the namespaces whose pods the user must not list, as messages name them
}

type podQuery struct{ namespace, selector string }

// queryLayouts queries the pods of all layouts.
func queryLayouts(ctx context.Context, cluster *Cluster, layouts []layout) (*survey, error) {
	survey := &survey{cluster: cluster, layouts: layouts, lists: map[podQuery][]corev1.Pod{}, services: listServices(cluster)}
	for _, layout := range layouts {
		where := inNamespace(layout.namespace)
		for _, container := range append(slices.Clone(layout.ovs), layout.nb, layout.sb) {
			query := podQuery{layout.namespace, container.selector}
			if _, asked := survey.lists[query]; asked || slices.Contains(survey.forbidden, where) {
				continue
			}
			list, err := cluster.API.Pods(ctx, layout.namespace, container.selector)
			switch {
			case err == nil:
				survey.lists[query] = list.Items
			case apierrors.IsForbidden(err):
				survey.forbidden = append(survey.forbidden, where)
			default:
				return nil, kube.Explain(err, "listing pods in "+where)
			}
		}
	}
	return survey, nil
}

// listAgain repeats the query for the pods of containers of a layout.
func (s *survey) listAgain(ctx context.Context, layout layout, containers ...podContainer) error {
	for _, container := range containers {
		list, err := s.cluster.API.Pods(ctx, layout.namespace, container.selector)
		if err != nil {
			return kube.Explain(err, "listing pods in "+inNamespace(layout.namespace))
		}
		s.mu.Lock()
		s.lists[podQuery{layout.namespace, container.selector}] = list.Items
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
func (s *survey) databasePods(layout layout, container podContainer, node string) []corev1.Pod {
	if layout.perNode {
		return s.pods(layout, container, node)
	}
	return s.pods(layout, container, "")
}

// pods returns the pods that have the container, in any state; node "" matches any.
func (s *survey) pods(layout layout, p podContainer, node string) []corev1.Pod {
	s.mu.Lock()
	list := s.lists[podQuery{layout.namespace, p.selector}]
	s.mu.Unlock()
	var found []corev1.Pod
	for _, pod := range list {
		has := slices.ContainsFunc(pod.Spec.Containers, func(container corev1.Container) bool { return container.Name == p.container })
		if has && (node == "" || pod.Spec.NodeName == node) {
			found = append(found, pod)
		}
	}
	return found
}

// nodes returns all nodes that run OVS in any layout.
func (s *survey) nodes() []string {
	var names []string
	for _, layout := range s.layouts {
		for _, container := range layout.ovs {
			for _, pod := range s.pods(layout, container, "") {
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
func (s *survey) matches(layout layout, node string) bool {
	hasOVS := slices.ContainsFunc(layout.ovs, func(container podContainer) bool { return len(s.pods(layout, container, node)) > 0 })
	if len(s.layouts) == 1 {
		return hasOVS
	}
	return hasOVS && len(s.databasePods(layout, layout.nb, node)) > 0
}

// layoutOf returns the layout of a node.
func (s *survey) layoutOf(ctx context.Context, node string) (layout, error) {
	var found []layout
	for _, l := range s.layouts {
		known := slices.ContainsFunc(found, func(layout layout) bool { return layout.namespace == l.namespace })
		if !known && s.matches(l, node) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return layout{}, s.noLayoutError(ctx, node)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, layout := range found {
		names = append(names, layout.name+" ("+layout.title+")")
	}
	return layout{}, fault.Usagef("node %s has several layouts: %s; choose with --layout, or with --openshift for OpenShift's own", node, strings.Join(names, ", "))
}

// noLayoutError returns the error for a node without a layout: the cluster has no such node,
// or the node has none of the pods that were looked for.
func (s *survey) noLayoutError(ctx context.Context, node string) error {
	if len(s.forbidden) > 0 && len(s.nodes()) == 0 {
		return fmt.Errorf("permission is missing: verb list on resource pods in %s; docs/kubernetes.md has a role with all required permissions", strings.Join(s.forbidden, ", "))
	}
	_, err := s.cluster.API.Node(ctx, node)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster has no node %q; nodes that run OVS: %s", node, cmp.Or(strings.Join(s.nodes(), ", "), "none"))
	}
	var lines []string
	for _, layout := range s.layouts {
		lines = append(lines, "  "+s.lookedFor(layout, node))
	}
	return fmt.Errorf("no known layout of OVS and OVN on node %s; looked for\n%s\nnodes that run OVS: %s", node, strings.Join(lines, "\n"), cmp.Or(strings.Join(s.nodes(), ", "), "none"))
}

// lookedFor describes a layout, and the pods that were found of it.
func (s *survey) lookedFor(layout layout, node string) string {
	var parts []string
	for _, container := range append(slices.Clone(layout.ovs), layout.nb) {
		on, at := node, "on the node"
		if container == layout.nb && !layout.perNode {
			on, at = "", "anywhere"
		}
		found := fmt.Sprintf("%d", len(s.pods(layout, container, on)))
		if where := inNamespace(layout.namespace); slices.Contains(s.forbidden, where) {
			found = "no permission to list pods in " + where
		}
		parts = append(parts, fmt.Sprintf("pods %s with container %s %s: %s", container.selector, container.container, at, found))
	}
	return fmt.Sprintf("%s (%s), in %s: %s", layout.name, layout.title, inNamespace(layout.namespace), strings.Join(parts, "; "))
}

// ovs returns the container that runs OVS's tools for a node.
func (s *survey) ovs(layout layout, node string) (Target, error) {
	var why []string
	for _, container := range layout.ovs {
		found, reasons := running(newestFirst(s.pods(layout, container, node)), container.container)
		why = append(why, reasons...)
		if i := slices.IndexFunc(found, func(target Target) bool { return target.Namespace != found[0].Namespace }); i > 0 {
			return Target{}, fault.Usagef("node %s has layout %s in namespaces %s and %s; choose with -n", node, layout.name, found[0].Namespace, found[i].Namespace)
		}
		if len(found) > 0 {
			return found[0], nil
		}
	}
	return Target{}, fmt.Errorf("node %s: no container in which OVS's tools can run: %s", node, strings.Join(why, "; "))
}

// databases returns the containers that have a database, in the namespace of the
// node's OVS: first the leader's, then the ready pods', then others.
func (s *survey) databases(layout layout, kind workdir.Kind, node, namespace string) ([]Target, error) {
	container := layout.databaseContainer(kind)
	pods := newestFirst(s.databasePods(layout, container, node))
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Namespace != namespace })
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return rank(layout, kind, b) - rank(layout, kind, a) })
	targets, why := running(pods, container.container)
	if len(targets) > 0 {
		return targets, nil
	}
	if where := inNamespace(layout.namespace); slices.Contains(s.forbidden, where) {
		why = append(why, "no permission to list pods in "+where)
	}
	if len(why) == 0 {
		why = append(why, fmt.Sprintf("there are no pods %s with container %s in namespace %s", container.selector, container.container, namespace))
	}
	return nil, errors.New(strings.Join(why, "; "))
}

func rank(layout layout, kind workdir.Kind, pod corev1.Pod) int {
	n := 0
	if layout.leads(kind, pod.Labels) {
		n += 2
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
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
	switch waiting, terminated := state.Waiting, state.Terminated; {
	case state.Running != nil:
		return ""
	case waiting != nil:
		return strings.TrimSuffix(fmt.Sprintf("%s: container %s is waiting: %s: %s", name, container, waiting.Reason, waiting.Message), ": ")
	case terminated != nil:
		return fmt.Sprintf("%s: container %s has ended: %s, exit code %d", name, container, terminated.Reason, terminated.ExitCode)
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
