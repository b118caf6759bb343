package rules

import (
	"regexp"
	"strings"
)

// netfilterRule is what a chain of netfilter is for, by the programs that write it.
type netfilterRule struct {
	chain *regexp.Regexp // of the name of the chain
	rule  *regexp.Regexp // of the rule as iptables-save prints it
	words string         // with $1 ... of the rule
}

// netfilterRules lists the rules of neutron's agents (neutron/agent/l3, neutron/agent/linux/iptables_firewall.py),
// of OVN-Kubernetes (go-controller/pkg/node) and of kube-proxy. The first that fits counts.
func netfilterRules() []netfilterRule {
	of := func(chain, rule, words string) netfilterRule {
		return netfilterRule{regexp.MustCompile(chain), regexp.MustCompile(rule), words}
	}
	return []netfilterRule{
		of(`^neutron-.*-float-snat$`, `-s (\S+?)(?:/32)? .*--to-source (\S+)`, "floating IP $2 of $1"),
		of(`^neutron-.*-(?:PREROUTING|OUTPUT)$`, `-d (\S+?)(?:/32)? .*-j DNAT --to-destination (\S+)`, "floating IP $1 of $2"),
		of(`^neutron-.*-snat$`, `-j SNAT --to-source (\S+)`, "SNAT of the router to $1"),
		of(`^neutron-.*-PREROUTING$`, `-d 169\.254\.169\.254/32 .*-j REDIRECT --to-ports (\S+)`, "metadata of instances"),
		of(`^neutron-.*-POSTROUTING$`, `! --ctstate DNAT`, "no SNAT between the router's own networks"),
		of(`^neutron-.*-scope$`, `-j DROP`, "address scopes of different networks"),
		of(`^neutron-openvswi-sg-fallback$`, `-j DROP`, "security groups: nothing allows the packet"),
		of(`^neutron-openvswi-[io]`, `--ctstate INVALID .*-j DROP`, "security groups: the packet belongs to no connection"),
		of(`^neutron-openvswi-s[0-9a-f]`, `-j DROP`, "port security: the addresses are not the port's"),
		of(`^neutron-openvswi-i[0-9a-f]`, `-j RETURN`, "security group, ingress"),
		of(`^neutron-openvswi-o[0-9a-f]`, `-j RETURN`, "security group, egress"),
		of(`^OVN-KUBE-NODEPORT$`, `--dport (\d+) -j DNAT --to-destination (\S+)`, "node port $1 of the service at $2"),
		of(`^OVN-KUBE-EXTERNALIP$`, `-d (\S+?)(?:/32|/128)? .*--dport (\d+) -j DNAT --to-destination (\S+)`, "address $1 outside, port $2, of the service at $3"),
		of(`^OVN-KUBE-ETP$`, `-d (\S+?)(?:/32|/128)? .*--dport (\d+) -j DNAT --to-destination (\S+)`, "address $1 outside, port $2, with externalTrafficPolicy Local, of the service at $3"),
		of(`^OVN-KUBE-ETP$`, `--dport (\d+) -j DNAT --to-destination (\S+)`, "node port $1, with externalTrafficPolicy Local, of the service at $2"),
		of(`^OVN-KUBE-ITP$`, `-d (\S+?)(?:/32|/128)? .*--dport (\d+) -j REDIRECT --to-ports (\d+)`, "internalTrafficPolicy Local, to port $3 of the node, of the service at $1:$2"),
		of(`^OVN-KUBE-ITP$`, `-d (\S+?)(?:/32|/128)? .*--dport (\d+) -j MARK`, "internalTrafficPolicy Local, by the management port, of the service at $1:$2"),
		of(`^OVN-KUBE-SVC$`, `-j (?:DNAT|REDIRECT) (?:--to-destination|--to-ports) (\S+)`, "service, to $1"),
		of(`^mgmtport-snat$`, `@mgmtport-no-snat-(?:nodeports|services-v[46])\b`, "externalTrafficPolicy Local: the client's address stays"),
		of(`^mgmtport-snat$`, `@mgmtport-no-snat-subnets-v[46]\b`, "no SNAT to the management port from these subnets"),
		of(`^mgmtport-snat$`, `\bsnat ip6? to (\S+)`, "SNAT to the management port $1"),
		of(`^OVN-KUBE-EGRESS-IP-MULTI-NIC$`, `-s (\S+?)(?:/32)? .*--to-source (\S+)`, "egress IP $2 of $1"),
		of(`^OVN-KUBE-EGRESS-SVC$`, `--to-source (\S+)`, "egress service, from $1"),
		of(`^KUBE-(?:SVC|SEP|EXT|NODEPORTS)`, `--comment "([^"]+)"`, "service $1"),
	}
}

// atAddress matches how the words of a rule name a service.
var atAddress = regexp.MustCompile(`the service at (\S+)`)

// NetfilterWords returns what a rule of netfilter is for, in the user's words; "" for a rule that is not known.
// chain has the table before the name of the chain. serviceAt returns the name of the service with an address and a port,
// "" if it is not known; nil for no knowledge of services.
func NetfilterWords(chain, rule string, serviceAt func(address string) string) string {
	_, name, _ := strings.Cut(chain, " ")
	for _, known := range netfilterRules() {
		match := known.rule.FindStringSubmatchIndex(rule)
		if match == nil || !known.chain.MatchString(name) {
			continue
		}
		words := string(known.rule.ExpandString(nil, known.words, rule, match))
		if at := atAddress.FindStringSubmatch(words); at != nil && serviceAt != nil {
			if service := serviceAt(at[1]); service != "" {
				return strings.Replace(words, at[0], "Service "+service, 1)
			}
		}
		return words
	}
	return ""
}

// NetfilterReason returns the reason for a drop by a rule in a chain of netfilter.
func NetfilterReason(chain string) Reason {
	_, name, _ := strings.Cut(chain, " ")
	switch {
	case strings.HasPrefix(name, "neutron-openvswi-s") && !strings.HasPrefix(name, "neutron-openvswi-sg"):
		return PortSecurity
	case strings.HasPrefix(name, "neutron-openvswi-"):
		return ACL
	}
	return Netfilter
}
