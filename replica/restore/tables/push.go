package tables

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// entry is an entry of a table on its way to the switch.
type entry struct {
	line      int    // of the dump; 0 for an entry of another source
	collected string // the entry's text in the dump
	text      string // as it is sent
	version   openflow.Version
	rewrites  []string // why text differs from collected
}

// prepare returns an entry with a text that ovs-ofctl can parse.
func (t *table) prepare(line int, collected string) entry {
	entry := entry{line: line, collected: collected, version: t.version}
	entry.text, entry.rewrites = openflow.Rewrite(collected)
	return entry
}

// Bounds of the runs of ovs-ofctl for one table of a bridge. An entry that is refused takes a few, and a dump can have a million such entries.
const (
	// maxRuns is the number of runs after which no refused entry is looked for any more.
	maxRuns = 1000
	// maxRefused is the number of refused entries, of those that are added one by one, after which no other is tried.
	maxRefused = 500
	// maxUntried is how many entries are then given up together if one of them is refused.
	maxUntried = 500
)

// spent reports whether the table has taken so many runs that entries are no longer tried one by one.
func (t *table) spent() bool { return t.runs >= maxRuns }

// giveUp rejects entries that were not tried by themselves.
func (t *table) giveUp(list []entry) {
	t.untried += len(list)
	for _, entry := range list {
		t.Report.Reject(t.item(entry.line, entry.collected, "it was not tried by itself, because of the number of refused entries before it"))
	}
}

// remarkUntried says how many entries were not tried by themselves.
func (t *table) remarkUntried() {
	if t.untried > 0 {
		t.remark("%s: %d entries were not tried by themselves: ovs-ofctl had been run %d times for others", t.dump, t.untried, t.runs)
	}
}

// load adds groups, meters or TLV mappings, and rejects the entries that the
// switch refuses.
func (t *table) load(ctx context.Context, list []openflow.Entry) error {
	defer t.remarkUntried()
	refused := 0
	together := len(list)
	if !t.isList || !hasBundles(t.version) { // a list could be added in part
		together = 1
	}
	spent := func() bool { return together > 1 && t.spent() }
	push := pusher{send: t.send, spent: spent, giveUp: t.giveUp, sent: t.reportRewrite, failed: func(_ context.Context, bad entry, cause error, rest []entry) ([]entry, error) {
		refused++
		t.reject(bad, cause)
		return rest, nil
	}}
	entries := make([]entry, len(list))
	for i, entry := range list {
		entries[i] = t.prepare(entry.Line, entry.Text)
	}
	for some := range slices.Chunk(entries, max(1, together)) {
		if together == 1 && refused >= maxRefused {
			t.giveUp(some)
			continue
		}
		if err := push.push(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// reject reports an entry that cannot be added.
func (t *table) reject(entry entry, cause error) {
	reason := Reason(cause)
	if version := knownFrom(reason, entry.collected); version != "" {
		reason += " (Open vSwitch " + version + " and newer can)"
	}
	t.Report.Reject(t.item(entry.line, entry.collected, reason))
}

// reportRewrite reports an entry that was loaded with another text than the dump's.
func (t *table) reportRewrite(entry entry) {
	if len(entry.rewrites) > 0 {
		t.Report.Rewrite(t.item(entry.line, entry.collected, strings.Join(entry.rewrites, "; ")))
	}
}

// hasBundles reports whether a version can add a list as a whole or not at all:
// OpenFlow 1.3 by an extension, and later ones.
func hasBundles(version openflow.Version) bool { return version >= openflow.OpenFlow13 }

// entryReader is a reader of the text of entries, one per line.
type entryReader struct {
	list []entry
	at   int // in the first entry's text
}

func (r *entryReader) Read(data []byte) (int, error) {
	n := 0
	for n < len(data) && len(r.list) > 0 {
		text := r.list[0].text
		if r.at < len(text) {
			more := copy(data[n:], text[r.at:])
			n, r.at = n+more, r.at+more
			continue
		}
		data[n] = '\n'
		n, r.at, r.list = n+1, 0, r.list[1:]
	}
	if n == 0 && len(data) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// pusher adds lists of entries.
type pusher struct {
	send func(ctx context.Context, list []entry) error // adds all of them or, on error, none
	sent func(entry)
	// spent reports whether entries are no longer tried one by one. giveUp takes those that are not.
	spent  func() bool
	giveUp func([]entry)
	// failed handles an entry that cannot be added. It returns the part of rest
	// that is still to be sent.
	failed func(ctx context.Context, bad entry, cause error, rest []entry) ([]entry, error)
}

// push adds a list. If ovs-ofctl cannot read an entry, or the switch rejects it,
// none of the list is added: that entry is sent alone, unless ovs-ofctl could not
// read it, and the others are sent in shorter lists, which grow again. So each bad
// entry costs a few runs of ovs-ofctl, wherever it is. Once these are spent, a list with a bad entry is halved
// until it is short, and then given up.
func (p pusher) push(ctx context.Context, list []entry) error {
	for size := len(list); len(list) > 0; {
		n := min(size, len(list))
		err := p.send(ctx, list[:n])
		if err == nil {
			for _, entry := range list[:n] {
				p.sent(entry)
			}
			list = list[n:]
			size = 2 * n
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.spent() && n <= maxUntried {
			p.giveUp(list[:n])
			list, size = list[n:], maxUntried
			continue
		}
		size = max(1, n/2)
		bad, ok := rejectedEntry(err, n)
		if (!ok || p.spent()) && n > 1 {
			continue
		}
		e := list[bad]
		copy(list[1:], list[:bad]) // a list can have a million entries behind the bad one
		list = list[1:]
		if _, _, unparsed := parseError(err); n > 1 && !unparsed {
			err = p.send(ctx, []entry{e})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			p.sent(e)
		} else if list, err = p.failed(ctx, e, err, list); err != nil {
			return err
		}
	}
	return nil
}

// rejectedEntry returns the index of the entry that made a bundle of n fail: the
// line that ovs-ofctl could not parse, or the message that the switch rejected.
func rejectedEntry(err error, n int) (int, bool) {
	if bad, _, ok := parseError(err); ok && bad < n {
		return bad, true
	}
	var failed *command.Error
	if !errors.As(err, &failed) {
		return 0, n == 1
	}
	rejected, ok := messageNumber(rejectedMessage, failed.Stderr)
	if !ok {
		return 0, n == 1
	}
	// ovs-ofctl numbers the messages of a bundle consecutively, and then the messages
	// that open, close and commit it. If none of the latter was rejected, the number of
	// the first message comes from a connection that asked for no names (measured, OVS
	// 3.1). If another OVS counts differently, the only effect is that one good entry
	// is sent alone.
	first := 2
	if commit, ok := messageNumber(rejectedCommit, failed.Stderr); ok {
		first = commit - 2 - n
	}
	if bad := rejected - first; bad >= 0 && bad < n {
		return bad, true
	}
	return 0, n == 1
}

// messageNumber returns the number (xid) of a message that was rejected.
func messageNumber(pattern *lazyregexp.Regexp, stderr string) (int, bool) {
	match := pattern.FindStringSubmatch(stderr)
	if match == nil {
		return 0, false
	}
	xid, err := strconv.ParseInt(match[1], 16, 32)
	return int(xid), err == nil
}

var (
	rejectedMessage = lazyregexp.New(`(?m)^Error [A-Z0-9_]+ for: OFPT_(?:FLOW|GROUP)_MOD .*?\(xid=0x([0-9a-f]+)\)`)
	rejectedCommit  = lazyregexp.New(`(?m)^Error [A-Z0-9_]+ for: OFPT_BUNDLE_CONTROL .*?\(xid=0x([0-9a-f]+)\)`)
)
