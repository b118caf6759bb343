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
		if !strings.HasPrefix(word, "-") || len(word) < 2 {
			continue
		}
		options = append(options, word)
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch word {
		case "-m":
			if !slices.Contains(knownMatches(), next) {
				return rule, fmt.Sprintf("match %q is not among those that are restored", next)
			}
			rule.extensions = append(rule.extensions, next)
			i++
		case "-j", "-g":
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
	if !s.kernel.take(s.ruleMemory(words)) {
		return rule, overMemory
	}
	rule.signature = strings.Join(append(options, rule.extensions...), " ")
	return rule, ""
}

// longOptions are the long options of iptables itself (iptables(8)). iptables-save prints none of them: a few are commands, after some of which
// iptables-restore makes none of its rules and ends with success (--help, --version), --modprobe names a program, and the others have one letter.
func longOptions() []string {
	return strings.Fields("append delete check insert replace list list-rules flush zero new-chain delete-chain rename-chain policy source destination src dst protocol in-interface out-interface jump goto match table numeric verbose wait wait-interval exact fragments version help line-numbers modprobe set-counters ipv4 ipv6")
}

// badOption returns why an option of a rule is not restored: iptables-save writes those of matches and targets alone, in full and without "=".
// Of iptables-restore's own, getopt_long(3) takes beginnings.
func badOption(word string) string {
	name, isLong := strings.CutPrefix(word, "--")
	ofMatches := []string{"mode", "set", "to", "pol", "proto"} // beginnings that are options of matches
	abbreviated := slices.ContainsFunc(longOptions(), func(own string) bool { return strings.HasPrefix(own, name) }) && !slices.Contains(ofMatches, name) ||
		strings.HasPrefix(name, "hashlimit") && !slices.Contains(hashlimitOptions(), name)
	if !isLong || abbreviated || strings.Contains(name, "=") {
		return fmt.Sprintf("%q is not an option of a rule as iptables-save prints it", word)
	}
	return ""
}

// hashlimitOptions are the options of the match hashlimit (iptables-extensions(8)).
func hashlimitOptions() []string {
	return strings.Fields("hashlimit hashlimit-upto hashlimit-above hashlimit-burst hashlimit-mode hashlimit-srcmask hashlimit-dstmask hashlimit-name hashlimit-htable-size hashlimit-htable-max hashlimit-htable-expire hashlimit-htable-gcinterval hashlimit-rate-match hashlimit-rate-interval")
}

// badChain returns why a chain can't have a name, "" if it can.
func badChain(name string) string {
	if name == "" || len(name) > 64 || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "!") || strings.ContainsAny(name, " \t\"'\\") {
		return "a chain can't have this name"
	}
	return ""
}
