package rules

import (
	"fmt"
	"slices"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// northdBehind finds the logical switches, routers and ports of the northbound database that the
// southbound one lacks, and changes that the client of the northbound database numbered and that ovn-northd has not confirmed.
func northdBehind() rule.Rule {
	return rule.Rule{
		Name: "northd-behind", Severity: rule.Error,
		Needs:   []rule.Data{rule.NB(rule.All("NB_Global", "nb_cfg", "sb_cfg"), rule.All("Logical_Switch", "_uuid", "name"), routers(), switchPorts()), rule.SB(rule.All("SB_Global", "nb_cfg"), datapaths(), bindings())},
		Follows: "changes of the northbound database do not reach the nodes",
		Sources: []string{"ovn-northd(8)", "ovn-sb(5), Datapath_Binding and Port_Binding"},
		Deployment: ofNorthbound(func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error {
			if d.SB == nil {
				return nil
			}
			f := rule.Finding{At: d.SB.Changed, Evidence: []string{"NB_Global and SB_Global: nb_cfg, sb_cfg"},
				Next: []rule.Next{rule.Ask("timeline", "--program", "ovn-northd"), rule.Elsewhere("on the central node", "ovn-appctl -t ovn-northd status")}}
			missing, err := unmade(d, n)
			if err != nil {
				return err
			}
			if len(missing) > 0 {
				f.What = fmt.Sprintf("ovn-northd has not made %s of the northbound database: %s", phrase.Count(len(missing), "row"), phrase.FirstNames(missing))
				f.Evidence = []string{"Logical_Switch, Logical_Router and Logical_Switch_Port in the northbound database, and Datapath_Binding and Port_Binding in the southbound one"}
			} else if f.What, f.Severity, err = unconfirmed(d); err != nil || f.What == "" {
				return err
			}
			found(f)
			return nil
		}),
	}
}

// unmade returns the switches, routers and ports of the northbound database that the southbound one lacks, sorted; none where its copy is
// the newer one.
func unmade(d *rule.Deployment, n *ovn.Northbound) (missing []string, err error) {
	if d.NB.Changed.Sub(d.SB.Changed) < -settleTime {
		return nil, nil
	}
	datapaths, err := ovn.Datapaths(d.SB)
	if err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for _, datapath := range datapaths {
		made[datapath.Northbound] = true
	}
	bindings, err := d.Bindings()
	if err != nil {
		return nil, err
	}
	for _, s := range n.Switches {
		if !made[s.UUID] {
			missing = append(missing, "switch "+s.Name)
		}
	}
	for _, r := range n.Routers {
		if !made[r.UUID] && !r.Disabled {
			missing = append(missing, "router "+r.Name)
		}
	}
	for _, p := range n.SwitchPorts {
		if _, bound := bindings[p.Name]; !bound && !p.Disabled {
			missing = append(missing, p.Title())
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// unconfirmed says how far the southbound database is behind the northbound one by the numbers of changes in both, "" if it is not:
// ovn-northd copies nb_cfg, and confirms it in sb_cfg of NB_Global. One change may be on its way, and databases that were copied one after
// the other may differ by more.
func unconfirmed(d *rule.Deployment) (what string, severity rule.Severity, err error) {
	var wanted, confirmed int
	if err := d.NB.Each("NB_Global", func(row ovsdb.Row) {
		wanted, _ = row.Int("nb_cfg")
		confirmed, _ = row.Int("sb_cfg")
	}, "nb_cfg", "sb_cfg"); err != nil {
		return "", "", err
	}
	copied, ok, err := configNumber(d)
	switch {
	case !ok || err != nil:
	case confirmed > copied+1 && d.NB.Changed.Sub(d.SB.Changed) > settleTime:
		return fmt.Sprintf("the collected southbound database is older than the northbound one: it has change %d, and ovn-northd had confirmed change %d", copied, confirmed), rule.Warning, nil
	case wanted > copied+1 && confirmed <= copied:
		return fmt.Sprintf("ovn-northd has confirmed change %d of %d: it is %s behind", copied, wanted, phrase.Count(wanted-copied, "change")), rule.Error, nil
	}
	return "", "", err
}
