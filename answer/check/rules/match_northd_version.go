package rules

import (
	"context"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// matchNorthdVersion finds the nodes whose ovn-controller stops while ovn-northd has another version.
func matchNorthdVersion() rule.Rule {
	return rule.Rule{
		Name: "match-northd-version", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Either(rule.OVS(), rule.Output(workdir.RecordedExternalIDs))},
		Follows: "during an upgrade of OVN, also a small one, this node gets no changes until both have one version",
		Sources: []string{"ovn-controller(8), external_ids:ovn-match-northd-version", "https://bugs.launchpad.net/bugs/2030944"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			settings, err := n.Settings()
			if err != nil {
				return err
			}
			if settings == nil {
				text, err := n.Output(workdir.RecordedExternalIDs)
				if err != nil {
					return err
				}
				settings = ovn.Settings(file.PrintedMap(strings.TrimSpace(text)))
			}
			if strings.EqualFold(settings.Get("ovn-match-northd-version"), "true") {
				found(rule.Finding{What: "external_ids:ovn-match-northd-version is set",
					Evidence: []string{"Open_vSwitch: external_ids"},
					Next:     []rule.Next{rule.Elsewhere("on the node, for small upgrades", "ovs-vsctl set Open_vSwitch . external_ids:ovn-match-northd-version=false")}})
			}
			return nil
		},
	}
}
