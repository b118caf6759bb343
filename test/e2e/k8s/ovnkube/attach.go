package ovnkube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// attach gives a pod its interfaces in secondary networks, net1 and so on, as multus does it:
// it calls the network plugin with the configuration of each NetworkAttachmentDefinition. The pod
// lists them in the order of their names.
func (d *Deployment) attach(ctx context.Context, p Pod) error {
	node := slices.IndexFunc(d.Nodes, func(n *Node) bool { return n.Name == p.Node })
	if node < 0 {
		return fmt.Errorf("pod %s is on no node", p.Title())
	}
	n := d.Nodes[node]
	for i, nad := range slices.Sorted(maps.Keys(p.Secondary)) {
		namespace, name, _ := strings.Cut(nad, "/")
		text, err := d.Cluster.Client.Discovery().RESTClient().Get().AbsPath("/apis/k8s.cni.cncf.io/v1/namespaces", namespace, "network-attachment-definitions", name).DoRaw(ctx)
		if err != nil {
			return err
		}
		var definition struct{ Spec struct{ Config string } }
		if err := json.Unmarshal(text, &definition); err != nil {
			return err
		}
		argv := n.Inside("env", "CNI_COMMAND=ADD", "CNI_CONTAINERID="+p.id, "CNI_NETNS="+string(p.Network), fmt.Sprintf("CNI_IFNAME=net%d", i+1), "CNI_PATH="+n.Plugins(),
			fmt.Sprintf("CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s", p.Namespace, p.Name, p.id, p.uid),
			filepath.Join(n.Plugins(), "ovn-k8s-cni-overlay"))
		command := exec.CommandContext(ctx, argv[0], argv[1:]...)
		command.Stdin = strings.NewReader(definition.Spec.Config)
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("attaching %s to %s: %w: %s", p.Title(), nad, err, out)
		}
	}
	return nil
}
