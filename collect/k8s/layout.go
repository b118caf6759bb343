package k8s

import (
	"fmt"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
)

// place is where a thing is found: the pods that a label selects, and the
// container in them.
type place struct{ selector, container string }

// layout is how one platform puts OVS and OVN into pods.
type layout struct {
	name      string // for --layout
	title     string
	namespace string // "" where the user chooses it
	openshift bool
	ovs       []place // where OVS's tools reach a node's OVS, the best first
	nb, sb    place
	perNode   bool   // each node has NB and SB of its own
	leader    string // a label of the pod that leads the cluster, with %s for nb or sb
}

// layouts are all that are known. Of two with the same namespace the first
// that matches counts.
func layouts() []layout {
	return []layout{
		{
			name: "openshift", title: "OpenShift 4.14 and later", namespace: "openshift-ovn-kubernetes", openshift: true,
			ovs:     []place{{"app=ovnkube-node", "ovnkube-controller"}},
			nb:      place{"app=ovnkube-node", "nbdb"},
			sb:      place{"app=ovnkube-node", "sbdb"},
			perNode: true,
		},
		{
			name: "openshift-central", title: "OpenShift 4.5 to 4.13", namespace: "openshift-ovn-kubernetes", openshift: true,
			ovs: []place{{"app=ovs-node", "ovs-daemons"}, {"app=ovnkube-node", "ovnkube-node"}},
			nb:  place{"app=ovnkube-master", "nbdb"},
			sb:  place{"app=ovnkube-master", "sbdb"},
		},
		{
			name: "ovn-kubernetes", title: "ovn-kubernetes (KIND), interconnect", namespace: "ovn-kubernetes",
			ovs:     []place{{"app=ovnkube-node", "ovnkube-controller"}, {"app=ovs-node", "ovs-daemons"}},
			nb:      place{"app=ovnkube-node", "nb-ovsdb"},
			sb:      place{"app=ovnkube-node", "sb-ovsdb"},
			perNode: true,
		},
		{
			name: "ovn-kubernetes-central", title: "ovn-kubernetes (KIND), central", namespace: "ovn-kubernetes",
			ovs: []place{{"app=ovnkube-node", "ovnkube-node"}, {"app=ovs-node", "ovs-daemons"}},
			nb:  place{"name=ovnkube-db", "nb-ovsdb"},
			sb:  place{"name=ovnkube-db", "sb-ovsdb"},
		},
		{
			name: "rhoso", title: "OpenStack on OpenShift (RHOSO)",
			ovs: []place{{"service=ovn-controller-ovs", "ovs-vswitchd"}},
			nb:  place{"service=ovsdbserver-nb", "ovsdbserver-nb"},
			sb:  place{"service=ovsdbserver-sb", "ovsdbserver-sb"},
		},
		{
			name: "kube-ovn", title: "kube-ovn", namespace: "kube-system",
			ovs:    []place{{"app=ovs", "openvswitch"}},
			nb:     place{"app=ovn-central", "ovn-central"},
			sb:     place{"app=ovn-central", "ovn-central"},
			leader: "ovn-%s-leader=true",
		},
	}
}

// LayoutNames are what --layout takes.
func LayoutNames() []string {
	var names []string
	for _, l := range layouts() {
		names = append(names, l.name)
	}
	return names
}

// choose narrows the layouts to those that were asked for.
func choose(name, namespace string, openshift bool) ([]layout, error) {
	var chosen []layout
	for _, l := range layouts() {
		if name != "" && l.name != name || openshift && !l.openshift {
			continue
		}
		if namespace != "" {
			l.namespace = namespace
		}
		chosen = append(chosen, l)
	}
	if len(chosen) == 0 && openshift && name != "" {
		return nil, fmt.Errorf("%w: layout %q is not OpenShift's, which --openshift selects", ErrUsage, name)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no layout %q; there are %s", ErrUsage, name, strings.Join(LayoutNames(), ", "))
	}
	return chosen, nil
}

func (l layout) databasePlace(k workdir.Kind) place {
	if k == workdir.NB {
		return l.nb
	}
	return l.sb
}

// leads tells whether a pod's labels say that it leads the database's cluster.
func (l layout) leads(k workdir.Kind, labels map[string]string) bool {
	if l.leader == "" {
		return false
	}
	key, value, _ := strings.Cut(fmt.Sprintf(l.leader, short(k)), "=")
	return labels[key] == value
}

// short is the database's name in sockets and labels.
func short(k workdir.Kind) string { return strings.TrimPrefix(string(k), "ovn_") }

// schema is the database's own name.
func schema(k workdir.Kind) string {
	switch k {
	case workdir.OVS:
		return ovsdb.OVS
	case workdir.NB:
		return ovsdb.NB
	default:
		return ovsdb.SB
	}
}

// socketFolders are where a database's socket may be, $OVN_RUNDIR first: OVN's
// own folder, that of OVN before 20.06, and RHOSO's of several ages.
func socketFolders() []string {
	return []string{"/var/run/ovn", "/var/run/openvswitch", "/etc/ovn", "/tmp"}
}
