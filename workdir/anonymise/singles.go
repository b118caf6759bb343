package anonymise

import (
	"bytes"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir"
)

// A single is a name of one word that has a meaning elsewhere, as of a host that is called gateway. It is replaced where it is
// known to be a name, and stays elsewhere.

// values are words that columns have as values: types, actions, protocols, options. A name that is one of them stays.
const values = " map set uuid router switch localnet localport l2gateway l3gateway vtep external virtual remote patch container drop allow reroute " +
	"reject pass tcp udp sctp icmp icmp4 icmp6 arp ip ip4 ip6 ipv4 ipv6 true false none auto dynamic unknown default global all enabled disabled " +
	"snat dnat geneve vxlan stt gre erspan system netdev internal ingress egress both info warning notice alert debug error up down init online " +
	"offline local kbps pktps bridged overlay rarp slaac "

func isSingle(name string) bool {
	return len(name) > 1 && !strings.Contains(values, " "+strings.ToLower(name)+" ")
}

// beforeName matches what is before a name in expressions, outputs of tools and logs.
var beforeName = lazyregexp.New(`(?:[@$]|ct-zone-|cr-|GR_|ext_|\bbr\w+_|k8s-|\b(?:r?to[a-z]+|[a-z]?[a-z]tor)-|^[0-9]+_|name *[:=] *"?|` +
	`(?:system|iface)-id *= *"?|\b(?:lport|[pP]ort|Chassis|Port_Binding) "?|[0-9a-f]{12} \(|` +
	`^Linux |^[A-Z][a-z]{2} [ 0-3][0-9] [0-9:]{8} |^[0-9]{4}-[-0-9T:.,+]+Z? )$`)

// isKnown reports whether a word of a text is a name of one word, and known as one by what is before and after it.
func (f *found) isKnown(before, name, after []byte) bool {
	const longest = 64
	if !f.singles[string(name)] {
		return false
	}
	if bytes.HasPrefix(after, []byte{'-'}) {
		return bytes.HasSuffix(before, []byte("sosreport-"))
	}
	isQuoted := bytes.HasSuffix(before, []byte{'"'}) && bytes.HasPrefix(after, []byte{'"'}) && !bytes.HasPrefix(after, []byte(`":`))
	return isQuoted || beforeName.Match(before[max(0, len(before)-longest):])
}

// single replaces a name of one word, and returns another text as it is.
func (r *renamer) single(name string) string {
	if !r.found.singles[name] {
		return name
	}
	r.words[name] = r.key.name(name)
	return r.words[name]
}

// host replaces the name of a host.
func (r *renamer) host(name string) string { return r.single(r.name(name)) }

// ofHosts are the keys in the database of Open vSwitch with names that flows and outputs do not have.
var ofHosts = []string{"hostname", "system-id", "iface-id"}

// column replaces a string of a database.
func (r *renamer) column(text string, at place) string {
	to := r.name(text)
	switch {
	case at.table == "_comment": // the command that made the transaction
		words := strings.Split(to, " ")
		for i, word := range words {
			words[i] = r.single(word)
		}
		return strings.Join(words, " ")
	case at.isKey, at.kind == string(workdir.OVS) && !slices.Contains(ofHosts, at.before), at.before == "network_name",
		strings.HasPrefix(at.table, "DHCP") && at.kind == string(workdir.SB):
		return to
	}
	items := strings.Split(to, ",")
	for i, item := range items {
		name, after := item, ""
		if name, after, _ = strings.Cut(item, ":"); after != "" { // a port and the address from which its service is checked
			after = ":" + after
		} else if at := strings.LastIndex(item, "_ip"); at >= 0 { // the addresses of a port group
			name, after = item[:at], item[at:]
		}
		items[i] = r.single(name) + after
	}
	return strings.Join(items, ",")
}
