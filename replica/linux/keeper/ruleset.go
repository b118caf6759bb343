//go:build linux

package keeper

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
)

// ruleset is what "nft list ruleset" printed.
type ruleset struct {
	tables []*nftTable
	rules  int
	cut    int // rules beyond the bound
	other  int // lines that are no part of such a text
}

type nftTable struct {
	family, name string
	objects      []nftObject
	chains       []*nftChain
}

// nftObject is a set, a map, a counter or the like.
type nftObject struct {
	kind, name string // "set", "allowed"
	text       string // with its lines
	refused    string
}

type nftChain struct {
	name   string
	header []string // "type filter hook input priority filter; policy drop;"
	rules  []nftRule
}

type nftRule struct {
	text    string
	handle  uint64
	refused string
}

// maxTables bounds the tables of nft of one namespace.
const maxTables = 200

var (
	nftHandle  = lazyregexp.New(`\s*# handle (\d+)\s*$`)
	nftCounter = lazyregexp.New(`\bcounter packets \d+ bytes \d+`)
	nftName    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_./-]{0,120}$`)
)

// nftFamilies are the families of tables.
func nftFamilies() []string { return []string{"ip", "ip6", "inet", "arp", "bridge", "netdev"} }

// nftKinds are the kinds of objects of tables.
func nftKinds() []string {
	return []string{"set", "map", "flowtable", "counter", "quota", "limit", "secmark", "synproxy", "ct helper", "ct timeout", "ct expectation"}
}

// readRuleset reads what "nft list ruleset" printed. A statement over several lines becomes one line.
func readRuleset(r io.Reader) (*ruleset, error) {
	p := &rulesetReader{set: &ruleset{}}
	skipped, err := lines.Read(r, func(raw []byte) error {
		if len(raw) > maxFilterLine {
			p.set.other++
			return nil
		}
		p.line(string(raw))
		return nil
	})
	p.set.other += skipped
	return p.set, err
}

// rulesetReader reads line by line.
type rulesetReader struct {
	set    *ruleset
	table  *nftTable
	chain  *nftChain
	object *nftObject
	body   strings.Builder // of the object
	open   statement       // whose braces are not closed yet
	size   int
	chains int
}

// statement is a statement of nft that is read line by line.
type statement struct {
	text   strings.Builder
	depth  int // how many of its braces are open
	quoted bool
}

// add adds a line.
func (s *statement) add(line string) {
	if s.text.Len() > 0 {
		s.text.WriteByte(' ')
	}
	s.text.WriteString(line)
	for _, c := range line {
		switch {
		case c == '"':
			s.quoted = !s.quoted
		case s.quoted:
		case c == '{':
			s.depth++
		case c == '}':
			s.depth--
		}
	}
}

// take returns the text of the statement and begins another one.
func (s *statement) take() string {
	text := strings.TrimSpace(s.text.String())
	*s = statement{}
	return text
}

func (p *rulesetReader) line(raw string) {
	line := strings.TrimSpace(raw)
	if p.size += len(line); p.size > maxFilterBytes {
		p.set.cut++
		return
	}
	handle := uint64(0)
	if found := nftHandle.FindStringSubmatch(line); found != nil {
		handle, _ = strconv.ParseUint(found[1], 10, 64)
		line = strings.TrimSpace(strings.TrimSuffix(line, found[0]))
	}
	words := strings.Fields(line)
	switch {
	case line == "" || line[0] == '#':
	case p.object != nil:
		p.inObject(line)
	case p.chain != nil:
		p.inChain(line, handle)
	case p.table != nil && line == "}":
		p.table = nil
	case p.table != nil:
		p.inTable(words)
	case len(words) == 4 && words[0] == "table" && words[3] == "{" && slices.Contains(nftFamilies(), words[1]) && nftName.MatchString(words[2]) && len(p.set.tables) < maxTables:
		p.table = &nftTable{family: words[1], name: words[2]}
		p.set.tables = append(p.set.tables, p.table)
	default:
		p.set.other++
	}
}

// inTable reads the beginning of a chain or an object.
func (p *rulesetReader) inTable(words []string) {
	n := len(words)
	switch {
	case n == 3 && words[0] == "chain" && words[2] == "{" && nftName.MatchString(words[1]) && p.chains < maxChains:
		p.chains++
		p.chain = &nftChain{name: words[1]}
		p.table.chains = append(p.table.chains, p.chain)
	case n >= 3 && words[n-1] == "{" && slices.Contains(nftKinds(), strings.Join(words[:n-2], " ")) && nftName.MatchString(words[n-2]):
		p.object = &nftObject{kind: strings.Join(words[:n-2], " "), name: words[n-2]}
	default:
		p.set.other++
	}
}

// inObject reads a line of an object.
func (p *rulesetReader) inObject(line string) {
	if line == "}" && p.open.text.Len() == 0 {
		p.object.text = p.body.String()
		p.table.objects = append(p.table.objects, *p.object)
		p.body.Reset()
		p.object = nil
		return
	}
	if p.open.add(line); p.open.depth > 0 {
		return
	}
	text := p.open.take()
	if reason := badStatement(text, false); reason != "" {
		p.object.refused = reason
	}
	if p.object.refused == "" {
		p.body.WriteString("\t\t" + text + "\n")
	}
}

// inChain reads a line of a chain: its header, or a rule.
func (p *rulesetReader) inChain(line string, handle uint64) {
	if line == "}" && p.open.text.Len() == 0 {
		p.chain = nil
		return
	}
	if p.open.add(line); p.open.depth > 0 && p.open.text.Len() < maxFilterLine {
		return
	}
	statement := p.open.take()
	if isHeader(statement) {
		p.chain.header = append(p.chain.header, statement)
		return
	}
	if p.set.rules++; p.set.rules > maxFilterRules {
		p.set.rules--
		p.set.cut++
		return
	}
	p.chain.rules = append(p.chain.rules, nftRule{text: statement, handle: handle, refused: badStatement(statement, true)})
}

// header matches what a chain has before its rules.
var header = lazyregexp.New(`^(type (filter|nat|route) hook (prerouting|input|forward|output|postrouting|ingress|egress)( devices? [^;]+)? priority [a-z0-9 +-]+;( policy (accept|drop);)?|policy (accept|drop);?|comment "[^"]*")$`)

func isHeader(statement string) bool { return header.MatchString(statement) }

// unquoted returns a statement without what is in quotes, and whether these are closed.
func unquoted(statement string) (string, bool) {
	var out strings.Builder
	quoted := false
	for _, c := range statement {
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			out.WriteRune(c)
		}
	}
	return out.String(), !quoted
}

// badStatement returns why a statement is not loaded, "" if it is: it has to be one statement, with nothing in it
// that nft takes as a command of its own or reads from a file.
func badStatement(statement string, rule bool) string {
	plain, closed := unquoted(statement)
	open := 0
	for _, c := range plain {
		switch {
		case c == '{':
			open++
		case c == '}':
			open--
		case c < ' ' && c != '\t', c == '$', c == '\\', c == ';':
			return fmt.Sprintf("%q is no part of what nft lists", c)
		case c == '#':
			return "nft prints an expression of iptables that it can't load"
		}
		if open < 0 {
			return "its braces are not closed"
		}
	}
	if !closed || open != 0 || len(statement) >= maxFilterLine {
		return "its braces or quotes are not closed, or it is too long"
	}
	words := strings.Fields(plain)
	if len(words) == 0 {
		return "it is empty"
	}
	for i, word := range words {
		switch word {
		case "include", "define", "undefine", "redefine", "cgroupv2", "osf", "secmark":
			return fmt.Sprintf("%q is not among what is restored", word)
		case "match", "target":
			if rule && i > 0 && words[i-1] == "xt" {
				return "nft prints an expression of iptables that it can't load"
			}
		}
	}
	return ""
}

// nftModules returns the modules that a statement of a family needs.
func nftModules(statement string) (modules []string) {
	plain, _ := unquoted(statement)
	needed := map[string]string{"ct": "nft_ct", "masquerade": "nft_masq", "snat": "nft_nat", "dnat": "nft_nat", "redirect": "nft_redir", "fib": "nft_fib", "log": "nft_log", "limit": "nft_limit",
		"reject": "nft_reject", "numgen": "nft_numgen", "jhash": "nft_hash", "symhash": "nft_hash", "queue": "nft_queue", "quota": "nft_quota", "tproxy": "nft_tproxy", "socket": "nft_socket",
		"synproxy": "nft_synproxy", "ipsec": "nft_xfrm", "tunnel": "nft_tunnel", "dup": "nft_dup_ipv4|nft_dup_netdev", "fwd": "nft_fwd_netdev", "flow": "nft_flow_offload"}
	for _, word := range strings.Fields(plain) {
		if module := needed[word]; module != "" && !slices.Contains(modules, module) {
			modules = append(modules, module)
		}
	}
	if strings.HasPrefix(statement, "type nat ") {
		modules = append(modules, "nft_chain_nat")
	}
	return modules
}

// plainRule returns a rule without its counters, by which rules are compared.
func plainRule(text string) string {
	return strings.Join(strings.Fields(nftCounter.ReplaceAllString(text, "counter")), " ")
}

var (
	valueOf = lazyregexp.New(`"[^"]*"|[0-9a-fA-F]*[0-9:.][0-9a-fA-F:./-]*`)
	expires = lazyregexp.New(` expires [0-9a-z]+`)
)

// shape returns a rule without its values, by which rules are alike.
func shape(text string) string { return valueOf.ReplaceAllString(text, "?") }
