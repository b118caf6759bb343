package collect

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// readWhole returns the identity of a text by all of it: a ticket if outputs of several commands stand in it, or one with its command
// line, or lines of logs below other text.
func (l *looseReader) readWhole(name string, id identity) identity {
	content, err := readTicket(l.tree.Files[name])
	if err != nil {
		return id // what its beginning shows can still be read
	}
	text := ticket.Read(content)
	l.unread = append(l.unread, text.Unread...)
	known := slices.ContainsFunc(text.Pieces, func(p ticket.Piece) bool { return !p.Loose || p.Trace != nil })
	if known || len(text.Pieces) > 1 || id.kind == unknownFile && text.Log != "" {
		l.texts[name] = text
		return identity{kind: ticketFile}
	}
	return id
}

// addTicket adds the outputs of commands and the lines of logs that were pasted into a text. The host in the prompt
// before a command is the node; what has no prompt is of the host before it.
func (l *looseReader) addTicket(name string, _ identity) error {
	text, known := l.texts[name]
	if !known {
		content, err := readTicket(l.tree.Files[name])
		if err != nil {
			l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: %v", partName(l.source.Name, name), err))
			return nil
		}
		text = ticket.Read(content)
	}
	host := ""
	if match := supportconfigTop.FindStringSubmatch(path.Dir(name)); match != nil {
		host = cmp.Or(match[1], match[2])
	}
	pieces := onNodes(text.Pieces, host)
	if err := l.addTraces(name, pieces); err != nil {
		return err
	}
	for _, output := range latest(slices.DeleteFunc(pieces, isTrace)) {
		if len(output.Partial) > 0 { // what it lacks could decide
			l.leaveOut(name, output)
			continue
		}
		if err := l.addPiece(name, output); err != nil {
			return err
		}
	}
	for _, line := range text.Unread {
		l.found.Remarks = append(l.found.Remarks, fmt.Sprintf("%s: nothing uses the output of %s", l.origin(name), line))
	}
	return l.addLines(name, host, text.Log)
}

func isTrace(p ticket.Piece) bool { return p.Trace != nil }

// addTraces adds the traces that were pasted into a text: those of one node and one tool are one output, in their order.
func (l *looseReader) addTraces(name string, pieces []ticket.Piece) error {
	type key struct {
		host    string
		command recording.Name
	}
	texts := map[key]*strings.Builder{}
	var order []key
	for _, p := range pieces {
		if !isTrace(p) {
			continue
		}
		k := key{p.Host, p.Run.Command.Name}
		if texts[k] == nil {
			texts[k], order = &strings.Builder{}, append(order, k)
		}
		p.Trace.Origin = fmt.Sprintf("%s, line %d", l.origin(name), p.Line)
		texts[k].WriteString(p.Trace.Format())
		l.traces++
	}
	for _, k := range order {
		file, err := archive.Spool(l.ctx, l.spool, strings.NewReader(texts[k].String()))
		if err != nil {
			return err
		}
		l.take(identity{command: k.command, node: k.host}, file, l.origin(name))
	}
	return nil
}

// leaveOut names an output that is not whole. One that would be restored is a loss.
func (l *looseReader) leaveOut(name string, output pasted) {
	text := fmt.Sprintf("%s, line %d: the output of %s is not whole, and is not used: %s", l.origin(name), output.Line, output.Run.Command.Line, strings.Join(output.Partial, "; "))
	if output.Run.Command.Dump != "" {
		l.found.Lost = append(l.found.Lost, text)
	} else {
		l.found.Remarks = append(l.found.Remarks, text)
	}
}

// addPiece adds an output that was pasted into a text.
func (l *looseReader) addPiece(name string, output pasted) error {
	file, err := archive.Spool(l.ctx, l.spool, strings.NewReader(output.Text))
	if err != nil {
		return err
	}
	l.pasted++
	origin := fmt.Sprintf("%s, line %d", l.origin(name), output.Line)
	if output.earlier > 0 && output.Loose {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: the last of %d replies without command lines, which is used: the others may be of other bridges", origin, output.earlier+1))
	} else if output.earlier > 0 {
		node := l.node(output.Host)
		node.Remarks = append(node.Remarks, fmt.Sprintf("%s: the last of %d outputs of one command, which is used", origin, output.earlier+1))
	}
	id := identity{command: output.Run.Command.Name, openflow: output.Run.OpenFlow, bridge: output.Run.Argument, node: output.Host}
	if output.Loose && id.bridge == "" {
		id.bridge = bridgeOf(name)
	}
	return l.takeEach(id, file, origin)
}

// addLines adds the lines of logs in a text, as one log.
func (l *looseReader) addLines(name, host, lines string) error {
	if lines == "" {
		return nil
	}
	log, ok := recording.LogOfContent(name, []byte(lines[:min(len(lines), 64<<10)]))
	if !ok {
		return nil
	}
	file, err := archive.Spool(l.ctx, l.spool, strings.NewReader(lines))
	if err != nil {
		return err
	}
	l.count[logFile]++
	node := l.node(host)
	node.HostLogs = append(node.HostLogs, recording.Log{File: file, Program: log.Program, Name: log.Name, Origin: l.origin(name)})
	return nil
}

// onNodes gives each piece the node that it is of: that of its own, or of the piece before it. Outputs of `ovs-vsctl show` of
// several databases are of several nodes, also where nothing names these.
func onNodes(pieces []ticket.Piece, host string) []ticket.Piece {
	shown := "" // the UUID of Open_vSwitch that was printed last
	for i := range pieces {
		p := &pieces[i]
		if p.Run.Command.Name == workdir.RecordedSwitchShow {
			uuid, _, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
			if shown != "" && uuid != shown && cmp.Or(p.Host, host) == host && len(uuid) == 36 {
				p.Host = "node-" + uuid[:8]
			}
			shown = uuid
		}
		host = cmp.Or(p.Host, host)
		p.Host = host
	}
	return pieces
}

// pasted is an output in a text.
type pasted struct {
	ticket.Piece
	earlier int // how often the text has the same output before
}

// latest returns of the outputs of one command the last whole one, or the last if none is whole.
func latest(pieces []ticket.Piece) (list []pasted) {
	type key struct {
		host, argument string
		command        recording.Name
		openflow       openflow.Version
	}
	at := map[key]int{}
	for _, p := range pieces {
		k := key{p.Host, p.Run.Argument, p.Run.Command.Name, p.Run.OpenFlow}
		i, again := at[k]
		switch {
		case !again:
			at[k] = len(list)
			list = append(list, pasted{Piece: p})
		case len(p.Partial) == 0 || len(list[i].Partial) > 0:
			list[i] = pasted{p, list[i].earlier + 1}
		}
	}
	return list
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
