package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// openDump opens the dump of a bridge; ok is false where none was collected.
func (n *Node) openDump(b *Bridge, dump workdir.Dump) (f *os.File, ok bool, err error) {
	path := n.Workdir.DumpFile(b.Name, dump)
	f, ok, err = n.recorded(path)
	if ok {
		n.Report.Bridge(b.Name).OpenFlow[dump] = n.dumpVersion(b, dump)
	}
	return f, ok, err
}

// dumpVersion is the OpenFlow version that a dump's text is in. ovs-save's
// script tells it for dumps that were put there by hand, and its default
// otherwise.
func (n *Node) dumpVersion(b *Bridge, dump workdir.Dump) string {
	if v := n.version(n.Workdir.DumpFile(b.Name, dump)); v != "" {
		return v
	}
	if script, err := n.saveScript(); err == nil && script.openflow[b.Name] != "" {
		return script.openflow[b.Name]
	}
	return "OpenFlow14"
}

// readBackVersion is the version in which the replica says an entry with the
// same words as the collected dump; the best one it speaks where that one is
// not allowed.
func readBackVersion(b *Bridge, collected, speaks string) string {
	if collected != "" && allowed(b.Protocols, collected) {
		return collected
	}
	return speaks
}

// entries reads a dump of groups, meters or TLV mappings, and puts lines that
// are none aside.
func (n *Node) entries(b *Bridge, dump workdir.Dump, read reader) ([]openflow.Entry, error) {
	f, ok, err := n.openDump(b, dump)
	if !ok {
		return nil, err
	}
	defer f.Close()
	list, problems := read(f)
	for _, p := range problems {
		n.problem(b, dump, p)
	}
	n.Report.Counts(b.Name, dump).Collected = len(list)
	return list, nil
}

// problem records a line that could not be used, if it held data.
func (n *Node) problem(b *Bridge, dump workdir.Dump, p openflow.Problem) {
	if !p.Lost {
		return
	}
	n.Report.Counts(b.Name, dump).Collected++
	n.Report.Reject(n.item(b, dump, p.Line, p.Text, p.Reason))
}

func (n *Node) item(b *Bridge, dump workdir.Dump, line int, text, reason string) report.Item {
	return report.Item{Bridge: b.Name, Dump: dump, File: n.relative(n.Workdir.DumpFile(b.Name, dump)), Line: line, Text: text, Reason: reason}
}

// addEntries adds groups or meters by one command each, and puts aside what the
// switch refuses.
func (n *Node) addEntries(ctx context.Context, b *Bridge, dump workdir.Dump, list []openflow.Entry, add func(text string) error) error {
	for _, e := range list {
		text, mends := openflow.Apply(e.Text)
		err := add(text)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			n.Report.Reject(n.item(b, dump, e.Line, e.Text, reason(err)))
		case len(mends) > 0:
			n.Report.Rewrite(n.item(b, dump, e.Line, e.Text, strings.Join(mends, "; ")))
		}
	}
	return nil
}

// compareEntries counts the entries that the replica has as they were collected.
func (n *Node) compareEntries(b *Bridge, dump workdir.Dump, collected, have []openflow.Entry) {
	aside := n.asideLines(b, dump)
	there := map[string]bool{}
	for _, e := range have {
		there[e.Text] = true
	}
	counts := n.Report.Counts(b.Name, dump)
	const most = 5 // are named
	for _, e := range collected {
		switch {
		case there[e.Text]:
			counts.Restored++
		case !aside[e.Line]:
			if counts.Different++; counts.Different <= most {
				n.Report.Remark(b.Name + ": " + string(dump) + ": read back otherwise: " + openflow.Shorten(e.Text, 4096))
			}
		}
	}
	if counts.Different > most {
		n.Report.Remark(fmt.Sprintf("%s: %s: %d in all were read back otherwise", b.Name, dump, counts.Different))
	}
}

// asideLines are the lines of a dump that were put aside.
func (n *Node) asideLines(b *Bridge, dump workdir.Dump) map[int]bool {
	return n.Report.RejectedLines(b.Name, dump)
}

var (
	switchSaid = regexp.MustCompile(`(?:OFPT_ERROR[^:]*: |Error )([A-Z0-9]+_[A-Z0-9_]+)`)
	atLine     = regexp.MustCompile(`(?m)^ovs-ofctl: -:(\d+): (.*)`)
)

// unparsed reads which line of its input ovs-ofctl could not parse, from 0, and
// what it said of it.
func unparsed(err error) (line int, said string, ok bool) {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return 0, "", false
	}
	m := atLine.FindStringSubmatch(failed.Stderr)
	if m == nil {
		return 0, "", false
	}
	n, err := strconv.Atoi(m[1])
	return n - 1, m[2], err == nil && n > 0
}

// reason shortens what ovs-ofctl said to what is wrong with the entry.
func reason(err error) string {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return err.Error()
	}
	if _, said, ok := unparsed(err); ok {
		return "ovs-ofctl can't read it: " + said
	}
	if m := switchSaid.FindStringSubmatch(failed.Stderr); m != nil {
		return "the switch refuses it: " + m[1]
	}
	first, _, _ := strings.Cut(strings.TrimSpace(failed.Stderr), "\n")
	return strings.TrimPrefix(first, "ovs-ofctl: ")
}

// reader is one of openflow's readers of dumps.
type reader func(io.Reader) ([]openflow.Entry, []openflow.Problem)
