//go:build linux

package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/phrase"
	"ovs-offline/replica/report"
)

// Bounds of the rules of one namespace.
const (
	maxFilterRules = 200000
	maxFilterLine  = 16 << 10 // bytes
	maxFilterBytes = 128 << 20
	// maxRuns bounds how often the rules of one family are tried again without those that were refused, and
	// oneByOne how many of these are looked for one by one: after that, a refused rule costs all that have the
	// same options.
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
	if recorded == nil || recorded.rules == 0 && !recorded.hasPolicy() {
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
	var table *savedTable
	var chains []string
	cut, size, other := 0, 0, 0
	skipped, err := lines.Read(file, func(raw []byte) error {
		size += len(raw)
		line := strings.TrimSpace(string(raw[:min(len(raw), maxFilterLine+1)]))
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '*':
			table = &savedTable{name: line[1:]}
			chains = nil
			if badTable(table.name) {
				table = nil
				other++
				break
			}
			all.tables = append(all.tables, table)
		case line == "COMMIT":
			table = nil
		case table == nil:
			other++
		case line[0] == ':':
			words := strings.Fields(line[1:])
			if len(words) < 2 || badChain(words[0]) != "" || !slices.Contains([]string{"-", "ACCEPT", "DROP"}, words[1]) {
				other++
				break
			}
			table.chains = append(table.chains, savedChain{words[0], words[1]})
			chains = append(chains, words[0])
		default:
			s.report.Record(report.FilterRules, 1)
			if all.rules == maxFilterRules || size > maxFilterBytes {
				cut++
				break
			}
			all.rules++
			s.readRule(table, line, chains)
		}
		return nil
	})
	s.report.RejectUnnamed(report.FilterRules, cut, "only the first %d rules, and %d MB, of a namespace are restored: %d more are not", maxFilterRules, maxFilterBytes>>20, cut)
	if skipped > 0 {
		s.report.Record(report.FilterRules, skipped)
		s.report.RejectUnnamed(report.FilterRules, skipped, "%d lines are too long to be rules", skipped)
	}
	if other > 0 {
		s.report.Remark("%d lines are no part of what iptables-save prints, and were skipped", other)
	}
	return all, err
}

// badTable reports whether iptables has no table of a name.
func badTable(name string) bool {
	return !slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, name)
}

// counted matches the counters that iptables-save -c writes in front of a rule.
var counted = regexp.MustCompile(`^\[\d+:\d+\] `)

// readRule reads one rule of a table.
func (s *space) readRule(table *savedTable, line string, chains []string) {
	if len(line) > maxFilterLine {
		s.report.Reject(report.FilterRules, line, "the rule is longer than %d bytes", maxFilterLine)
		return
	}
	line = strings.TrimPrefix(line, counted.FindString(line))
	rule, refused := s.checkRule(table.name, line, chains)
	if refused == "" && !slices.Contains(chains, rule.chain) {
		refused = "its chain is not in the table"
	}
	if refused != "" {
		s.report.Reject(report.FilterRules, "-t "+table.name+" "+line, "%s", refused)
		return
	}
	table.rules = append(table.rules, rule)
}

// place is the place of a line that a restoring program reads: the index of its table, and of the rule in it or -1.
type place struct{ table, rule int }

// input writes what the restoring program reads, and returns the places of its lines.
func (r *saved) input() (text []byte, places []place) {
	var out bytes.Buffer
	add := func(line string, at place) {
		out.WriteString(line)
		out.WriteByte('\n')
		places = append(places, at)
	}
	for i, table := range r.tables {
		add("*"+table.name, place{i, -1})
		for _, chain := range table.chains {
			add(":"+chain.name+" "+chain.policy, place{i, -1})
		}
		for j, rule := range table.rules {
			add(rule.text, place{i, j})
		}
		add("COMMIT", place{i, -1})
	}
	return out.Bytes(), places
}

var (
	atLine   = regexp.MustCompile(`(?i)line:? (\d+)`)
	cantLoad = regexp.MustCompile("Couldn't (?:load|find) (?:match|target) `([^']+)'")
)

// load loads the rules, again and again without those that are refused.
func (s *space) load(ctx context.Context, programs iptables, recorded *saved) {
	refused := 0
	for range maxRuns {
		text, places := recorded.input()
		_, err := s.run(ctx, text, programs.restore)
		if err == nil {
			return
		}
		reason := reasonOf(err)
		bad := badLines(err, places)
		if len(bad) == 0 || ctx.Err() != nil {
			s.rejectAll(recorded, fmt.Sprintf("%s-restore: %s", programs.title, reason))
			return
		}
		for _, at := range bad {
			refused++
			s.drop(recorded, at, reason, refused > oneByOne)
		}
		recorded.sweep()
	}
	s.rejectAll(recorded, fmt.Sprintf("%s-restore refused rules %d times: the last reason is above", programs.title, maxRuns))
}

// drop rejects the rule at a place, and others that would be refused for the same reason.
func (s *space) drop(recorded *saved, at place, reason string, alike bool) {
	table := recorded.tables[at.table]
	if at.rule < 0 { // the table itself, or a chain of it
		s.report.RejectUnnamed(report.FilterRules, len(table.rules), "table %s: %s", table.name, reason)
		table.rules, table.chains = nil, nil
		return
	}
	rule := table.rules[at.rule]
	unknown := ""
	if found := cantLoad.FindStringSubmatch(reason); found != nil {
		unknown = found[1]
	}
	for _, t := range recorded.tables {
		for i := range t.rules {
			other := &t.rules[i]
			same := t == table && i == at.rule
			switch {
			case other.text == "":
			case same, unknown != "" && slices.Contains(other.extensions, unknown):
				s.report.Reject(report.FilterRules, "-t "+t.name+" "+other.text, "%s", reason)
				other.text = ""
			case alike && other.signature == rule.signature:
				s.report.Reject(report.FilterRules, "-t "+t.name+" "+other.text, "as of other rules with these options: %s", reason)
				other.text = ""
			}
		}
	}
}

// sweep removes the rules that drop rejected.
func (r *saved) sweep() {
	for _, table := range r.tables {
		table.rules = slices.DeleteFunc(table.rules, func(rule filterRule) bool { return rule.text == "" })
	}
	r.tables = slices.DeleteFunc(r.tables, func(t *savedTable) bool { return len(t.chains) == 0 })
}

// badLines returns the places of the lines that an error names.
func badLines(err error, places []place) (bad []place) {
	for _, found := range atLine.FindAllStringSubmatch(stderrOf(err), 1000) {
		n, _ := strconv.Atoi(found[1])
		if n >= 1 && n <= len(places) && !slices.Contains(bad, places[n-1]) {
			bad = append(bad, places[n-1])
		}
	}
	return bad
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
			case found[key][i] == rule.text:
				s.report.Restore(report.FilterRules, 1)
			default:
				s.report.Differ(report.FilterRules, "-t "+t.name+" "+rule.text, "it is read back as %s", found[key][i])
			}
		}
	}
}
