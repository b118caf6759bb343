package sosgen

import (
	"context"
	"fmt"
	"strings"
)

// OCP is a range of OpenShift versions whose must-gathers look alike.
type OCP struct {
	Name         string
	interconnect bool // one pair of OVN databases a node
	flows        func(host, pod, bridge string) string
	confDB       bool
	central      func(master, db string) string // db is "nb" or "sb"
	cp           bool                           // leaves what `cp` printed, compressed, as well
	clustered    bool
}

// OCPs are the ranges.
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

// HasFlows tells whether it holds dumps of flows.
func (o OCP) HasFlows() bool { return o.flows != nil }

// HasDatabase tells whether it holds the OVS database.
func (o OCP) HasDatabase() bool { return o.confDB }

// Interconnect tells whether each node has OVN databases of its own.
func (o OCP) Interconnect() bool { return o.interconnect }

const (
	gatherTop = "must-gather.local.4711/quay-io-openshift-release-dev-ocp-v4-0-art-dev-sha256-0123456789abcdef"
	namespace = "openshift-ovn-kubernetes"
)

// MustGather is the one of a cluster of the nodes. Databases of a cluster
// before 4.14 are the first node's.
func MustGather(ctx context.Context, o OCP, nodes ...*Node) (Tree, error) {
	tree := Tree{}
	tree.putText("version", "openshift/must-gather\n%s.0\n", strings.SplitN(o.Name, "-", 2)[0])
	for i, n := range nodes {
		pod := fmt.Sprintf("ovnkube-node-%c7xk%d", 'b'+i, i)
		tree.putText("namespaces/"+namespace+"/pods/"+pod+"/"+pod+".yaml",
			"---\napiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    app: ovnkube-node\n  name: %s\n  namespace: %s\nspec:\n  nodeName: %s\n", pod, namespace, n.Host)
		o.putNode(tree, n, pod)
		if o.interconnect {
			if err := putZone(ctx, tree, n, pod); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if o.interconnect {
		tree, err = storeDatabases(tree)
	} else {
		err = o.putCentral(ctx, tree, nodes[0])
	}
	return tree.Under(gatherTop), err
}

// putNode adds what was asked of one node's pod.
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
func putZone(ctx context.Context, tree Tree, n *Node, pod string) error {
	for name, db := range map[string]string{NB: "nb", SB: "sb"} {
		file, err := Named(ctx, n.Databases[name], name, n.Host)
		if err != nil {
			return err
		}
		tree.put("network_logs/ovnk_database_store/"+pod+"_"+db+"db", file)
	}
	return nil
}

// storeDatabases packs their folder, as the script does at its end.
func storeDatabases(tree Tree) (Tree, error) {
	const folder = "network_logs/ovnk_database_store/"
	store := Tree{}
	for name, f := range tree {
		if rel, below := strings.CutPrefix(name, folder); below {
			store["ovnk_database_store/"+rel] = f
		}
	}
	tree = tree.Without(folder)
	tree.put("network_logs/ovnk_database_store.tar.gz", Gzip(store.Tar()))
	return tree, nil
}

// putCentral adds the masters' databases.
func (o OCP) putCentral(ctx context.Context, tree Tree, n *Node) error {
	const master = "ovnkube-master-q2w3e"
	for name, db := range map[string]string{NB: "nb", SB: "sb"} {
		file := n.Databases[name]
		if o.clustered {
			members, err := Cluster(ctx, file, name)
			if err != nil {
				return err
			}
			file = members.Leader
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
	return nil
}

// OpenStackGather is an openstack-must-gather: the control plane's databases, of
// a cluster of one, and the nodes' reports, each without its top folder.
func OpenStackGather(ctx context.Context, e Era, nodes ...*Node) (Tree, error) {
	tree := Tree{}
	for name, file := range map[string]string{NB: "ovnnb_db.db", SB: "ovnsb_db.db"} {
		members, err := Cluster(ctx, nodes[0].Databases[name], name)
		if err != nil {
			return nil, err
		}
		tree.put("ctlplane/ovn/"+file, members.Leader)
	}
	for _, n := range nodes {
		report := n.Report(e).Without(e.central + "/") // of a compute node
		tree = tree.With(report.Under("sos-reports/_all_nodes/sosreport-" + n.Host))
	}
	return tree.Under("must-gather.local.815/quay-io-openstack-k8s-operators-openstack-must-gather-sha256-fedcba9876543210"), nil
}
