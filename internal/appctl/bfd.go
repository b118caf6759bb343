package appctl

import (
	"iter"
	"strings"
)

// BFDSession is a section of bfd/show (lib/bfd.c, bfd_put_details).
type BFDSession struct {
	Interface  string
	Forwarding string // "true", "false", or "" where the text does not have it
}

// BFDSessions yields the sessions of bfd/show.
func BFDSessions(text string) iter.Seq[BFDSession] {
	return each(text, func(name, body string) BFDSession {
		s := BFDSession{Interface: name}
		for line := range strings.Lines(body) {
			if label, value := field(line); label == "Forwarding" && (value == "true" || value == "false") {
				s.Forwarding = value
			}
		}
		return s
	})
}
