// Package why says why a packet does not arrive, or that nothing is wrong on its way: it traces the packet and the
// reply, and picks out of all findings of a check those that concern their way.
package why

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot"
	"ovs-offline/snapshot/rules"
)

// Document is the answer to why, as `why -o json` prints it.
type Document struct {
	Question string         `json:"question"`
	Verdict  answer.Verdict `json:"verdict"` // of the trace
	// Cause says in one sentence what is wrong, or that nothing is.
	Cause string `json:"cause"`
	// Rule is the name of the rule of check that found the cause, "" where the trace shows it.
	Rule     string   `json:"rule,omitempty"`
	Evidence []string `json:"evidence,omitempty"` // of the cause
	// Also lists what else is wrong on the way, and on the nodes of the way: what is closest to it comes first.
	Also []string    `json:"also,omitempty"`
	Next []rule.Next `json:"next,omitempty"`
	// RuledOut lists what was looked at, and is not the cause.
	RuledOut []string `json:"ruled_out"`
	// Unjudged lists what could not be looked at, with the reason.
	Unjudged []string `json:"unjudged,omitempty"`
	// Elsewhere is the number of findings that do not concern the way.
	Elsewhere int            `json:"elsewhere"`
	Trace     *answer.Answer `json:"trace"`
}

// Ask traces a packet and checks what was collected, at the same time. The errors are those of trace.Session.Ask.
func Ask(ctx context.Context, session *trace.Session, all *snapshot.Snapshot, between trace.Between, options check.Options) (*Document, error) {
	var traced *answer.Answer
	var found *check.Report
	group, within := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		traced, err = session.Ask(within, between)
		return err
	})
	group.Go(func() (err error) {
		found, err = check.Run(within, all, options)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	from, to, _, err := session.Endpoints(between)
	if err != nil {
		return nil, err
	}
	d := &Document{Question: between.From + " -> " + between.To, Verdict: traced.Verdict, Trace: traced, Unjudged: found.Unjudged}
	d.judge(newWay(traced, session.Names(), from, to), found)
	return d, d.lastChange(ctx, all, between)
}

// concern is a finding that concerns the way of the packet.
type concern struct {
	rule.Finding
	closeness
}

// judge chooses the cause, and sorts what was found by how much it concerns the way.
func (d *Document) judge(w *way, found *check.Report) {
	var concerns []concern
	for _, f := range found.Findings {
		if close := w.closeness(f); close > elsewhere {
			concerns = append(concerns, concern{f, close})
		} else {
			d.Elsewhere++
		}
	}
	slices.SortStableFunc(concerns, func(a, b concern) int { return cmp.Compare(b.closeness, a.closeness) }) // the worst of a closeness stays first
	var blamed []string
	for _, c := range concerns {
		blamed = append(blamed, c.Rule)
		for _, explained := range c.Explains {
			blamed = append(blamed, explained.Rule)
		}
		if c.Rule == foreignFlow {
			blamed = append(blamed, "drift")
		}
	}
	decides := slices.IndexFunc(concerns, d.decides)
	shown := d.shown()
	switch {
	case decides >= 0:
		cause := concerns[decides]
		d.Cause, d.Rule, d.Next = sentence(cause.Finding), cause.Rule, cause.Next
		switch d.Verdict {
		case answer.Reachable:
			d.Cause = "the packet arrives, and still something is wrong on its way: " + d.Cause
		case answer.Undetermined:
			d.Cause = "not known, and probably: " + d.Cause
		}
		d.Evidence = append(slices.Clone(cause.Evidence), shown...)
		concerns = slices.Delete(concerns, decides, decides+1)
	case d.Verdict == answer.Reachable:
		d.Cause = "nothing is wrong: the packet " + d.Trace.Headline()
		if d.Trace.Answered == "" {
			d.Cause += ", and the reply to it returns"
		}
	default:
		d.Cause, d.Evidence = shown[0], shown[1:]
		d.Next = d.next()
	}
	for _, c := range concerns {
		d.Also = append(d.Also, check.Line(c.Finding))
	}
	d.RuledOut = d.ruledOut(w, blamed, found)
}

// next returns the steps that show more about a drop that the trace explains.
func (d *Document) next() []rule.Next {
	drop, node := d.dropped(), d.Trace.Drifted()
	switch {
	case node != "":
		return []rule.Next{rule.Ask("drift").On(node)}
	case drop != nil && drop.ACL != nil:
		return []rule.Next{rule.Ask("history", "nb", "--record", drop.ACL.UUID)}
	}
	return nil
}

// foreignFlow is the rule of what drift finds that ovn-controller did not write.
const foreignFlow = "foreign-flow"

// sentence returns what a finding says, with its nodes.
func sentence(f rule.Finding) string {
	if len(f.Nodes) == 0 {
		return f.What
	}
	return phrase.FirstNames(f.Nodes) + ": " + f.What
}

// decides reports whether a finding is the cause of what the trace shows.
func (d *Document) decides(c concern) bool {
	drop := d.dropped()
	reason := rules.Reason("")
	if drop != nil {
		reason = rules.Reason(drop.Reason)
	}
	switch {
	case c.Severity != rule.Error:
		return false
	case d.Verdict == answer.Undetermined:
		return len(d.Trace.Missing) > 0 && slices.ContainsFunc(wordsOf(c.What), isAddressIn(d.Trace.Missing[0]))
	case d.Verdict == answer.Reachable:
		return c.closeness == ofTheWay
	case reason == rules.Explicit && c.Rule == foreignFlow:
		return slices.Contains(c.Nodes, drop.Node) && strings.Contains(c.What, ","+matchOf(drop)+" ")
	case reason == rules.MissingFlow || reason == rules.StaleFlow:
		// The flows of the node are not those of the databases: what keeps ovn-controller from writing them is the cause.
		return slices.Contains(c.Nodes, drop.Node) && slices.Contains(c.Causes, "drift")
	case slices.Contains(shownByTrace(), reason):
		return c.closeness == ofTheWay && drop.ACL != nil && strings.Contains(c.What, drop.ACL.UUID)
	}
	return c.closeness == ofTheWay && !c.Symptom
}

// isAddressIn returns a function that reports whether a word is an IP address in a text.
func isAddressIn(text string) func(word string) bool {
	return func(word string) bool {
		_, err := netip.ParseAddr(word)
		return err == nil && slices.Contains(wordsOf(text), word)
	}
}

// matchOf returns the match of the flow that dropped the packet.
func matchOf(drop *answer.Drop) string {
	key, _ := openflow.ParseKey(drop.Flow)
	return key.Match
}

// shownByTrace lists the reasons for a drop that are causes: a user, or a limit, wants the packet to be dropped.
func shownByTrace() []rules.Reason {
	return []rules.Reason{rules.ACL, rules.PortSecurity, rules.Disabled, rules.TTL, rules.MTU, rules.Meter, rules.Netfilter, rules.InputPort}
}

// dropped returns the drop of the packet, or of the reply to it; nil if neither is dropped.
func (d *Document) dropped() *answer.Drop {
	if d.Trace.Drop == nil && d.Trace.Return != nil {
		return d.Trace.Return.Drop
	}
	return d.Trace.Drop
}

// shown returns what the trace says of the verdict: where the packet or the reply ends, by which rule, and what matched.
func (d *Document) shown() (list []string) {
	ends := d.Trace
	what := ""
	if d.Verdict != answer.Undetermined && ends.Drop == nil && ends.Return != nil && ends.Return.Verdict != answer.Reachable {
		ends, what = ends.Return, "the reply to the packet: "
	}
	first := what + ends.Headline()
	if d.Verdict == answer.Undetermined {
		first = "not known: " + first
	}
	for _, fact := range ends.Facts() {
		switch fact.Label {
		case "rule":
			if ends.Drop != nil {
				first += ": " + fact.Lines[0]
			}
		case "reason":
			if fact.Lines[0] != string(rules.ACL) { // the rule's words say so
				first += ", " + fact.Lines[0]
			}
		case "match", "missing", "remark", "choice", "path":
			for _, line := range fact.Lines {
				list = append(list, fact.Label+": "+line)
			}
		}
	}
	return append([]string{first}, list...)
}

// ruledOut says what was looked at without finding anything on the way. blamed are the rules that found something there.
func (d *Document) ruledOut(w *way, blamed []string, found *check.Report) (list []string) {
	for _, looked := range []struct {
		rules []string
		words string
	}{
		{[]string{"drift"}, "the flows of " + phrase.FirstNames(w.names()) + " are those that ovn-controller computes"},
		{[]string{"tunnel-missing", "tunnel-down", "tunnel-to-nowhere", "tunnel-address-twice", "tunnel-address-missing", "tunnel-address-differs"}, "no tunnel is missing or down"},
		{[]string{"port-not-claimed", "port-bound-elsewhere", "logical-port-twice"}, "the ports are claimed by the nodes that have them"},
		{[]string{"duplicate-ip", "duplicate-mac", "duplicate-floating-ip"}, "no address of the way is used twice"},
		{[]string{"chassis-behind", "northd-behind", "stale-southbound"}, "the control plane has carried out all changes"},
	} {
		isOf := func(name string) bool { return slices.Contains(looked.rules, name) }
		if !slices.ContainsFunc(blamed, isOf) &&
			!slices.ContainsFunc(looked.rules, func(name string) bool { return !found.HasJudged(name) }) {
			list = append(list, looked.words)
		}
	}
	return append(list, fmt.Sprintf("%d of %s had data to look at; %s elsewhere", found.Judged, phrase.Count(found.Rules, "rule"), phrase.Count(d.Elsewhere, "finding")))
}
