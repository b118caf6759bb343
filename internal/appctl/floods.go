package appctl

import (
	"iter"
	"regexp"
	"strings"

	"ovs-offline/internal/portmap"
)

// multicast matches the destination of a datapath flow for multicast or broadcast
// packets: the lowest bit of the address's first byte is set (IEEE 802).
var multicast = regexp.MustCompile(`\beth\([^)]*dst=[0-9a-f][13579bdf]:`)

// Floods yields the outputs of each flow of dpctl/dump-flows that matches multicast
// packets, in the order of its actions. An output is a port's name, or its number if
// the datapath flows were dumped without names. Other actions without arguments are
// yielded as well.
func Floods(text string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(text) {
			match, actions, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ", actions:")
			if !ok || !multicast.MatchString(match) {
				continue
			}
			var outputs []string
			for _, action := range portmap.SplitActions(actions) {
				if !strings.Contains(action, "(") {
					outputs = append(outputs, action)
				}
			}
			if !yield(outputs) {
				return
			}
		}
	}
}
