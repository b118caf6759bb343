package restore

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// restoreGroups adds groups, after placeholders for what they name and nobody
// collected, and reads them back.
func restoreGroups(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		list, err := n.entries(b, workdir.Groups, openflow.Groups)
		if err != nil {
			return err
		}
		version, err := n.speaks(ctx, b)
		if err != nil {
			return err
		}
		if err := n.placehold(ctx, b, version, list, o); err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		collected := n.dumpVersion(b, workdir.Groups)
		spelling, err := n.addGroups(ctx, b, version, list)
		if err != nil {
			return err
		}
		have, err := n.dumpEntries(ctx, b, readBackVersion(b, collected, version), spelling, "dump-groups", openflow.Groups)
		if err != nil {
			return err
		}
		n.compareEntries(b, workdir.Groups, list, have)
		o.Note(report.Restored, "")
		// Without -O ovs-ofctl asks for groups with Nicira's extension, which tells as much as OpenFlow 1.5.
		if collected != "OpenFlow10" && collected < "OpenFlow15" && hasSelect(list) {
			o.Note(report.Approximated, "%s: its groups were dumped in %s, which doesn't tell selection methods: the bucket that a trace takes may differ", b.Name, collected)
		}
	}
	return nil
}

func hasSelect(list []openflow.Entry) bool {
	for _, e := range list {
		if strings.Contains(e.Text, "type=select") {
			return true
		}
	}
	return false
}

// sentGroup is a group as it is sent: mended.
type sentGroup struct {
	openflow.Entry
	text  string
	mends []string
}

// addGroups adds every group that can be added, in any order, since a switch
// takes groups that name others which are not there, and puts the others aside.
// It tells how the replica has to print them.
func (n *Node) addGroups(ctx context.Context, b *Bridge, version string, list []openflow.Entry) (spelling string, err error) {
	spelling = numbered
	p := pusher[sentGroup]{sent: func(g sentGroup) {
		if len(g.mends) > 0 {
			n.Report.Rewrite(n.item(b, workdir.Groups, g.Line, g.Text, strings.Join(g.mends, "; ")))
		}
	}}
	p.send = func(ctx context.Context, list []sentGroup) error {
		as, err := n.sendGroups(ctx, b, version, list)
		if err == nil && as == named {
			spelling = named
		}
		return err
	}
	p.refused = func(ctx context.Context, bad sentGroup, cause error, certain bool, rest []sentGroup) ([]sentGroup, error) {
		if _, _, unreadable := unparsed(cause); !certain && !unreadable {
			if cause = p.send(ctx, []sentGroup{bad}); cause == nil {
				p.sent(bad)
				return rest, nil
			}
		}
		n.Report.Reject(n.item(b, workdir.Groups, bad.Line, bad.Text, reason(cause)))
		return rest, ctx.Err()
	}
	groups := make([]sentGroup, len(list))
	for i, e := range list {
		groups[i] = sentGroup{Entry: e}
		groups[i].text, groups[i].mends = openflow.Apply(e.Text)
	}
	together := len(groups)
	if !bundles(version) { // some of a list would be taken, and some not
		together = 1
	}
	for some := range slices.Chunk(groups, together) {
		if err := pushAll(ctx, some, p); err != nil {
			return "", err
		}
	}
	return spelling, nil
}

func (n *Node) sendGroups(ctx context.Context, b *Bridge, version string, list []sentGroup) (spelling string, err error) {
	var all strings.Builder
	for _, g := range list {
		all.WriteString(g.text + "\n")
	}
	return n.withNames(ctx, b, len(list), func(i int) string { return list[i].text }, func(option string) error {
		_, err := n.ofctlOptions(ctx, strings.NewReader(all.String()), append(bundle(version), option), b, "add-groups", "-")
		return err
	})
}

// bundles tells whether an OpenFlow version has all or nothing: 1.3 by
// extension, 1.4.
func bundles(version string) bool { return version >= "OpenFlow13" }

// bundle asks for all or nothing where OpenFlow has that.
func bundle(version string) []string {
	if bundles(version) {
		return []string{"-O", version, "--bundle"}
	}
	return []string{"-O", version}
}

// placehold makes what flows and groups name and no dump tells of: meters,
// groups, TLV mappings. Without them the switch refuses the flow.
func (n *Node) placehold(ctx context.Context, b *Bridge, version string, groups []openflow.Entry, o *report.Outcome) error {
	var refs openflow.References
	refs.Add("") // makes its maps
	for _, g := range groups {
		refs.Add(g.Text)
	}
	if err := n.flowReferences(b, &refs); err != nil {
		return err
	}
	before := len(n.Report.Placeholders)
	meters, err := n.known(ctx, b, version, "dump-meters", openflow.Meters)
	if err != nil {
		return err
	}
	tlvs, err := n.known(ctx, b, version, "dump-tlv-map", openflow.TLVMap)
	if err != nil {
		return err
	}
	if err := n.placeholdTLVs(ctx, b, version, absent(refs.TLVs, tlvs)); err != nil {
		return err
	}
	if err := n.placeholdMeters(ctx, b, version, n.atMost(b, "meters", absent(refs.Meters, meters))); err != nil {
		return err
	}
	if err := n.placeholdGroups(ctx, b, version, n.atMost(b, "groups", absent(refs.Groups, ids(groups)))); err != nil {
		return err
	}
	if len(n.Report.Placeholders) > before {
		o.Note(report.Approximated, "%s: flows name what was not collected: placeholders stand for it", b.Name)
	}
	return nil
}

// flowReferences adds what a bridge's flows name. A dump that is damaged or of
// an OpenFlow version without the words leaves some of it to the others.
func (n *Node) flowReferences(b *Bridge, refs *openflow.References) error {
	path := n.Workdir.DumpFile(b.Name, workdir.Flows)
	partial, err := n.addReferences(path, refs, openflow.ReferenceWords()...)
	if err != nil {
		return err
	}
	if n.dumpVersion(b, workdir.Flows) >= "OpenFlow13" && !partial {
		return nil
	}
	others := []string{n.Workdir.BridgeRecorded(b.Name, workdir.RecordedBridgeFlows)}
	for _, v := range versions() {
		others = append(others, n.Workdir.OtherDump(b.Name, workdir.Flows, v))
	}
	for _, other := range others {
		if _, err := n.addReferences(other, refs, openflow.ReferenceWords()...); err != nil {
			return err
		}
	}
	return nil
}

// addReferences adds what a dump's flows name. It tells whether ovs-ofctl gave
// the dump up, or its beginning was cut off.
func (n *Node) addReferences(path string, refs *openflow.References, words ...string) (partial bool, err error) {
	f, ok, err := n.recorded(path)
	if !ok {
		return false, err
	}
	defer f.Close()
	for flow, problem := range openflow.FlowsWith(f, append(words, "***decode error")...) {
		if problem == nil {
			refs.Add(flow.Text)
		} else {
			partial = partial || problem.Lost
		}
	}
	return partial, nil
}

// placed reports a placeholder, or that none could be made.
func (n *Node) placed(ctx context.Context, b *Bridge, dump workdir.Dump, text, why, stands string, err error) error {
	if err == nil {
		n.Report.Placeholder(report.Item{Bridge: b.Name, Dump: dump, Text: text, Reason: why + ": " + stands})
		return nil
	}
	n.Report.Remark(b.Name + ": " + why + ", and no placeholder can be made: " + reason(err))
	return ctx.Err()
}

// known are the ids that the replica has already. Meters need OpenFlow 1.3; a
// bridge below that has none.
func (n *Node) known(ctx context.Context, b *Bridge, version, command string, read reader) (map[uint32]bool, error) {
	if command == "dump-meters" && version < "OpenFlow13" {
		return nil, nil
	}
	list, err := n.dumpEntries(ctx, b, version, numbered, command, read)
	return ids(list), err
}

func ids(list []openflow.Entry) map[uint32]bool {
	m := map[uint32]bool{}
	for _, e := range list {
		m[e.ID] = true
	}
	return m
}

func absent(named, have map[uint32]bool) []uint32 {
	var missing []uint32
	for id := range named {
		if !have[id] {
			missing = append(missing, id)
		}
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i] < missing[j] })
	return missing
}

// atMost bounds placeholders: each may take a run of ovs-ofctl, and flows can
// name four thousand million.
func (n *Node) atMost(b *Bridge, what string, missing []uint32) []uint32 {
	const most = 500
	if len(missing) <= most {
		return missing
	}
	n.Report.Remark(fmt.Sprintf("%s: %d %s are named that were not collected: only the first %d get a placeholder", b.Name, len(missing), what, most))
	return missing[:most]
}

// placeholdGroups adds groups without buckets: what reaches them is dropped.
func (n *Node) placeholdGroups(ctx context.Context, b *Bridge, version string, missing []uint32) error {
	for _, id := range missing {
		text := fmt.Sprintf("group_id=%d,type=all", id)
		_, err := n.ofctl(ctx, nil, version, b, "add-group", text)
		if err := n.placed(ctx, b, workdir.Groups, text, fmt.Sprintf("group %d is named, and no dump of it was collected", id), "a placeholder without buckets stands for it", err); err != nil {
			return err
		}
	}
	return nil
}
