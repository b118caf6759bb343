package rules

import (
	"context"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/ovn"
)

// historyOf returns the step that shows a northbound row, who changed it, and when.
func historyOf(uuid string) rule.Next { return rule.Ask("history", "nb", "--detail", "--record", uuid) }

// historyOfBound returns the same for a southbound row.
func historyOfBound(uuid string) rule.Next {
	return rule.Ask("history", "sb", "--detail", "--record", uuid)
}

// ofNorthbound returns the function of a rule that looks at the logical network of each deployment whose
// northbound database was collected.
func ofNorthbound(look func(d *rule.Deployment, n *ovn.Northbound, found func(rule.Finding)) error) func(context.Context, *rule.Deployment, func(rule.Finding)) error {
	return func(_ context.Context, d *rule.Deployment, found func(rule.Finding)) error {
		n, err := d.Northbound()
		if err != nil || d.NB == nil {
			return err
		}
		return look(d, n, found)
	}
}

// inNB and inSB name a place in a database as evidence.
func inNB(table, name, columns string) string {
	return table + " " + name + " in the northbound database: " + columns
}

func inSB(table, name, columns string) string {
	return table + " " + name + " in the southbound database: " + columns
}

// parseNext reads the steps of a rule in YAML.
func parseNext(texts []string) (steps []rule.Next, err error) {
	for _, text := range texts {
		step, err := rule.ParseNext(text)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return steps, nil
}
