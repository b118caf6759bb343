//go:build linux

package keeper

import (
	"fmt"
	"slices"
	"strings"
)

// splitWords splits a rule as iptables-save prints it: words are in double quotes if they have spaces.
func splitWords(text string) (words []string, ok bool) {
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted, begun = !quoted, true
		case c == '\\' && quoted && i+1 < len(text):
			i++
			word.WriteByte(text[i])
		case (c == ' ' || c == '\t') && !quoted:
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		case c < ' ' && c != '\t':
			return nil, false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, !quoted
}

// knownMatches returns the matches of iptables that rules may have: Neutron, OVN-Kubernetes, kube-proxy, kube-ovn,
// libvirt, docker, firewalld and people use them. A match that names a file (bpf, cgroup), or makes something
// outside of the namespace, is not among them.
func knownMatches() []string {
	return strings.Fields("addrtype ah cluster comment connbytes connlabel connlimit connmark conntrack cpu dccp devgroup dscp dst ecn esp eui64 frag hashlimit hbh helper hl icmp icmp6 icmpv6 ipcomp iprange ipv6header ipvs length limit mac mark mh multiport owner physdev pkttype policy quota realm recent rpfilter rt sctp set socket srh state statistic string tcp tcpmss time tos ttl u32 udp udplite")
}

// knownTargets are the targets, likewise. LED, IDLETIMER, AUDIT and the like reach out of the namespace.
func knownTargets() []string {
	return strings.Fields("ACCEPT DROP RETURN QUEUE CHECKSUM CLASSIFY CONNMARK CT DNAT DNPT DSCP ECN HL HMARK LOG MARK MASQUERADE NETMAP NFLOG NFQUEUE NOTRACK REDIRECT REJECT SET SNAT SNPT SYNPROXY TCPMSS TCPOPTSTRIP TOS TPROXY TRACE TTL")
}

// modulesOf returns the modules that an extension of iptables needs, alternatives with "|" between them.
func modulesOf(extension string) []string {
	switch extension {
	case "ACCEPT", "DROP", "RETURN", "QUEUE":
		return nil
	case "tcp", "udp", "udplite", "icmp", "icmp6", "icmpv6":
		return []string{"xt_tcpudp"}
	case "state", "conntrack":
		return []string{"xt_conntrack|xt_state"}
	case "set", "SET":
		return []string{"xt_set", "ip_set"}
	case "SNAT", "DNAT":
		return []string{"xt_nat", "nft_chain_nat"}
	case "MASQUERADE":
		return []string{"xt_MASQUERADE|ipt_MASQUERADE|ip6t_MASQUERADE", "nft_chain_nat"}
	case "REDIRECT", "NETMAP":
		return []string{"xt_" + extension, "nft_chain_nat"}
	case "REJECT":
		return []string{"ipt_REJECT|ip6t_REJECT"}
	case "NOTRACK", "CT":
		return []string{"xt_CT"}
	case "ttl", "hl", "TTL", "HL":
		return []string{"xt_hl|xt_HL|ipt_ttl|ip6t_hl"}
	case "tos", "dscp":
		return []string{"xt_dscp"}
	case "TOS", "DSCP":
		return []string{"xt_DSCP"}
	case "DNPT", "SNPT":
		return []string{"ip6t_NPT"}
	case "frag", "hbh", "ipv6header", "mh", "rt", "srh", "eui64", "dst":
		return []string{"ip6t_" + extension + "|ip6t_hbh"}
	}
	lower := strings.ToLower(extension)
	return []string{strings.Join([]string{"xt_" + extension, "xt_" + lower, "ipt_" + extension, "ip6t_" + extension}, "|")}
}

// filterRule is one rule of iptables.
type filterRule struct {
	table, chain, text string
	extensions         []string // matches and the target
	signature          string   // the names of all options
	refused            bool
}

// checkRule reads a rule of iptables ("-A ..."), and returns why it is not restored, "" if it is.
func (s *space) checkRule(table, text string, chains map[string]bool) (rule filterRule, refused string) {
	rule = filterRule{table: table, text: text}
	words, ok := splitWords(text)
	if !ok || len(words) < 2 || words[0] != "-A" {
		return rule, "it is not a rule as iptables-save prints it"
	}
	rule.chain = words[1]
	if !chains[rule.chain] {
		return rule, "its chain is not in the table"
	}
	var options []string
	for i := 2; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") || len(word) < 2 || word[1] >= '0' && word[1] <= '9' {
			continue
		}
		options = append(options, word)
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch word {
		case "-m", "--match":
			if !slices.Contains(knownMatches(), next) {
				return rule, fmt.Sprintf("match %q is not among those that are restored", next)
			}
			rule.extensions = append(rule.extensions, next)
			i++
		case "-j", "-g", "--jump", "--goto":
			if !chains[next] {
				if !slices.Contains(knownTargets(), next) {
					return rule, fmt.Sprintf("target %q is neither a chain nor among those that are restored", next)
				}
				rule.extensions = append(rule.extensions, next)
			}
			i++
		case "-s", "-d", "-i", "-o", "-p", "-f", "--comment", "--log-prefix", "--nflog-prefix", "--string", "--hex-string":
			i++
			if word == "-f" {
				i--
			}
		default:
			if reason := badOption(word); reason != "" {
				return rule, reason
			}
		}
	}
	for _, extension := range rule.extensions {
		if module := s.kernel.missing(modulesOf(extension)...); module != "" {
			return rule, fmt.Sprintf("the kernel of this machine has not loaded what it needs: sudo modprobe %s", strings.ReplaceAll(module, "|", ", or "))
		}
	}
	rule.signature = strings.Join(append(options, rule.extensions...), " ")
	return rule, ""
}

// badOption returns why an option of a rule is not restored. Options of iptables itself may be abbreviated, and
// one of them, --modprobe, names a program.
func badOption(word string) string {
	if !strings.HasPrefix(word, "--") {
		return fmt.Sprintf("%q is not an option of a rule", word)
	}
	name, _, _ := strings.Cut(word[2:], "=")
	if name == "mode" || name == "set" || name == "to" {
		return ""
	}
	for _, own := range []string{"modprobe", "table", "append", "insert", "replace", "list-rules", "flush", "new-chain", "delete-chain", "rename-chain", "exact", "version", "wait-interval", "numeric", "verbose", "set-counters"} {
		if strings.HasPrefix(own, name) {
			return fmt.Sprintf("%q is not an option of a rule", word)
		}
	}
	return ""
}

// badChain returns why a chain can't have a name, "" if it can.
func badChain(name string) string {
	if name == "" || len(name) > 64 || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "!") || strings.ContainsAny(name, " \t\"'\\") {
		return "a chain can't have this name"
	}
	return ""
}
