package rules

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/workdir"
)

// bondMemberDown finds the members of bonds that carry no packets, and the bonds that carry none.
func bondMemberDown() rule.Rule {
	return rule.Rule{
		Name: "bond-member-down", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Output(workdir.RecordedBond)},
		Follows: "the bond has less bandwidth than it should, and is without a spare where one member is left",
		Sources: []string{"ovs-vswitchd(8), bond/show", "bond_print_details in ofproto/bond.c of Open vSwitch"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			text, err := n.Output(workdir.RecordedBond)
			for bond := range appctl.Bonds(text) {
				reportBond(bond, found)
			}
			return err
		},
	}
}

func reportBond(bond appctl.Bond, found func(rule.Finding)) {
	var down []string
	for _, name := range slices.Sorted(maps.Keys(bond.Members)) {
		if member := bond.Members[name]; !member.Enabled || member.Blocked {
			down = append(down, name)
		}
	}
	f := rule.Finding{Evidence: []string{"ovs-appctl bond/show: " + bond.Name},
		Next: []rule.Next{rule.Ask("timeline", "--program", "ovs-vswitchd", "--grep", "bond"), rule.OnTheNode("ovs-appctl bond/show", bond.Name)}}
	for _, name := range down {
		f.Next = append(f.Next, rule.OnTheNode("ip link show", name))
	}
	switch all := len(bond.Members); {
	case len(down) == all && all > 0:
		f.Severity, f.Follows = rule.Error, "nothing enters or leaves by this bond"
		f.What = fmt.Sprintf("no member of bond %s is enabled: %s", bond.Name, phrase.FirstNames(down))
	case len(down) > 0:
		f.What = fmt.Sprintf("%d of %s of bond %s may not carry packets: %s", len(down), phrase.Count(all, "member"), bond.Name, phrase.FirstNames(down))
	case bond.NoActive && all > 0:
		f.What = fmt.Sprintf("bond %s has no active member", bond.Name)
		f.Follows = "packets that the bond sends by its active member, as broadcasts and all of active-backup, are dropped"
		f.Severity = rule.Error
	default:
		return
	}
	found(f)
}

// lacpWithoutPartner finds the members of bonds whose partner does not answer LACP, or does not take them into its group.
func lacpWithoutPartner() rule.Rule {
	return rule.Rule{
		Name: "lacp-without-partner", Severity: rule.Warning,
		Needs:   []rule.Data{rule.Output(workdir.RecordedLACP)},
		Follows: "this member carries nothing, and the other ones carry its share",
		Sources: []string{"ovs-vswitchd(8), lacp/show", "IEEE 802.1AX, 6.4.12, receive machine"},
		Node: func(_ context.Context, n *rule.Node, found func(rule.Finding)) error {
			shown, err := n.Output(workdir.RecordedBond)
			if err != nil {
				return err
			}
			fallback := map[string]bool{}
			for bond := range appctl.Bonds(shown) {
				fallback[bond.Name] = bond.Fallback
			}
			text, err := n.Output(workdir.RecordedLACP)
			for port := range appctl.LACPs(text) {
				reportLACP(port, fallback[port.Name], found)
			}
			return err
		},
	}
}

func reportLACP(port appctl.LACP, fallback bool, found func(rule.Finding)) {
	works := func(m appctl.LACPMember) bool { return m.Status == "current" && m.Attached }
	answered := slices.ContainsFunc(slices.Collect(maps.Values(port.Members)), works)
	for _, name := range slices.Sorted(maps.Keys(port.Members)) {
		member := port.Members[name]
		if works(member) {
			continue
		}
		f := rule.Finding{Evidence: []string{"ovs-appctl lacp/show: " + port.Name},
			Next: []rule.Next{rule.OnTheNode("tcpdump -e -n ether proto 0x8809 -i", name), rule.Elsewhere("on the switch", "whether this port is in the same LACP group as the other members")}}
		switch member.Status {
		case "defaulted":
			f.What = fmt.Sprintf("the partner of member %s of bond %s does not answer LACP (defaulted)", name, port.Name)
		case "expired":
			f.What = fmt.Sprintf("the partner of member %s of bond %s has stopped answering LACP (expired)", name, port.Name)
		default:
			f.What = fmt.Sprintf("LACP does not let member %s into bond %s (detached): its partner is another system than that of the other members, or has another key", name, port.Name)
		}
		switch {
		case fallback && !answered:
			f.Follows = "the bond works as active-backup (lacp-fallback-ab)"
		case !answered:
			f.Severity, f.Follows = rule.Error, "no member of the bond has a partner: nothing enters or leaves by it"
		}
		found(f)
	}
}
