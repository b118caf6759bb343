package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// cookies is what the recorded flows of nodes tell about logical flows whose UUIDs are not known: the
// cookie of a flow is the beginning of the UUID of its logical flow.
type cookies struct {
	pairs map[cookiePair]int // the number of flows that are alike but for their cookies
	err   error              // why the flows of a node could not be compared
}

// cookiePair is the cookie of a flow that was computed, and that of a recorded flow like it.
type cookiePair struct{ computed, recorded uint64 }

// giveTo gives logical flows UUIDs that begin with the cookies of their recorded flows. Several logical
// flows may be for the same packets, and only one of them has a flow: no cookie is given twice, and those
// go first of which most flows agree. It returns a remark, "" where no node has recorded flows.
func (c *cookies) giveTo(flows []ovsdb.Record) string {
	if c == nil {
		return ""
	}
	best := slices.SortedFunc(maps.Keys(c.pairs), func(a, b cookiePair) int {
		return cmp.Or(cmp.Compare(c.pairs[b], c.pairs[a]), cmp.Compare(a.computed, b.computed), cmp.Compare(a.recorded, b.recorded))
	})
	recorded, given := map[string]string{}, map[uint64]bool{}
	for _, pair := range best {
		made := fmt.Sprintf("%08x", pair.computed)
		if recorded[made] == "" && !given[pair.recorded] {
			recorded[made], given[pair.recorded] = fmt.Sprintf("%08x", pair.recorded), true
		}
	}
	found := 0
	for i, flow := range flows {
		if cookie := recorded[flow.UUID[:8]]; cookie != "" {
			flows[i].UUID = cookie + flow.UUID[8:]
			found++
		}
	}
	switch {
	case c.err != nil:
		return "recorded flows could not be compared with the logical flows, so that rules may have no names: " + c.err.Error()
	case found == 0:
		return ""
	}
	return fmt.Sprintf("%d of %d logical flows have the cookies of the recorded flows with the same match and actions", found, len(flows))
}

// pairCookies lets an ovn-controller compute the flows of the node from the southbound database at path,
// and pairs their cookies with those of the recorded flows. A node without recorded flows of OVN has
// none.
func (r *run) pairCookies(ctx context.Context, path string) (map[cookiePair]int, error) {
	conf := r.wd.SwitchDatabase()
	if conf == "" {
		return nil, nil
	}
	bridge, err := replica.IntegrationBridge(ctx, r.wd)
	if bridge == "" || err != nil {
		return nil, err
	}
	recorded, err := r.recordedFlows(ctx, bridge)
	if len(recorded) == 0 || err != nil {
		return nil, err
	}
	computed, err := r.computeFlows(ctx, conf, path)
	if err != nil {
		return nil, err
	}
	pairs := map[cookiePair]int{}
	for like, cookie := range likeFlows(strings.NewReader(computed)) {
		if other := recorded[like]; other != 0 && cookie != 0 {
			pairs[cookiePair{cookie, other}]++
		}
	}
	return pairs, nil
}

// likeFlow is a flow without its cookie, and without the numbers of groups, meters and conjunctions, which
// ovn-controller chooses.
type likeFlow struct {
	criteria openflow.Key
	actions  string
	clauses  string // of the conjunction whose conj_id the flow matches: they tell it from others
}

// likeFlows returns the cookies of the flows of a dump. It leaves out lines that are no flows.
func likeFlows(dump io.Reader) map[likeFlow]uint64 {
	found, conjunctive := map[likeFlow]uint64{}, map[likeFlow]uint32{} // the conj_id that a flow matches
	clauses := map[uint32][]string{}                                   // by the number of their conjunction
	var canonical openflow.Canonical
	withoutNumbers := func(text string) string {
		return openflow.RenameIDs(text, func(openflow.ID) string { return "" })
	}
	for flow, problem := range openflow.Flows(dump) {
		if problem != nil {
			continue // the report of the start names it
		}
		key, actions := canonical.Key(flow), canonical.Actions(flow.Actions())
		for id, dimension := range openflow.Clauses(actions) {
			clauses[id] = append(clauses[id], fmt.Sprint(dimension, key.Table, key.Priority, key.Match))
		}
		like := likeFlow{criteria: key.WithoutCookie(), actions: withoutNumbers(actions)}
		found[like] = key.Cookie
		if id := key.Number("conj_id"); id != 0 {
			conjunctive[like] = uint32(id)
		}
	}
	for like, id := range conjunctive {
		cookie := found[like]
		delete(found, like)
		slices.Sort(clauses[id])
		like.clauses = strings.Join(clauses[id], "\n")
		like.criteria.Match = withoutNumbers(like.criteria.Match)
		found[like] = cookie
	}
	return found
}

// recordedFlows returns the cookies of the recorded flows of a bridge.
func (r *run) recordedFlows(ctx context.Context, bridge string) (map[likeFlow]uint64, error) {
	dump, ok, err := workdir.OpenCollected(r.wd.DumpFile(bridge, workdir.Flows))
	if err != nil || !ok {
		return nil, err
	}
	defer dump.Close()
	return likeFlows(interrupt.Reader(ctx, dump)), ctx.Err()
}

// computeFlows returns the flows that ovn-controller makes for the node of a southbound database.
func (r *run) computeFlows(ctx context.Context, conf, path string) (text string, err error) {
	const name = "node"
	s, err := scratch.Start(ctx, scratch.Options{Dir: r.dir, Runtime: r.runtime, SB: path,
		Nodes: []scratch.Recorded{{Name: name, Conf: conf, Lists: r.wd.Recorded("")}}, AssumeSessions: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	if err := s.Wait(ctx); err != nil {
		return "", err
	}
	dump, err := s.Dump(ctx, name, openflow.OpenFlow15)
	return dump.Flows, err
}
