package collect

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// readWhole returns the identity of a text by all of it: a ticket if outputs of several commands stand in it, or one with its command
// line, or lines of logs below other text.
func (l *looseReader) readWhole(name string, id identity) identity {
	content, err := readTicket(l.tree.Files[name])
	if err != nil {
		if id.kind == unknownFile {
			l.unread = append(l.unread, fmt.Sprintf("%s, which %v", path.Base(name), err))
		}
		return id // what its beginning shows can still be read
	}
	text := ticket.Read(content)
	for _, command := range text.Unread {
		l.unread = append(l.unread, "the outputs of "+command)
	}
	for _, seen := range text.Seen {
		l.seen = append(l.seen, seen.String())
	}
	known := slices.ContainsFunc(text.Pieces, func(p ticket.Piece) bool { return !p.Loose || isStatus(p) || isTrace(p) })
	if known || len(text.Pieces) > 1 || len(text.Pieces) == 1 && id.kind == unknownFile || id.kind == unknownFile && text.Log != "" {
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
	if err := l.addParts(name, pieces); err != nil {
		return err
	}
	for _, output := range withSubstitutes(latest(slices.DeleteFunc(pieces, func(p ticket.Piece) bool { return isTrace(p) || isPart(p) }), l.Earlier)) {
		partial := output.partial()
		switch {
		case partial == nil, output.Run.Command.Dump != "":
		case output.Run.Command.Name == workdir.RecordedDatapathFlows: // each of these flows counts by itself
			node := l.node(output.Host)
			node.Remarks = append(node.Remarks, fmt.Sprintf("%s, line %d: these are not all flows of the datapath: %s", l.origin(name), output.Line, partial))
			partial = nil
		default: // no answer depends on it: it is better absent than taken for whole
			l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s, line %d: the output of %s is not whole, and is not used: %s", l.origin(name), output.Line, output.Run.Command.Line, partial))
			continue
		}
		if err := l.addPiece(name, output, partial); err != nil {
			return err
		}
	}
	for _, line := range text.Unread {
		l.found.Remarks = append(l.found.Remarks, fmt.Sprintf("%s: nothing uses the output of %s", l.origin(name), line))
	}
	for _, seen := range text.Seen {
		l.found.Remarks = append(l.found.Remarks, fmt.Sprintf("%s, %v", l.origin(name), seen))
	}
	for _, unfit := range text.Unfit {
		l.found.Remarks = append(l.found.Remarks, fmt.Sprintf("%s, %s", l.origin(name), unfit))
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

// withSubstitutes takes outputs for others that have the same and more, where a node lacks these: the ports of a bridge for what
// ovs-ofctl show prints, and the connections of the kernel for those of the datapath, unless that is the one of userspace.
func withSubstitutes(list []pasted) []pasted {
	type subject struct {
		host, argument string
		command        recording.Name
	}
	has := map[subject]bool{}
	for _, p := range list {
		switch name := p.Run.Command.Name; {
		case name == workdir.RecordedSwitchShow && strings.Contains(p.Text, "datapath_type: netdev"):
			has[subject{p.Host, "", workdir.RecordedConntrack}] = true
		case p.partial() != nil:
		case name == workdir.RecordedConntrack:
			has[subject{p.Host, "", name}] = true
		case name == workdir.RecordedShow:
			has[subject{p.Host, p.Run.Argument, name}] = true
		}
	}
	for i, p := range list {
		better, ok := map[recording.Name]recording.Name{workdir.NamespaceConntrack: workdir.RecordedConntrack, workdir.RecordedPorts: workdir.RecordedShow}[p.Run.Command.Name]
		if ok && !has[subject{p.Host, p.Run.Argument, better}] {
			list[i].Run.Command, _ = recording.Find(better)
		}
	}
	return list
}

// addPiece adds an output that was pasted into a text. One that is only a part is a loss as well.
func (l *looseReader) addPiece(name string, output pasted, partial *workdir.Partial) error {
	file, err := archive.Spool(l.ctx, l.spool, strings.NewReader(output.text()))
	if err != nil {
		return err
	}
	l.pasted++
	if output.earlier > 0 {
		l.found.Repeated++
	}
	origin := fmt.Sprintf("%s, line %d", l.origin(name), output.Line)
	if partial != nil {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: the output of %s is not whole, and what is not there may decide: %s", origin, output.Run.Command.Line, partial))
	}
	if output.Empty {
		node := l.node(output.Host)
		node.Remarks = append(node.Remarks, fmt.Sprintf("%s: %s %s printed nothing: the table has no rows", origin, output.Run.Command.Line, output.Run.Argument))
	}
	if output.earlier > 0 && output.Loose {
		l.found.Lost = append(l.found.Lost, fmt.Sprintf("%s: the last of %d replies without command lines, which is used: the others may be of other bridges", origin, output.earlier+1))
	} else if output.earlier > 0 {
		node := l.node(output.Host)
		which := "last"
		if l.Earlier {
			which = "first"
		}
		node.Remarks = append(node.Remarks, fmt.Sprintf("%s: the %s of %d outputs of one command, which is used; ovs-offline compare %s compares the first with the last", origin, which, output.earlier+1, path.Base(name)))
	}
	id := identity{command: output.Run.Command.Name, openflow: output.Run.OpenFlow, bridge: output.Run.Argument, node: output.Host, partial: partial}
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
	// parts are the outputs of the command with different filters, nil if the text has fewer than two.
	parts []ticket.Piece
}

// latest returns of the outputs of one command the last whole one. If none is whole, it returns the parts that were printed: of each
// filter the last. Outputs of cluster/status stay together. With earlier, the first takes the place of the last.
func latest(pieces []ticket.Piece, earlier bool) (list []pasted) {
	if earlier {
		pieces = slices.Clone(pieces)
		slices.Reverse(pieces)
	}
	type key struct {
		host, argument string
		command        recording.Name
		openflow       openflow.Version
	}
	at := map[key]int{}
	for _, p := range pieces {
		k := key{p.Host, p.Run.Argument, p.Run.Command.Name, p.Run.OpenFlow}
		i, again := at[k]
		if !again {
			at[k] = len(list)
			list = append(list, pasted{Piece: p})
			continue
		}
		if isStatus(p) { // of several servers, or of several moments
			list[i].Text += p.Text
			continue
		}
		list[i].join(p)
	}
	return list
}

// join adds a later output of the same command.
func (p *pasted) join(later ticket.Piece) {
	whole := func(piece ticket.Piece) bool { return len(piece.Partial) == 0 && piece.Run.Filter == "" }
	of := func(part ticket.Piece) bool { return part.Run.Filter == later.Run.Filter }
	switch at := slices.IndexFunc(p.parts, of); {
	case whole(later), !whole(p.Piece) && of(p.Piece) && len(p.parts) == 0:
		*p = pasted{Piece: later, earlier: p.earlier + 1}
	case whole(p.Piece), p.Run.Command.Dump == "": // a part does not replace it
		p.earlier++
	case len(p.parts) == 0:
		p.parts = []ticket.Piece{p.Piece, later}
	case at >= 0:
		p.parts[at] = later
		p.earlier++
	default:
		p.parts = append(p.parts, later)
	}
}

// text returns the output, and of several parts each entry once: that of the last part.
func (p *pasted) text() string {
	if len(p.parts) == 0 {
		return p.Text
	}
	var lines []string
	type entry struct {
		flow openflow.Key
		line string // for another line than a flow
	}
	at := map[entry]int{}
	for _, part := range p.parts {
		for line := range strings.Lines(part.Text) {
			id := entry{line: line}
			for flow, problem := range openflow.Flows(strings.NewReader(line)) {
				if key := flow.Key(); problem == nil {
					key.Cookie, id = 0, entry{flow: key}
				}
			}
			if i, known := at[id]; known {
				lines[i] = line
				continue
			}
			at[id] = len(lines)
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// oneTable matches the filter with which dump-flows prints all flows of one table.
var oneTable = lazyregexp.New(`^table=(\d{1,3})$`)

// partial returns why the output is not all that the command prints without a filter, nil if it is.
func (p *pasted) partial() *workdir.Partial {
	parts := p.parts
	if len(parts) == 0 {
		parts = []ticket.Piece{p.Piece}
	}
	var found workdir.Partial
	for _, part := range parts {
		found.Reasons = append(found.Reasons, part.Partial...)
		if part.Run.Filter == "" {
			continue
		}
		found.Reasons = append(found.Reasons, "it is limited to: "+part.Run.Filter)
		if match := oneTable.FindStringSubmatch(part.Run.Filter); match != nil && len(part.Partial) == 0 {
			table, _ := strconv.Atoi(match[1])
			found.WholeTables = append(found.WholeTables, table)
		}
	}
	if len(found.Reasons) == 0 {
		return nil
	}
	return &found
}

// isStatus reports whether a piece is what cluster/status printed.
func isStatus(p ticket.Piece) bool {
	return p.Run.Command.Name == workdir.HostStatusNB || p.Run.Command.Name == workdir.HostStatusSB
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
	return string(decoded(text)), err
}
