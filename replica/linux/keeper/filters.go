//go:build linux

package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/phrase"
	"ovs-offline/replica/report"
)

// Bounds of the rules of one namespace.
const (
	maxFilterRules = 100000
	maxFilterLine  = 16 << 10 // bytes
	maxFilterBytes = 128 << 20
	maxChains      = 50000
	// maxRuns bounds how often the keeper loads the rules of one family again without the refused rules.
	// oneByOne is the number of refused rules that it looks for one by one: after that, a refused rule costs all
	// rules with the same options.
	maxRuns  = 60
	oneByOne = 30
)

// saved is what iptables-save printed, as far as it is restored.
type saved struct {
	tables []*savedTable
	rules  int
}

type savedTable struct {
	name   string
	chains []savedChain
	named  map[string]bool // the chains, by name
	rules  []filterRule
}

type savedChain struct{ name, policy string }

// iptables are the programs for one family.
type iptables struct {
	family        string // of nftables
	restore, save string
	title         string
}

// restoreFilters restores the rules of iptables, ip6tables and nft.
func (s *space) restoreFilters(ctx context.Context) {
	s.rules = &ruleTexts{}
	r := s.recorded
	if r.Filters != "" {
		s.restoreIptables(ctx, iptables{"ip", s.tools.iptablesRestore, s.tools.iptablesSave, "iptables"}, r.Filters)
	}
	if r.Filters6 != "" {
		s.restoreIptables(ctx, iptables{"ip6", s.tools.ip6tablesRestore, s.tools.ip6tablesSave, "ip6tables"}, r.Filters6)
	}
	if r.Nftables != "" {
		s.restoreNftables(ctx, r.Nftables)
	}
}

// restoreIptables restores what iptables-save printed, and reads it back.
func (s *space) restoreIptables(ctx context.Context, programs iptables, path string) {
	recorded, err := s.readSaved(path)
	if err != nil {
		s.report.Remark("%s: %v", programs.title, err)
	}
	if recorded == nil {
		return
	}
	for _, table := range recorded.tables {
		s.saved = append(s.saved, programs.family+" "+table.name)
	}
	if recorded.rules == 0 && !recorded.hasPolicy() {
		return
	}
	if programs.restore == "" || programs.save == "" {
		s.rejectAll(recorded, fmt.Sprintf("%s-nft-restore is not installed: it is in the package iptables", programs.title))
		return
	}
	if module := s.kernel.missing("nf_tables", "nft_compat"); module != "" {
		s.rejectAll(recorded, "the kernel of this machine has not loaded what rules need: sudo modprobe "+module)
		return
	}
	s.load(ctx, programs, recorded)
	s.compare(ctx, programs, recorded)
}

func (r *saved) hasPolicy() bool {
	return slices.ContainsFunc(r.tables, func(t *savedTable) bool {
		return slices.ContainsFunc(t.chains, func(c savedChain) bool { return c.policy == "DROP" })
	})
}

// rejectAll rejects all rules for one reason.
func (s *space) rejectAll(recorded *saved, reason string) {
	n := 0
	for _, table := range recorded.tables {
		n += len(table.rules)
		table.rules = nil
	}
	s.report.RejectUnnamed(report.FilterRules, n, "%s", reason)
}

// readSaved reads the output of iptables-save through the gate: what it does not let pass is named.
func (s *space) readSaved(path string) (*saved, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	all := &saved{}
	s.shared = map[string]bool{} // by family
	var table *savedTable
	chains, cut, size, other := 0, 0, 0, 0
	skipped, err := lines.Read(file, func(raw []byte) error {
		size += len(raw)
		line := strings.TrimSpace(string(raw[:min(len(raw), maxFilterLine+1)]))
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '*':
			if table = all.table(line[1:]); table == nil {
				other++
			}
		case line == "COMMIT":
			table = nil
		case table == nil:
			other++
		case line[0] == ':':
			words := strings.Fields(line[1:])
			if len(words) < 2 || badChain(words[0]) != "" || table.named[words[0]] || !slices.Contains([]string{"-", "ACCEPT", "DROP"}, words[1]) {
				other++
				break
			}
			if chains++; chains <= maxChains {
				table.chains = append(table.chains, savedChain{words[0], words[1]})
				table.named[words[0]] = true
			}
		default:
			s.report.Record(report.FilterRules, 1)
			if all.rules == maxFilterRules || size > maxFilterBytes {
				cut++
				break
			}
			all.rules++
			s.readRule(table, line)
		}
		return nil
	})
	s.report.RejectUnnamed(report.FilterRules, cut, "only the first %d rules, and %d MB, of a namespace are restored: %d more are not", maxFilterRules, maxFilterBytes>>20, cut)
	if chains > maxChains {
		s.report.Remark("only the first %d chains of a namespace are restored: %d more are not, and no rules in them", maxChains, chains-maxChains)
	}
	if skipped > 0 {
		s.report.Record(report.FilterRules, skipped)
		s.report.RejectUnnamed(report.FilterRules, skipped, "%d lines are too long to be rules", skipped)
	}
	if other > 0 {
		s.report.Remark("%d lines are no part of what iptables-save prints, and were skipped", other)
	}
	return all, err
}

// table returns the table of a name, which it makes if it is not there yet; nil if iptables has no such table.
func (r *saved) table(name string) *savedTable {
	for _, table := range r.tables {
		if table.name == name {
			return table
		}
	}
	if badTable(name) {
		return nil
	}
	table := &savedTable{name: name, named: map[string]bool{}}
	r.tables = append(r.tables, table)
	return table
}

// badTable reports whether iptables has no table of a name.
func badTable(name string) bool {
	return !slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, name)
}

// counted matches the counters that iptables-save -c writes in front of a rule.
var counted = lazyregexp.New(`^\[\d+:\d+\] `)

// readRule reads one rule of a table.
func (s *space) readRule(table *savedTable, line string) {
	if len(line) > maxFilterLine {
		s.report.Reject(report.FilterRules, line, "the rule is longer than %d bytes", maxFilterLine)
		return
	}
	line = strings.TrimPrefix(line, counted.FindString(line))
	rule, refused := s.checkRule(table.name, line, table.named)
	if refused != "" {
		s.report.Reject(report.FilterRules, "-t "+table.name+" "+line, "%s", refused)
		return
	}
	table.rules = append(table.rules, rule)
}

var (
	atLine   = lazyregexp.New(`(?i)line:? (\d+)`)
	cantLoad = lazyregexp.New("Couldn't (?:load|find) (?:match|target) `([^']+)'")
)

// tooLong is what the programs say when the kernel can't take all rules in one message. The programs ask for more
// room in the socket, which only root of the host gets.
const tooLong = "Message too long"

// loader loads the rules of iptables, as many at a time as the kernel takes in one message.
type loader struct {
	space    *space
	programs iptables
	room     room
	refused  int // rules that were refused one by one
	failures int // runs that failed
}

// room is how many bytes of rules, as they are estimated, one message may have. Fewer messages take less time: with each,
// the kernel copies the rules of a chain. So there is more room after each message that the kernel took, until one is too
// long.
type room struct {
	bytes int
	known bool // a message was too long
}

// newRoom returns somewhat less than a socket has on a usual system (net.core.wmem_default).
func newRoom() room { return room{bytes: 150 << 10} }

// grow makes more room, after a message that the kernel took.
func (r *room) grow() {
	if !r.known {
		r.bytes += r.bytes / 4
	}
}

// shrink makes less room, after a message that was too long.
func (r *room) shrink() {
	r.bytes -= max(1, r.bytes/4)
	r.known = true
}

// size is about what a rule takes in a message.
func (r filterRule) size() int {
	size := 200 + len(r.text)
	for _, extension := range r.extensions {
		if len(modulesOf(extension)) > 0 {
			size += 300
		}
	}
	return size
}

// load loads the rules, and loads them again without the refused rules until the kernel takes the rest.
func (s *space) load(ctx context.Context, programs iptables, recorded *saved) {
	l := &loader{space: s, programs: programs, room: newRoom()}
	for _, table := range recorded.tables {
		if reason := l.chains(ctx, table); reason != "" {
			s.report.RejectUnnamed(report.FilterRules, len(table.rules), "%s-restore: table %s: %s", programs.title, table.name, reason)
			table.rules = nil
		}
	}
	for _, table := range recorded.tables {
		l.rules(ctx, table)
	}
}

// chains makes the chains of a table.
func (l *loader) chains(ctx context.Context, table *savedTable) (problem string) {
	const each = 200 // bytes in a message
	argv := []string{l.programs.restore}
	for begin := 0; begin < max(1, len(table.chains)); begin += l.room.bytes / each {
		lines := []string{"*" + table.name}
		for _, chain := range table.chains[begin:min(len(table.chains), begin+l.room.bytes/each)] {
			lines = append(lines, ":"+chain.name+" "+chain.policy)
		}
		if _, err := l.space.run(ctx, []byte(strings.Join(append(lines, "COMMIT\n"), "\n")), argv...); err != nil {
			return reasonOf(err)
		}
		argv = []string{l.programs.restore, "--noflush"}
	}
	return ""
}

// rules adds the rules of a table to its chains.
func (l *loader) rules(ctx context.Context, table *savedTable) {
	loaded := make([]filterRule, 0, len(table.rules))
	rest := slices.Clone(table.rules)
	for len(rest) > 0 {
		n, size := 0, 0
		for n < len(rest) && (n == 0 || size+rest[n].size() <= l.room.bytes) {
			size += rest[n].size()
			n++
		}
		ok := l.some(ctx, table, rest, n)
		switch {
		case ok:
			loaded = append(loaded, rest[:n]...)
			if rest = rest[n:]; len(rest) > 0 {
				l.room.grow()
			}
		case ctx.Err() != nil || l.failures > maxRuns:
			rest = slices.DeleteFunc(rest, func(r filterRule) bool { return r.refused })
			l.space.report.RejectUnnamed(report.FilterRules, len(rest), "%s-restore: table %s: after %d refusals, or %v, %d rules were not tried", l.programs.title, table.name, l.failures, restoreTimeout, len(rest))
			rest = nil
		default:
			rest = slices.DeleteFunc(rest, func(r filterRule) bool { return r.refused })
		}
	}
	table.rules = loaded
}

// some adds the first n rules of the rest: all of them, or none. Those that were refused are marked, or there is less room.
func (l *loader) some(ctx context.Context, table *savedTable, rest []filterRule, n int) bool {
	rules := rest[:n]
	lines := []string{"*" + table.name}
	for _, rule := range rules {
		lines = append(lines, rule.text)
	}
	_, err := l.space.run(ctx, []byte(strings.Join(append(lines, "COMMIT\n"), "\n")), l.programs.restore, "--noflush")
	if err == nil {
		return true
	}
	l.failures++
	if strings.Contains(stderrOf(err), tooLong) && len(rules) > 1 {
		l.room.shrink()
		l.failures-- // there is less room at most fifty times
		return false
	}
	reason, found := reasonOf(err), false
	for _, line := range atLine.FindAllStringSubmatch(stderrOf(err), 1000) {
		number, _ := strconv.Atoi(line[1])
		if i := number - 2; i >= 0 && i < len(rules) && !rules[i].refused {
			found = true
			l.refused++
			l.refuse(table, rest, i, reason)
		}
	}
	for i := range rules {
		if !found && !rules[i].refused { // it names no rule: all of these
			l.reject(table, &rules[i], reason)
		}
	}
	return false
}

// refuse rejects a rule, and others of the rest that would be refused for the same reason: those with an extension
// that is not there and, once many were refused, those with the same options.
func (l *loader) refuse(table *savedTable, rest []filterRule, n int, reason string) {
	unknown := ""
	if found := cantLoad.FindStringSubmatch(reason); found != nil {
		unknown = found[1]
	}
	signature := rest[n].signature
	l.reject(table, &rest[n], reason)
	for i := range rest {
		other := &rest[i]
		switch {
		case other.refused:
		case unknown != "" && slices.Contains(other.extensions, unknown):
			l.reject(table, other, reason)
		case l.refused > oneByOne && other.signature == signature:
			l.reject(table, other, "as of other rules with these options: "+reason)
		}
	}
}

func (l *loader) reject(table *savedTable, rule *filterRule, reason string) {
	rule.refused = true
	l.space.report.Reject(report.FilterRules, "-t "+table.name+" "+rule.text, "%s", reason)
}

// reasonOf returns what a program said first.
func reasonOf(err error) string {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return err.Error()
	}
	if errors.Is(failed.Err, context.DeadlineExceeded) {
		return "it took too long"
	}
	for line := range strings.Lines(failed.Stderr) {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "(nf_tables): "); ok {
			line = rest
		}
		if line != "" && !strings.HasSuffix(line, "(nf_tables):") {
			return phrase.Shorten(line, 300)
		}
	}
	return failed.Err.Error()
}

// stderrOf returns what a failed program printed.
func stderrOf(err error) string {
	var failed *command.Error
	if errors.As(err, &failed) {
		return failed.Stderr
	}
	return ""
}

// run runs a program in the namespace. It gets nothing of this process's environment but a path.
func (s *space) run(ctx context.Context, input []byte, argv ...string) ([]byte, error) {
	return command.Run(ctx, command.Command{Argv: argv, Stdin: bytes.NewReader(input), Dir: "/",
		Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "XTABLES_LOCKFILE=/dev/null"}})
}

// macAddress matches a MAC: versions of iptables differ in its letters.
var macAddress = lazyregexp.New(`\b[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}\b`)

// plainFilter returns a rule in the form in which rules are compared: what versions of iptables print differently, and
// means the same, is the same.
func plainFilter(text string) string {
	return macAddress.ReplaceAllStringFunc(strings.ReplaceAll(text, " --datestop 2038-01-19T03:14:07", ""), strings.ToLower)
}

// compare reads the rules back and compares each with the recorded one.
func (s *space) compare(ctx context.Context, programs iptables, recorded *saved) {
	out, err := s.run(ctx, nil, programs.save)
	if err != nil {
		n := 0
		for _, table := range recorded.tables {
			n += len(table.rules)
		}
		s.report.RejectUnnamed(report.FilterRules, n, "the rules can't be read back: %s", reasonOf(err))
		return
	}
	found := map[string][]string{} // rules by table and chain
	table := ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "*"); ok {
			table = rest
		}
		if rest, ok := strings.CutPrefix(line, "-A "); ok {
			chain, _, _ := strings.Cut(rest, " ")
			key := table + " " + chain
			found[key] = append(found[key], line)
			s.rules.add(programs.family, table, chain, line)
		}
	}
	for _, t := range recorded.tables {
		next := map[string]int{}
		for _, rule := range t.rules {
			key := t.name + " " + rule.chain
			i := next[rule.chain]
			next[rule.chain]++
			switch {
			case i >= len(found[key]):
				s.report.Reject(report.FilterRules, "-t "+t.name+" "+rule.text, "it is not in the kernel")
			case plainFilter(found[key][i]) == plainFilter(rule.text):
				s.report.Restore(report.FilterRules, 1)
			default:
				s.report.Differ(report.FilterRules, "-t "+t.name+" "+rule.text, "it is read back as %s", found[key][i])
			}
		}
	}
}
