package collect

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/archive"
)

// addTicket adds the outputs of commands that were pasted into a text. The host in the prompt
// before a command is the node; what has no prompt is of the host before it.
func (l *looseReader) addTicket(name string, _ identity) error {
	text, err := readTicket(l.tree.Files[name])
	if err != nil {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: %v", partName(l.source.Name, name), err))
		return nil
	}
	host := ""
	if match := supportconfigTop.FindStringSubmatch(path.Dir(name)); match != nil {
		host = cmp.Or(match[1], match[2])
	}
	for _, piece := range ticket.Split(text) {
		file, err := archive.Spool(l.ctx, l.spool, strings.NewReader(piece.Text))
		if err != nil {
			return err
		}
		if piece.Host != "" {
			host = piece.Host
		}
		l.pasted++
		id := identity{command: piece.Run.Command.Name, openflow: piece.Run.OpenFlow, bridge: piece.Run.Argument, node: host}
		if err := l.takeEach(id, file, fmt.Sprintf("%s, line %d", l.origin(name), piece.Line)); err != nil {
			return err
		}
	}
	return nil
}

func readTicket(file archive.File) (string, error) {
	if file.Size > ticket.MaxBytes {
		return "", fmt.Errorf("is longer than %d MiB, the longest text with pasted outputs that is read: give each output as a file of its own", ticket.MaxBytes>>20)
	}
	in, err := os.Open(file.Spooled)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	return string(text), err
}
