package sosgen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// OCP is a range of OpenShift versions whose must-gathers have the same files.
type OCP struct {
	Name         string
	interconnect bool // each node has its own pair of OVN databases
	flows        func(host, pod, bridge string) string
	confDB       bool
	central      func(master, db string) string // db is "nb" or "sb"
	cp           bool                           // also holds the compressed messages of `cp`
	clustered    bool
}

// OCPs returns all ranges, oldest first.
func OCPs() []OCP {
	byPod := func(host, pod, bridge string) string {
		return host + "_" + pod + "_ovs_ofctl_dump_flows_" + bridge
	}
	byHost := func(host, _, bridge string) string { return host + "_ovs_ofctl_dump_flows_" + bridge }
	byMaster := func(master, db string) string { return master + "_" + db + "db.gz" }
	return []OCP{
		{Name: "4.5", flows: byPod, central: func(_, db string) string { return "master-0_ovn" + db + "_db.db" }, cp: true, clustered: true},
		{Name: "4.6-4.7", flows: byHost, central: byMaster, clustered: true},
		{Name: "4.8-4.9", flows: byHost, central: byMaster, confDB: true, clustered: true},
		{Name: "4.10-4.13", central: func(_, db string) string { return "leader_" + db + "db.gz" }, clustered: true},
		{Name: "4.14", interconnect: true},
	}
}

// HasFlows reports whether the must-gathers hold dumps of flows.
func (o OCP) HasFlows() bool { return o.flows != nil }

// Interconnect reports whether each node has OVN databases of its own.
func (o OCP) Interconnect() bool { return o.interconnect }

const (
	gatherTop = "must-gather.local.4711/quay-io-openshift-release-dev-ocp-v4-0-art-dev-sha256-0123456789abcdef"
	namespace = "openshift-ovn-kubernetes"
)

// MustGather returns the must-gather of a cluster of the nodes. Before 4.14, the
// cluster's databases are the first node's.
func MustGather(tb testing.TB, o OCP, nodes ...*Node) Tree {
	tb.Helper()
	tree := Tree{}
	tree.putText("version", "openshift/must-gather\n%s.0\n", strings.SplitN(o.Name, "-", 2)[0])
	for i, n := range nodes {
		pod := fmt.Sprintf("ovnkube-node-%c7xk%d", 'b'+i, i)
		tree.putText("namespaces/"+namespace+"/pods/"+pod+"/"+pod+".yaml",
			"---\napiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    app: ovnkube-node\n  name: %s\n  namespace: %s\nspec:\n  nodeName: %s\n", pod, namespace, n.Host)
		o.putNode(tree, n, pod)
		tree.putMachine(n.PodLogs(pod))
		if o.interconnect {
			putZone(tb, tree, n, pod)
			putExtras(tree, n, pod)
		}
	}
	if o.interconnect {
		tree = store(store(tree, "ovnk_database_store"), "ovnk_extras_store")
	} else {
		o.putCentral(tb, tree, nodes[0])
	}
	return tree.Under(gatherTop)
}

// putNode adds the outputs of the commands that run in one node's pod.
func (o OCP) putNode(tree Tree, n *Node, pod string) {
	if o.flows != nil {
		for _, b := range []string{"br-int", "br-local", "br-ex"} {
			text, there := n.outputs["ovs-ofctl dump-flows "+b]
			if !there {
				text = fmt.Appendf(nil, "ovs-ofctl: %s is not a bridge or a socket\ncommand terminated with exit code 1\n", b)
			}
			tree.put("network_logs/"+o.flows(n.Host, strings.Replace(pod, "ovnkube-node", "ovs-node", 1), strings.ReplaceAll(b, "-", "_")), text)
		}
	}
	if o.confDB {
		tree.put("network_logs/"+pod+"_conf.db", n.Databases[OVS])
	}
}

// putZone adds the databases of an interconnect node.
func putZone(tb testing.TB, tree Tree, n *Node, pod string) {
	tb.Helper()
	for name, db := range map[string]string{NB: "nb", SB: "sb"} {
		tree.put("network_logs/ovnk_database_store/"+pod+"_"+db+"db", WithNodeName(tb, n.Databases[name], name, n.Host))
	}
}

// putExtras adds the logs of a node's pod, as the script gather_network_logs collects them.
func putExtras(tree Tree, n *Node, pod string) {
	for log, text := range n.ClientLogs {
		tree.put("network_logs/ovnk_extras_store/"+pod+"/ovnkube-controller/"+log, text)
	}
}

// store replaces a folder of network_logs with an archive of it, as the scripts of
// must-gather do last.
func store(tree Tree, name string) Tree {
	folder := "network_logs/" + name + "/"
	stored := Tree{}
	for path, f := range tree {
		if rel, below := strings.CutPrefix(path, folder); below {
			stored[name+"/"+rel] = f
		}
	}
	if len(stored) == 0 {
		return tree
	}
	tree = tree.Without(folder)
	tree.put("network_logs/"+name+".tar.gz", Gzip(stored.Tar()))
	return tree
}

// putCentral adds the databases of the cluster's masters.
func (o OCP) putCentral(tb testing.TB, tree Tree, n *Node) {
	tb.Helper()
	const master = "ovnkube-master-q2w3e"
	for name, db := range map[string]string{NB: "nb", SB: "sb"} {
		file := n.Databases[name]
		if o.clustered {
			file = Cluster(tb, file, name).Leader
		}
		path := "network_logs/" + o.central(master, db)
		if strings.HasSuffix(path, ".gz") {
			file = Gzip(file)
		}
		tree.put(path, file)
		if o.cp {
			tree.put("network_logs/master-0_"+db+"db.gz", Gzip([]byte("tar: removing leading '/' from member names\n")))
		}
	}
}

// OpenStackGather returns an openstack-must-gather: the control plane's clustered
// databases with what cluster/status printed of a server, and the nodes' sos reports, each without
// its top folder. clustered makes the clusters.
func OpenStackGather(tb testing.TB, e Era, clustered func(tb testing.TB, file []byte, database string) Members, nodes ...*Node) Tree {
	tb.Helper()
	tree := Tree{}
	for name, kind := range map[string]string{NB: "nb", SB: "sb"} {
		members := clustered(tb, nodes[0].Databases[name], name)
		tree.put("ctlplane/ovn/ovn"+kind+"_db.db", members.Follower)
		// oc rsh gives the command a terminal.
		tree.put("ctlplane/ovn/cluster-status/"+kind+"/ovsdbserver-"+kind+"-0.txt", bytes.ReplaceAll(members.Status, []byte("\n"), []byte("\r\n")))
	}
	for _, n := range nodes {
		report := n.Report(e).Without(e.central + "/") // of a compute node
		tree = tree.With(report.Under("sos-reports/_all_nodes/sosreport-" + n.Host))
	}
	return tree.Under("must-gather.local.815/quay-io-openstack-k8s-operators-openstack-must-gather-sha256-fedcba9876543210")
}
