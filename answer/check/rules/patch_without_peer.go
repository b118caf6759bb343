package rules

import (
	"context"
	"fmt"

	"ovs-offline/answer/rule"
	"ovs-offline/snapshot/node"
)

// patchWithoutPeer finds the patch ports whose peer does not exist, or names another port.
func patchWithoutPeer() rule.Rule {
	return rule.Rule{
		Name: "patch-without-peer", Severity: rule.Error,
		Needs:   []rule.Data{rule.OVS()},
		Follows: "the two bridges are not connected: what is sent to the patch port is dropped",
		Sources: []string{"ovs-vswitchd.conf.db(5), Interface, options:peer"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			bridges, err := n.Bridges()
			peers := map[string]string{}
			for iface := range node.Interfaces(bridges...) {
				if iface.Type == "patch" {
					peers[iface.Name] = iface.Options["peer"]
				}
			}
			for iface := range node.Interfaces(bridges...) {
				if iface.Type != "patch" {
					continue
				}
				peer := iface.Options["peer"]
				back, exists := peers[peer]
				what := ""
				switch {
				case peer == "":
					what = "names no peer"
				case !exists:
					what = fmt.Sprintf("names the peer %s, which does not exist", peer)
				case back != iface.Name:
					what = fmt.Sprintf("names the peer %s, whose own peer is %s", peer, back)
				default:
					continue
				}
				found(rule.Finding{What: fmt.Sprintf("patch port %s of bridge %s %s", iface.Name, iface.Port.Bridge.Name, what),
					Evidence: []string{"Interface " + iface.Name + " in conf.db: options:peer"},
					Next:     []rule.Next{rule.Ask("history", "conf", "--record", iface.Name), rule.OnTheNode("ovs-vsctl list Interface", iface.Name)}})
			}
			return err
		},
	}
}
