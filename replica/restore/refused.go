package restore

import (
	"context"
	"regexp"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// push sends a list of flows, and deals with those that can't be added.
func (l *loader) push(ctx context.Context, list []pending) error {
	list, err := l.rescueUnknown(ctx, list)
	if err != nil {
		return err
	}
	return pushAll(ctx, list, pusher[pending]{
		send: l.send,
		sent: l.loaded,
		refused: func(ctx context.Context, p pending, cause error, certain bool, rest []pending) ([]pending, error) {
			if err := l.rescue(ctx, p, cause, certain); err != nil || !l.unknown.learn(cause) {
				return rest, err
			}
			return l.rescueUnknown(ctx, rest)
		},
	})
}

var unknownWord = regexp.MustCompile(`^unknown (action|keyword) ([A-Za-z0-9_]+)$`)

// unknownWords are actions and fields that this ovs-ofctl does not know, with
// what it said of them. Flows of a newer OVS come by the thousand: one is tried.
type unknownWords map[[2]string]error

// learn remembers what ovs-ofctl said if it was that it knows a word not.
func (u *unknownWords) learn(err error) bool {
	_, said, ok := unparsed(err)
	if !ok {
		return false
	}
	word := unknownWord.FindStringSubmatch(said)
	if word == nil {
		return false
	}
	if *u == nil {
		*u = unknownWords{}
	}
	(*u)[[2]string{word[1], word[2]}] = err
	return true
}

// in tells what ovs-ofctl would say of a flow that has such a word where only
// names of fields, or of actions, can stand.
func (u unknownWords) in(text string) error {
	fields, actions := openflow.Words(text)
	for _, word := range fields {
		if err := u[[2]string{"keyword", word}]; err != nil {
			return err
		}
	}
	for _, word := range actions {
		if err := u[[2]string{"action", word}]; err != nil {
			return err
		}
	}
	return nil
}

// rescueUnknown deals with the flows that have words which ovs-ofctl was found
// not to know, and returns the others.
func (l *loader) rescueUnknown(ctx context.Context, list []pending) ([]pending, error) {
	if len(l.unknown) == 0 {
		return list, nil
	}
	known := make([]pending, 0, len(list))
	for _, p := range list {
		cause := l.unknown.in(p.text)
		if cause == nil {
			known = append(known, p)
			continue
		}
		if err := l.rescue(ctx, p, cause, true); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// rescue tries other ways for a flow that can't be added as it is, and puts it
// aside with the reason if they fail as well. Unless it is certain that it was
// this flow that was refused, it is tried alone first.
func (l *loader) rescue(ctx context.Context, p pending, cause error, certain bool) error {
	if err := l.readOthers(); err != nil {
		return err
	}
	_, _, unreadable := unparsed(cause)
	if !certain && !unreadable {
		err := l.send(ctx, []pending{p})
		if err == nil {
			l.loaded(p)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cause = err
	}
	for _, w := range l.otherWays(p, cause) {
		if w.text == "" || w.text == p.text && (w.version == p.version || unreadable) {
			continue
		}
		again := pending{Flow: p.Flow, text: w.text, version: w.version, mends: []string{w.how + ", since " + reason(cause)}}
		if l.send(ctx, []pending{again}) == nil {
			l.loaded(again)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	l.node.Report.Reject(l.node.item(l.bridge, workdir.Flows, p.Line, p.Text, reason(cause)))
	return nil
}

// way is another way to add a flow.
type way struct{ text, version, how string }

// otherWays are the dump's own words where others were tried, those of another
// OpenFlow version's dump, and OpenFlow 1.0, in which a switch takes actions
// that lack their prerequisites (strip_vlan without a VLAN in the match).
func (l *loader) otherWays(p pending, cause error) []way {
	own, _ := openflow.Apply(p.Text)
	other, _ := openflow.Apply(l.others[p.Key()])
	ways := []way{{own, l.version, "taken as it was dumped"}, {other, l.version, "taken from another OpenFlow version's dump"}}
	if lenient(cause) && allowed(l.bridge.Protocols, "OpenFlow10") {
		// OpenFlow 1.0 has no words for the flag that it sets on every flow.
		ways = append(ways, way{strings.Replace(own, "reset_counts,", "", 1), "OpenFlow10", "added with OpenFlow 1.0"})
	}
	return ways
}

// lenient tells whether OpenFlow 1.0 may take what was refused: not where a
// switch named another reason than a prerequisite.
func lenient(cause error) bool {
	said := reason(cause)
	return !strings.Contains(said, "the switch refuses it") || strings.Contains(said, "INCONSISTENT") || strings.Contains(said, "PREREQ")
}

// readOthers reads the flow dumps of the other OpenFlow versions, the worst
// first so that the best one's words win.
func (l *loader) readOthers() error {
	if l.others != nil {
		return nil
	}
	l.others = map[string]string{}
	all := versions()
	for i := len(all) - 1; i >= 0; i-- {
		f, ok, err := l.node.recorded(l.node.Workdir.OtherDump(l.bridge.Name, workdir.Flows, all[i]))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		for flow, problem := range openflow.Flows(f) {
			if problem == nil {
				l.others[flow.Key()] = flow.Text
			}
		}
		f.Close()
	}
	return nil
}
