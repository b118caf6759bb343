package pods

import (
	"fmt"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
)

// PrintList prints a line for each set of replicas.
func PrintList(p *show.Page, list []Listed) {
	if len(list) == 0 {
		p.Printf("No replica is in the cluster.\n")
		return
	}
	t := p.Table("set", "namespace", "nodes", "pods ready", "started", "ends", "from", "images", "problem")
	for _, l := range list {
		t.AppendRow([]any{terminal.Escape(l.Set), terminal.Escape(l.Namespace), terminal.Escape(phrase.FirstNames(l.Nodes)), fmt.Sprintf("%d of %d", l.Ready, l.Pods),
			show.Time(l.Started), show.Time(l.Ends), terminal.Escape(l.Host + ":" + l.Path), terminal.Escape(strings.Join(l.Images, ", ")), terminal.Escape(l.Problem)})
	}
	t.Render()
}
