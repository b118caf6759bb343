package restore

import (
	"context"
	"strings"

	"ovs-offline/internal/workdir"
)

// restoreCFM sets the faults that connectivity checks had found.
func restoreCFM(ctx context.Context, n *Node, o *outcome) error {
	name := ""
	_, err := n.eachLine(n.Workdir.Recorded(workdir.RecordedCFM), func(line string) error {
		if m := section.FindStringSubmatch(line); m != nil {
			name = m[1]
			return nil
		}
		fault, ok := strings.CutPrefix(strings.TrimSpace(line), "fault:")
		if !ok || name == "" {
			return nil
		}
		state := "true"
		if strings.TrimSpace(fault) == "" || strings.Contains(fault, "none") || strings.TrimSpace(fault) == "false" {
			state = "false"
		}
		if _, err := n.appctl(ctx, "cfm/set-fault", name, state); err != nil {
			o.note(Failed, "monitor of %q: %v", name, err)
			return ctx.Err()
		}
		o.note(Restored, "")
		return nil
	})
	return err
}
