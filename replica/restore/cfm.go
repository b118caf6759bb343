package restore

import (
	"context"
	"slices"
	"strings"

	"ovs-offline/internal/workdir"
)

// restoreCFM sets the faults that connectivity checks had found: a replica's
// hear nobody. cfm/show has a line on faults only where there is one, so a
// monitor without it had none (measured, OVS 3.1).
func restoreCFM(ctx context.Context, n *Node, o *outcome) error {
	faults := map[string]bool{}
	var names []string
	name := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedCFM), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			name = m[1]
			names = append(names, name)
			return nil
		}
		if fault, ok := strings.CutPrefix(strings.TrimSpace(line), "fault:"); ok && name != "" {
			faults[name] = !slices.Contains([]string{"", "none", "false"}, strings.TrimSpace(fault))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range names {
		state := "false"
		if faults[name] {
			state = "true"
		}
		if _, err := n.appctl(ctx, "cfm/set-fault", name, state); err != nil {
			o.note(Failed, "monitor of %q: %v", name, err)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		o.note(Restored, "")
	}
	return nil
}
