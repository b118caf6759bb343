package flowdiff

import (
	"fmt"
	"slices"
	"strconv"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// cookies matches the cookie of a flow, and the cookies of flows that its actions learn.
var cookies = lazyregexp.New(`\bcookie=0x[0-9a-f]+,`)

// WithoutCookies returns a flow without its cookie, and without those of the flows that its actions learn.
func WithoutCookies(flow string) string { return cookies.ReplaceAllString(flow, "") }

// matchedKey and writtenKey match the registers of OVN that hold tunnel keys and conntrack zones (MFF_LOG_* in
// include/ovn/logical-fields.h) where a flow in its canonical form matches and writes them.
var (
	matchedKey = lazyregexp.New(`\b(metadata|reg14|reg15)=(0x[0-9a-f]+|[0-9]+)(,|$)`)
	writtenKey = lazyregexp.New(`\bset_field:(0x[0-9a-f]+|[0-9]+)->(metadata|reg1[1-5]|tun_id)\b`)
)

// Content describes an entry of a kind by what it does, without the numbers that OVN chooses: it names datapaths and ports
// instead of their tunnel keys, and leaves out the cookie, conntrack zones, and the ids of groups, meters and conjunctions. The
// text is the same for dumps of each version of OpenFlow.
func (n *Names) Content(kind, text string) string {
	form := openflow.Canonical{Oldest: openflow.OpenFlow10, NoBucketProperties: true}
	switch kind {
	case KindGroup:
		return KindGroup + " " + body(form.Group(text))
	case KindMeter:
		return KindMeter + " " + body(text)
	}
	parsed := openflow.Flow{Text: text}
	key := form.Key(parsed)
	datapath := key.Number("metadata")
	match := matchedKey.ReplaceAllStringFunc(key.Match, func(found string) string {
		parts := matchedKey.FindStringSubmatch(found)
		return parts[1] + "=" + n.keyName(datapath, parts[1], parts[2]) + parts[3]
	})
	actions := writtenKey.ReplaceAllStringFunc(form.Actions(parsed.Actions()), func(found string) string {
		parts := writtenKey.FindStringSubmatch(found)
		return "set_field:" + n.keyName(datapath, parts[2], parts[1]) + "->" + parts[2]
	})
	return fmt.Sprintf("table=%d, priority=%d,%s actions=%s", key.Table, key.Priority, openflow.RenameIDs(match, anyID), openflow.RenameIDs(WithoutCookies(actions), anyID))
}

// keyName returns the name of the datapath or port whose tunnel key is in a register, in a flow of the datapath with a key. It
// returns "?" for a conntrack zone and for a tunnel key in tun_id, and the number for a port that does not exist.
func (n *Names) keyName(datapath uint64, register, text string) string {
	number, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return "?"
	}
	switch register {
	case "metadata":
		return strconv.Quote(n.rules.Datapath(number).Name)
	case "reg14", "reg15":
		if port, ok := n.rules.Port(datapath, number); ok {
			return strconv.Quote(port.Name)
		}
		return text
	}
	return "?"
}

// Find returns the flow with a content, or, for a group or a meter, a flow that refers to the one with that content; "" if there is
// none. state is the one that the names were made for. Find ignores groups and meters to which no flow refers, because
// ovn-controller can remove them later than the last such flow.
func (n *Names) Find(state State, kind, content string) (flow string) {
	number, entries := groups, state.Groups
	switch kind {
	case KindFlow:
		return firstFlow(state, func(f openflow.Flow) bool { return n.Content(kind, f.Text) == content })
	case KindMeter:
		number, entries = meters, state.Meters
	}
	for _, entry := range entries {
		if n.Content(kind, entry.Text) != content {
			continue
		}
		id := openflow.ID{Kind: number, Number: entry.ID}
		if flow := firstFlow(state, func(f openflow.Flow) bool { return slices.Contains(openflow.IDs(f.Actions()), id) }); flow != "" {
			return flow
		}
	}
	return ""
}

func firstFlow(state State, is func(openflow.Flow) bool) string {
	if at := slices.IndexFunc(state.Flows, is); at >= 0 {
		return state.Flows[at].Text
	}
	return ""
}
