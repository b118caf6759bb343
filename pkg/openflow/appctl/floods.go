package appctl

import (
	"iter"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// Flood is a flow of dpctl/dump-flows that matches multicast packets. Its ports are names,
// or numbers if the datapath flows were dumped without names.
type Flood struct {
	InPort string
	// Outputs are the ports to which the flow outputs, in the order of its actions, and
	// its other actions without arguments.
	Outputs []string
}

var (
	// multicast matches the destination of a datapath flow for multicast or broadcast
	// packets: the lowest bit of the address's first byte is set (IEEE 802).
	multicast = lazyregexp.New(`\beth\([^)]*dst=[0-9a-f][13579bdf]:`)
	inPort    = lazyregexp.New(`\bin_port\(([^)]+)\)`)
)

// Floods yields the flows for multicast packets.
func Floods(text string) iter.Seq[Flood] {
	return func(yield func(Flood) bool) {
		for line := range strings.Lines(text) {
			match, actions, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ", actions:")
			if !ok || !multicast.MatchString(match) {
				continue
			}
			var flood Flood
			if m := inPort.FindStringSubmatch(match); m != nil {
				flood.InPort = m[1]
			}
			for action := range openflow.Split(actions) {
				if !strings.Contains(action, "(") {
					flood.Outputs = append(flood.Outputs, action)
				}
			}
			if !yield(flood) {
				return
			}
		}
	}
}
