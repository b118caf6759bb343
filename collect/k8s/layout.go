package k8s

import (
	"fmt"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/workdir"
)

// podContainer selects containers: the pods that a label selects, and the name of
// the container in them.
type podContainer struct{ selector, container string }

// layout describes in which pods a platform runs OVS and OVN.
type layout struct {
	name      string // for --layout
	title     string
	namespace string // "" if the user chooses it
	openshift bool
	ovs       []podContainer // containers that run the tools for the node's OVS, the preferred one first
	nb, sb    podContainer
	perNode   bool   // each node has NB and SB of its own
	leader    string // a label of the pod that leads the cluster, with %s for nb or sb
	services  bool   // the databases have the addresses of services without their names
}

// layouts returns the known layouts. Of two with the same namespace the first that
// matches is used.
func layouts() []layout {
	return []layout{
		{
			name: "openshift", title: "OpenShift 4.14 and later", namespace: "openshift-ovn-kubernetes", openshift: true,
			ovs:     []podContainer{{"app=ovnkube-node", "ovnkube-controller"}},
			nb:      podContainer{"app=ovnkube-node", "nbdb"},
			sb:      podContainer{"app=ovnkube-node", "sbdb"},
			perNode: true,
		},
		{
			name: "openshift-central", title: "OpenShift 4.5 to 4.13", namespace: "openshift-ovn-kubernetes", openshift: true,
			ovs: []podContainer{{"app=ovs-node", "ovs-daemons"}, {"app=ovnkube-node", "ovnkube-node"}},
			nb:  podContainer{"app=ovnkube-master", "nbdb"},
			sb:  podContainer{"app=ovnkube-master", "sbdb"},
		},
		{
			name: "ovn-kubernetes", title: "ovn-kubernetes (KIND), interconnect", namespace: "ovn-kubernetes",
			ovs:     []podContainer{{"app=ovnkube-node", "ovnkube-controller"}, {"app=ovs-node", "ovs-daemons"}},
			nb:      podContainer{"app=ovnkube-node", "nb-ovsdb"},
			sb:      podContainer{"app=ovnkube-node", "sb-ovsdb"},
			perNode: true,
		},
		{
			name: "ovn-kubernetes-central", title: "ovn-kubernetes (KIND), central", namespace: "ovn-kubernetes",
			ovs: []podContainer{{"app=ovnkube-node", "ovnkube-node"}, {"app=ovs-node", "ovs-daemons"}},
			nb:  podContainer{"name=ovnkube-db", "nb-ovsdb"},
			sb:  podContainer{"name=ovnkube-db", "sb-ovsdb"},
		},
		{
			name: "rhoso", title: "OpenStack on OpenShift (RHOSO)",
			ovs: []podContainer{{"service=ovn-controller-ovs", "ovs-vswitchd"}},
			nb:  podContainer{"service=ovsdbserver-nb", "ovsdbserver-nb"},
			sb:  podContainer{"service=ovsdbserver-sb", "ovsdbserver-sb"},
		},
		{
			name: "kube-ovn", title: "kube-ovn", namespace: "kube-system",
			ovs:    []podContainer{{"app=ovs", "openvswitch"}},
			nb:     podContainer{"app=ovn-central", "ovn-central"},
			sb:     podContainer{"app=ovn-central", "ovn-central"},
			leader: "ovn-%s-leader=true", services: true,
		},
	}
}

// LayoutNames lists the values of --layout.
func LayoutNames() []string {
	var names []string
	for _, layout := range layouts() {
		names = append(names, layout.name)
	}
	return names
}

// choose returns the layouts that the options allow.
func choose(name, namespace string, openshift bool) ([]layout, error) {
	var chosen []layout
	for _, layout := range layouts() {
		if name != "" && layout.name != name || openshift && !layout.openshift {
			continue
		}
		if namespace != "" {
			layout.namespace = namespace
		}
		chosen = append(chosen, layout)
	}
	if len(chosen) == 0 && openshift && name != "" {
		return nil, fault.Usagef("layout %q is not OpenShift's, which --openshift selects", name)
	}
	if len(chosen) == 0 {
		return nil, fault.Usagef("no layout %q; there are %s", name, strings.Join(LayoutNames(), ", "))
	}
	return chosen, nil
}

func (l layout) databaseContainer(kind workdir.Kind) podContainer {
	if kind == workdir.NB {
		return l.nb
	}
	return l.sb
}

// leads reports whether a pod is labelled as leader of the database's cluster.
func (l layout) leads(kind workdir.Kind, labels map[string]string) bool {
	if l.leader == "" {
		return false
	}
	key, value, _ := strings.Cut(fmt.Sprintf(l.leader, short(kind)), "=")
	return labels[key] == value
}

// short returns the database's name in sockets and labels: nb or sb.
func short(kind workdir.Kind) string { return strings.TrimPrefix(string(kind), "ovn_") }

// socketFolders lists the folders that may hold a database's socket, after
// $OVN_RUNDIR: OVN's own folder, the folder of OVN before 20.06, and the folders of RHOSO.
func socketFolders() []string {
	return []string{"/var/run/ovn", "/var/run/openvswitch", "/etc/ovn", "/tmp"}
}
