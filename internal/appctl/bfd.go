package appctl

import (
	"iter"
	"strings"
)

// BFDForwarding yields the interfaces of bfd/show and whether each forwards:
// "true", "false", or "" where the text does not say (lib/bfd.c, bfd_put_details).
func BFDForwarding(text string) iter.Seq2[string, string] {
	return func(yield func(name, forwarding string) bool) {
		for name, body := range sections(text) {
			forwarding := ""
			for line := range strings.Lines(body) {
				if label, value := field(line); label == "Forwarding" && (value == "true" || value == "false") {
					forwarding = value
				}
			}
			if !yield(name, forwarding) {
				return
			}
		}
	}
}
