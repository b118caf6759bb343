package restore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreCFM sets the faults that connectivity checks had found: a replica's
// hear nobody. cfm/show has a line on faults only where there is one, so a
// monitor without it had none (measured, OVS 3.1).
func restoreCFM(ctx context.Context, n *Node, o *report.Outcome) error {
	told, has := sessions{states: map[string]string{}}, n.interfaceNames()
	name := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedCFM), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			if name = m[1]; has[name] {
				told.states[name] = "false"
			} else {
				told.others.add(name)
			}
			return nil
		}
		if fault, ok := strings.CutPrefix(strings.TrimSpace(line), "fault:"); ok && has[name] {
			none := slices.Contains([]string{"", "none", "false"}, strings.TrimSpace(fault))
			told.states[name] = strconv.FormatBool(!none)
		}
		return nil
	})
	if err != nil {
		return err
	}
	told.others.tell(o, workdir.RecordedCFM, "monitors of interfaces")
	return n.setSessions(ctx, "monitor", "cfm/set-fault", told.states, o)
}
