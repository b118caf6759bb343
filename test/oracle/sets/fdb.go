package sets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// macs maps "NODE BRIDGE VLAN MAC" to the port at which a bridge has learned the MAC.
type macs map[string]string

// learned returns what the bridges of the nodes have learned.
func (w *wire) learned(ctx context.Context) (macs, error) {
	table := macs{}
	asked := map[string]bool{}
	for _, p := range w.ports {
		if asked[p.Node+" "+p.Bridge] || p.Node == fabric || p.Bridge == noBridge {
			continue
		}
		asked[p.Node+" "+p.Bridge] = true
		text, err := w.ask(ctx, p.Node, "fdb/show", p.Bridge)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) == 4 && f[0] != "port" {
				table[p.Node+" "+p.Bridge+" "+f[1]+" "+f[2]] = f[0]
			}
		}
	}
	return table, nil
}

// moved returns what was learned at the capture and is no longer so: a replica of the
// capture would forward to another port. A MAC that two ports share always moves, and
// only flows may decide where its packets go.
func (then macs) moved(now macs, shared []string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(then)) {
		if now[key] != then[key] && !slices.Contains(shared, key[strings.LastIndexByte(key, ' ')+1:]) {
			list = append(list, fmt.Sprintf("%s from port %s to %q", key, then[key], now[key]))
		}
	}
	return list
}
