package rules

import (
	"context"
	"fmt"
	"time"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// settleTime is how long ovn-northd and ovn-controllers may take for a change before they count as
// behind.
const settleTime = 10 * time.Second

// chassisBehind finds the chassis whose ovn-controller has not confirmed the number that ovn-northd
// wrote into the southbound database, long after it was written.
func chassisBehind() rule.Rule {
	return rule.Rule{
		Name: "chassis-behind", Severity: rule.Error,
		Needs:   []rule.Data{rule.SB(rule.All("SB_Global", "nb_cfg"), chassis(), rule.All("Chassis_Private", "name", "nb_cfg", "nb_cfg_timestamp"))},
		Follows: "the flows of that node are of an older state of the southbound database",
		Causes:  []string{"drift"},
		Sources: []string{"ovn-sb(5), SB_Global nb_cfg and Chassis_Private nb_cfg", "ovn-nb(5), NB_Global nb_cfg_timestamp"},
		Deployment: func(_ context.Context, d *rule.Deployment, found func(rule.Finding)) error {
			wanted, ok, err := configNumber(d)
			if err != nil || !ok {
				return err
			}
			chassis, err := d.Chassis()
			if err != nil {
				return err
			}
			titles := map[string]string{}
			for _, c := range chassis {
				titles[c.Name] = c.Title()
			}
			var all []confirmation
			err = d.SB.Each("Chassis_Private", func(row ovsdb.Row) {
				number, _ := row.Int("nb_cfg")
				if title := titles[row.String("name")]; title != "" {
					all = append(all, confirmation{row.String("name"), title, number, timestamp(row, "nb_cfg_timestamp")})
				}
			}, "name", "nb_cfg", "nb_cfg_timestamp")
			for _, c := range all {
				if c.isBehind(wanted, firstOf(all, wanted), d.SB.Changed) {
					found(rule.Finding{At: c.at, Nodes: []string{c.title},
						What:     fmt.Sprintf("ovn-controller of %s has confirmed change %d of %d: it is %s behind", c.title, c.number, wanted, phrase.Count(wanted-c.number, "change")),
						Evidence: []string{"Chassis_Private " + c.name + " and SB_Global in the southbound database: nb_cfg"},
						Next:     []rule.Next{rule.Ask("drift"), rule.Ask("timeline", "--program", "ovn-controller"), rule.OnTheNode("ovn-appctl -t ovn-controller connection-status")}})
				}
			}
			return err
		},
	}
}

// confirmation is the last number that a chassis has confirmed.
type confirmation struct {
	name, title string
	number      int
	at          time.Time // zero if it is not known
}

// isBehind reports whether the chassis should have confirmed the wanted number. One change may be on its
// way: another chassis has to have confirmed it long before the last moment of the database. first is
// when the first one did.
func (c confirmation) isBehind(wanted int, first, last time.Time) bool {
	switch wanted - c.number {
	case 1:
		return !first.IsZero() && last.Sub(first) >= settleTime
	default:
		return c.number < wanted && last.Sub(c.at) >= settleTime
	}
}

// firstOf returns when the first chassis confirmed a number; zero if none has.
func firstOf(all []confirmation, number int) (first time.Time) {
	for _, c := range all {
		if c.number == number && !c.at.IsZero() && (first.IsZero() || c.at.Before(first)) {
			first = c.at
		}
	}
	return first
}

// configNumber returns the number that chassis have to confirm; ok is false without a southbound
// database.
func configNumber(d *rule.Deployment) (number int, ok bool, err error) {
	if d.SB == nil {
		return 0, false, nil
	}
	err = d.SB.Each("SB_Global", func(row ovsdb.Row) { number, ok = row.Int("nb_cfg") }, "nb_cfg")
	return number, ok, err
}

// timestamp returns a column with milliseconds since 1970, zero where it is 0 or missing.
func timestamp(row ovsdb.Row, column string) time.Time {
	if at, _ := row.Int(column); at > 0 {
		return time.UnixMilli(int64(at)).UTC()
	}
	return time.Time{}
}
