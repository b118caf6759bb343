//go:build linux

package keeper

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/replica/report"
)

// restoreNftables restores what "nft list ruleset" printed, but the tables of iptables that iptables-save has.
func (s *space) restoreNftables(ctx context.Context, path string) {
	file, err := os.Open(path)
	if err != nil {
		s.report.Remark("the rules of nft: %v", err)
		return
	}
	recorded, err := readRuleset(file)
	_ = file.Close()
	if err != nil {
		s.report.Remark("the rules of nft: %v", err)
	}
	if recorded.other > 0 {
		s.report.Remark("%d lines are no part of what nft lists, and were skipped", recorded.other)
	}
	recorded.tables = slices.DeleteFunc(recorded.tables, s.isKnown)
	s.countRuleset(recorded)
	if len(recorded.tables) == 0 {
		return
	}
	if s.tools.nft == "" {
		s.rejectRuleset(recorded.tables, "nft is not installed: it is in the package nftables")
		return
	}
	if module := s.kernel.missing("nf_tables", "nfnetlink"); module != "" {
		s.rejectRuleset(recorded.tables, "the kernel of this machine has not loaded what rules need: sudo modprobe "+module)
		return
	}
	s.passGate(recorded)
	s.loadRuleset(ctx, recorded)
	for _, table := range recorded.tables {
		s.compareTable(ctx, table)
	}
}

// isKnown reports whether a table needs no restore here: iptables-save has it, or it is ours.
func (s *space) isKnown(t *nftTable) bool {
	if t.name == ownTable {
		return true
	}
	if badTable(t.name) || t.family != "ip" && t.family != "ip6" {
		return false
	}
	if slices.Contains(s.saved, t.family+" "+t.name) {
		return true
	}
	if t.family == "ip" && s.recorded.Filters != "" || t.family == "ip6" && s.recorded.Filters6 != "" {
		return false // iptables can't read it: nft made it
	}
	s.report.Remark("table %s %s belongs to iptables, whose own output was not recorded: nft does not print everything of its rules", t.family, t.name)
	return false
}

// countRuleset counts what was recorded.
func (s *space) countRuleset(recorded *ruleset) {
	if recorded.cut > 0 {
		s.report.Record(report.FilterRules, recorded.cut)
		s.report.RejectUnnamed(report.FilterRules, recorded.cut, "only the first %d rules of a namespace are restored: %d more are not", maxFilterRules, recorded.cut)
	}
	for _, table := range recorded.tables {
		s.report.Record(report.Sets, len(table.objects))
		for _, chain := range table.chains {
			s.report.Record(report.FilterRules, len(chain.rules))
		}
	}
}

// rejectRuleset rejects tables for one reason.
func (s *space) rejectRuleset(tables []*nftTable, reason string) {
	for _, table := range tables {
		s.report.RejectUnnamed(report.Sets, len(table.objects), "%s", reason)
		for _, chain := range table.chains {
			s.report.RejectUnnamed(report.FilterRules, len(chain.rules), "%s", reason)
		}
		table.objects, table.chains = nil, nil
	}
}

// passGate rejects what the gate does not let pass.
func (s *space) passGate(recorded *ruleset) {
	missing := func(statement string) string {
		if module := s.kernel.missing(nftModules(statement)...); module != "" {
			return "the kernel of this machine has not loaded what it needs: sudo modprobe " + module
		}
		return ""
	}
	for _, table := range recorded.tables {
		table.objects = slices.DeleteFunc(table.objects, func(o nftObject) bool {
			if o.refused == "" && !s.kernel.take(o.memory()) {
				o.refused = overMemory
			}
			if o.refused != "" {
				s.report.Reject(report.Sets, o.kind+" "+o.name, "%s", o.refused)
			}
			return o.refused != ""
		})
		for _, chain := range table.chains {
			chain.header = slices.DeleteFunc(chain.header, func(h string) bool {
				reason := missing(h)
				if reason != "" {
					s.report.Remark("chain %s %s %s is on no hook: %s", table.family, table.name, chain.name, reason)
				}
				return reason != ""
			})
			chain.rules = slices.DeleteFunc(chain.rules, func(r nftRule) bool {
				if r.refused == "" {
					r.refused = missing(r.text)
				}
				if r.refused != "" {
					s.report.Reject(report.FilterRules, nftText(table, chain, r), "%s", r.refused)
				}
				return r.refused != ""
			})
		}
	}
}

// nftText returns a rule with its table and chain, for the report.
func nftText(t *nftTable, c *nftChain, r nftRule) string {
	return fmt.Sprintf("%s %s %s: %s", t.family, t.name, c.name, r.text)
}

// nftPlace is the place of a line that nft reads: an object or a rule, or only its table.
type nftPlace struct {
	table  *nftTable
	chain  *nftChain
	rule   int // in the chain, -1 for its header
	object int // in the table, -1 for others
}

// nftInput is what nft reads, with the place of each of its lines.
type nftInput struct {
	text   bytes.Buffer
	places []nftPlace
}

func (in *nftInput) add(line string, at nftPlace) {
	in.text.WriteString(line)
	in.text.WriteByte('\n')
	for range 1 + strings.Count(line, "\n") {
		in.places = append(in.places, at)
	}
}

// addTable adds a table and its chains, without rules.
func (in *nftInput) addTable(table *nftTable) {
	at := nftPlace{table: table, rule: -1, object: -1}
	in.add(fmt.Sprintf("table %s %s {", table.family, table.name), at)
	for _, chain := range table.chains {
		at := nftPlace{table: table, chain: chain, rule: -1, object: -1}
		in.add(fmt.Sprintf("\tchain %s {", chain.name), at)
		for _, header := range chain.header {
			in.add("\t\t"+header, at)
		}
		in.add("\t}", at)
	}
	in.add("}", at)
}

// addObject adds an object of a table.
func (in *nftInput) addObject(table *nftTable, i int) {
	at := nftPlace{table: table, rule: -1, object: i}
	object := table.objects[i]
	in.add(fmt.Sprintf("table %s %s {\n\t%s %s {", table.family, table.name, object.kind, object.name), at)
	in.add(expires.ReplaceAllString(strings.TrimSuffix(object.text, "\n"), "")+"\n\t}\n}", at)
}

// addRule adds a rule of a chain.
func (in *nftInput) addRule(table *nftTable, chain *nftChain, i int) {
	rule := nftCounter.ReplaceAllString(chain.rules[i].text, "counter")
	in.add(fmt.Sprintf("add rule %s %s %s %s", table.family, table.name, chain.name, rule), nftPlace{table: table, chain: chain, rule: i, object: -1})
}

// input returns all that nft reads of a ruleset.
func (r *ruleset) input() *nftInput {
	in := &nftInput{}
	for _, table := range r.tables {
		in.addTable(table)
		for i := range table.objects {
			in.addObject(table, i)
		}
		for _, chain := range table.chains {
			for i := range chain.rules {
				in.addRule(table, chain, i)
			}
		}
	}
	return in
}

// nftError matches how nft names a line.
var nftError = lazyregexp.New(`(?m)^(?:/dev/stdin|<cmdline>|-):(\d+):[0-9-]+: Error: (.*)$`)

// nftLoader loads tables, as many rules at a time as the kernel takes in one message.
type nftLoader struct {
	space    *space
	room     room
	refused  int
	failures int
}

// loadRuleset loads the tables: their chains, their objects, and then the rules, which name these.
func (s *space) loadRuleset(ctx context.Context, recorded *ruleset) {
	l := &nftLoader{space: s, room: newRoom()}
	if l.load(ctx, recorded.tables, func(in *nftInput) {
		for _, table := range recorded.tables {
			if len(table.objects)+len(table.chains) > 0 {
				in.addTable(table)
			}
		}
	}) {
		s.rejectRuleset(recorded.tables, "they have more chains than the kernel takes in one message")
		return
	}
	for _, table := range recorded.tables {
		l.objects(ctx, table)
		for _, chain := range table.chains {
			l.chain(ctx, table, chain)
		}
	}
	recorded.sweep()
}

// objects adds the objects of a table: all together, or one by one if they are too long.
func (l *nftLoader) objects(ctx context.Context, table *nftTable) {
	some := func(begin, end int) (long bool) {
		return l.load(ctx, []*nftTable{table}, func(in *nftInput) {
			for i := begin; i < min(end, len(table.objects)); i++ {
				if table.objects[i].refused == "" {
					in.addObject(table, i)
				}
			}
		})
	}
	if len(table.objects) == 0 || !some(0, len(table.objects)) {
		return
	}
	for i := range table.objects {
		if some(i, i+1) {
			l.space.dropNft(nftPlace{table: table, rule: -1, object: i}, "it has more elements than the kernel takes in one message", false)
		}
	}
}

// chain adds the rules of a chain.
func (l *nftLoader) chain(ctx context.Context, table *nftTable, chain *nftChain) {
	for begin := 0; begin < len(chain.rules); {
		end, size := begin, 0
		for end < len(chain.rules) && (end == begin || size < l.room.bytes) {
			size += 400 + 2*len(chain.rules[end].text)
			end++
		}
		long := l.load(ctx, []*nftTable{table}, func(in *nftInput) {
			for i := begin; i < end && i < len(chain.rules); i++ {
				if chain.rules[i].refused == "" {
					in.addRule(table, chain, i)
				}
			}
		})
		switch {
		case !long:
			if begin = end; begin < len(chain.rules) {
				l.room.grow()
			}
		case end-begin == 1:
			l.space.dropNft(nftPlace{table: table, chain: chain, rule: begin, object: -1}, "it is longer than the kernel takes in one message", false)
			begin = end
		default:
			l.room.shrink()
		}
	}
}

// load loads something, again and again without what is refused, and reports whether it is too long for the kernel.
func (l *nftLoader) load(ctx context.Context, tables []*nftTable, compose func(*nftInput)) (long bool) {
	for {
		in := &nftInput{}
		if compose(in); len(in.places) == 0 {
			return false
		}
		_, err := l.space.run(ctx, in.text.Bytes(), l.space.tools.nft, "-f", "-")
		if err == nil {
			return false
		}
		printed := stderrOf(err)
		if strings.Contains(printed, tooLong) {
			return true
		}
		found := nftError.FindAllStringSubmatch(printed, 1000)
		if l.failures++; len(found) == 0 || l.failures > maxRuns || ctx.Err() != nil {
			l.rejectAll(in, tables, "nft: "+reasonOf(err))
			return false
		}
		if strings.Contains(found[0][2], "syntax error") {
			found = found[:1] // the others may follow from it
		}
		for _, one := range found {
			n, _ := strconv.Atoi(one[1])
			if n < 1 || n > len(in.places) {
				l.rejectAll(in, tables, "nft: "+one[2])
				return false
			}
			l.refused++
			l.space.dropNft(in.places[n-1], "nft: "+one[2], l.refused > oneByOne)
		}
	}
}

// rejectAll rejects everything that was to be loaded; with a table its objects and rules.
func (l *nftLoader) rejectAll(in *nftInput, tables []*nftTable, reason string) {
	for _, at := range in.places {
		if at.rule < 0 && at.object < 0 {
			l.space.rejectRuleset(tables, reason)
			return
		}
	}
	for _, at := range in.places {
		l.space.dropNft(at, reason, false)
	}
}

// dropNft rejects what is at a place, and with alike all rules of its shape in the chain.
func (s *space) dropNft(at nftPlace, reason string, alike bool) {
	switch {
	case at.rule >= 0:
		rule := at.chain.rules[at.rule]
		for i := range at.chain.rules {
			other := &at.chain.rules[i]
			if other.refused == "" && (i == at.rule || alike && shape(other.text) == shape(rule.text)) {
				other.refused = reason
				s.report.Reject(report.FilterRules, nftText(at.table, at.chain, *other), "%s", reason)
			}
		}
	case at.object >= 0:
		if object := &at.table.objects[at.object]; object.refused == "" {
			object.refused = reason
			s.report.Reject(report.Sets, object.kind+" "+object.name, "%s", reason)
		}
	case at.chain != nil && len(at.chain.header) > 0:
		s.report.Remark("chain %s %s %s is on no hook: %s", at.table.family, at.table.name, at.chain.name, reason)
		at.chain.header = nil
	default:
		s.rejectRuleset([]*nftTable{at.table}, reason)
	}
}

// sweep removes what was refused.
func (r *ruleset) sweep() {
	for _, table := range r.tables {
		table.objects = slices.DeleteFunc(table.objects, func(o nftObject) bool { return o.refused != "" })
		for _, chain := range table.chains {
			chain.rules = slices.DeleteFunc(chain.rules, func(rule nftRule) bool { return rule.refused != "" })
		}
	}
	r.tables = slices.DeleteFunc(r.tables, func(t *nftTable) bool { return len(t.objects)+len(t.chains) == 0 })
}

// compareTable reads a table back and compares each rule and set with the recorded one.
func (s *space) compareTable(ctx context.Context, table *nftTable) {
	if len(table.chains)+len(table.objects) == 0 {
		return
	}
	out, err := s.run(ctx, nil, s.tools.nft, "-a", "list", "table", table.family, table.name)
	if err != nil {
		s.rejectRuleset([]*nftTable{table}, "it can't be read back: "+reasonOf(err))
		return
	}
	read, err := readRuleset(bytes.NewReader(out))
	if err != nil || len(read.tables) != 1 {
		s.rejectRuleset([]*nftTable{table}, "it can't be read back")
		return
	}
	found := read.tables[0]
	for _, chain := range table.chains {
		var rules []nftRule
		for _, other := range found.chains {
			if other.name == chain.name {
				rules = other.rules
			}
		}
		s.compareChain(table, chain, rules)
	}
	for _, object := range table.objects {
		i := slices.IndexFunc(found.objects, func(o nftObject) bool { return o.kind == object.kind && o.name == object.name })
		switch {
		case i < 0:
			s.report.Reject(report.Sets, object.kind+" "+object.name, "it is not in the kernel")
		case plainObject(found.objects[i]) != plainObject(object):
			s.report.Differ(report.Sets, object.kind+" "+object.name, "it is read back differently: %s", plainObject(found.objects[i]))
		default:
			s.report.Restore(report.Sets, 1)
		}
	}
}

// compareChain compares the rules of a chain with the rules that the kernel has, and notes the handles of the latter.
func (s *space) compareChain(table *nftTable, chain *nftChain, found []nftRule) {
	for i, rule := range chain.rules {
		if i >= len(found) {
			s.report.Reject(report.FilterRules, nftText(table, chain, rule), "it is not in the kernel")
			continue
		}
		s.rules.set(table.family, table.name, chain.name, found[i].handle, plainRule(rule.text))
		if plainRule(found[i].text) == plainRule(rule.text) {
			s.report.Restore(report.FilterRules, 1)
		} else {
			s.report.Differ(report.FilterRules, nftText(table, chain, rule), "it is read back as %s", found[i].text)
		}
	}
}

// plainObject returns an object without counters and without when its elements expire.
func plainObject(o nftObject) string {
	if o.kind == "counter" || o.kind == "quota" {
		return ""
	}
	return strings.Join(strings.Fields(expires.ReplaceAllString(nftCounter.ReplaceAllString(o.text, "counter"), "")), " ")
}
