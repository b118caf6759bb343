package trace

import "fmt"

// Remarks returns sentences about packets of a capture file that have no answer.
func (c *Captured) Remarks(file string, question Between) (remarks []string) {
	if c.Unread > 0 {
		remarks = append(remarks, fmt.Sprintf("%d packets of %s can't be read", c.Unread, file))
	}
	if c.Others > 0 {
		remarks = append(remarks, fmt.Sprintf("%d packets of %s are of other senders: they count only for the connections of %s", c.Others, file, question.From))
	}
	if c.Elsewhere > 0 {
		remarks = append(remarks, fmt.Sprintf("%d packets of %s are not for %s: they are left out", c.Elsewhere, file, question.To))
	}
	if c.Cut {
		remarks = append(remarks, fmt.Sprintf("%s ends within a packet, as where tcpdump was interrupted: the answers are about the packets before it", file))
	}
	return remarks
}
