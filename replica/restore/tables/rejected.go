package tables

import (
	"context"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
)

// push sends a list of flows, and tries other ways to add the rejected ones.
func (l *loader) push(ctx context.Context, list []entry) error {
	list, err := l.retryUnknown(ctx, list)
	if err != nil {
		return err
	}
	return pusher{
		send: l.send, sent: l.count, spent: l.spent, giveUp: l.giveUp,
		failed: func(ctx context.Context, entry entry, cause error, rest []entry) ([]entry, error) {
			if err := l.retry(ctx, entry, cause); err != nil || !l.unknown.learn(cause) {
				return rest, err
			}
			return l.retryUnknown(ctx, rest)
		},
	}.push(ctx, list)
}

var unknownWord = lazyregexp.New(`^unknown (action|keyword) ([A-Za-z0-9_]+)$`)

// unknownWords maps an action or a field ("action"|"keyword", name) that this
// ovs-ofctl does not support to its error. A thousand flows of a newer OVS can hold the
// same one; only the first such flow is sent.
type unknownWords map[[2]string]error

// maxUnknown is how many actions and fields are remembered: all flows that are still to be sent are searched for each.
const maxUnknown = 100

// learn remembers an action or field that ovs-ofctl does not support, and reports
// whether the error was about one.
func (u *unknownWords) learn(err error) bool {
	_, message, _ := parseError(err)
	word := unknownWord.FindStringSubmatch(message)
	if word == nil || len(*u) == maxUnknown {
		return false
	}
	if *u == nil {
		*u = unknownWords{}
	}
	(*u)[[2]string{word[1], word[2]}] = err
	return true
}

// errorFor returns the error of ovs-ofctl about a flow with such a word, nil for none.
func (u unknownWords) errorFor(text string) error {
	fields, actions := openflow.Words(text)
	for word := range fields {
		if err := u[[2]string{"keyword", word}]; err != nil {
			return err
		}
	}
	for word := range actions {
		if err := u[[2]string{"action", word}]; err != nil {
			return err
		}
	}
	return nil
}

// retryUnknown retries the flows that hold unknown words and returns the others.
func (l *loader) retryUnknown(ctx context.Context, list []entry) ([]entry, error) {
	if len(l.unknown) == 0 {
		return list, nil
	}
	known := make([]entry, 0, len(list))
	for _, entry := range list {
		cause := l.unknown.errorFor(entry.text)
		if cause == nil {
			known = append(known, entry)
			continue
		}
		if err := l.retry(ctx, entry, cause); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// retry tries other ways to add a flow that was rejected, and reports it as
// rejected if they fail as well.
func (l *loader) retry(ctx context.Context, e entry, cause error) error {
	_, _, unparsed := parseError(cause)
	ways, err := l.otherWays(ctx, e, cause)
	if err != nil {
		return err
	}
	for _, way := range ways {
		if l.spent() {
			break
		}
		if way.text == "" || way.text == e.text && (way.version == e.version || unparsed) {
			continue
		}
		again := entry{line: e.line, collected: e.collected, text: way.text, version: way.version, rewrites: []string{way.how + ", since " + Reason(cause)}}
		if l.send(ctx, []entry{again}) == nil {
			l.count(again)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	l.reject(e, cause)
	return nil
}

// way is another way to add a flow.
type way struct {
	text    string // "" for none
	version openflow.Version
	how     string
}

// otherWays returns other ways to add a flow: the text of the dump, if the flow was
// sent with other actions; the text of another OpenFlow version's dump; and OpenFlow
// 1.0, in which a switch accepts actions without their prerequisites (strip_vlan
// without a VLAN in the match).
func (l *loader) otherWays(ctx context.Context, entry entry, cause error) ([]way, error) {
	other, err := l.otherText(ctx, entry)
	if err != nil {
		return nil, err
	}
	own, _ := openflow.Rewrite(entry.collected)
	ways := []way{{own, l.version, "loaded as it was dumped"}, {other, l.version, "taken from another OpenFlow version's dump"}}
	if mayLackPrerequisite(cause) && openflow.OpenFlow10.In(l.bridge.Protocols) {
		// OpenFlow 1.0 has no reset_counts: the switch sets that flag on every flow.
		ways = append(ways, way{strings.Replace(own, "reset_counts,", "", 1), openflow.OpenFlow10, "added with OpenFlow 1.0"})
	}
	return ways, nil
}

// mayLackPrerequisite reports whether a flow may have been rejected because an
// action lacks a prerequisite.
func mayLackPrerequisite(cause error) bool {
	reason := Reason(cause)
	return !strings.HasPrefix(reason, switchRefuses) || strings.Contains(reason, "INCONSISTENT") || strings.Contains(reason, "PREREQ")
}

// otherText returns the text of a flow in the best dump of another OpenFlow
// version, "" for none.
func (l *loader) otherText(ctx context.Context, entry entry) (string, error) {
	if l.others == nil {
		l.others = []*index{}
		for _, version := range openflow.Versions() {
			index, err := indexFlows(ctx, l.Workdir.OtherDump(l.bridge.Name, workdir.Flows, version.String()), openflow.Flow.Key)
			if err != nil {
				return "", err
			}
			l.others = append(l.others, index)
		}
	}
	key := openflow.Flow{Text: entry.collected}.Key()
	for _, index := range l.others {
		if flow, ok := index.find(key); ok {
			text, _ := openflow.Rewrite(flow.Text)
			return text, nil
		}
	}
	return "", nil
}

func closeAll(list []*index) {
	for _, index := range list {
		index.close()
	}
}
