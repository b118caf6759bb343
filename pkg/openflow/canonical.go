package openflow

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Canonical writes flows and groups in one form, that of ovs-ofctl -O OpenFlow15 --no-names
// for the most part. Two spellings of one flow, from dumps in other versions of OpenFlow or
// with other options, have the same form.
type Canonical struct {
	// Oldest is the oldest of the versions in which the flows to compare were dumped; the
	// zero Version is OpenFlow 1.5. The form leaves out what Oldest can't express.
	Oldest Version
	// Ports are the numbers of the ports by their PortName, which ovs-ofctl --names prints.
	Ports map[string]int
	// NoBucketProperties leaves out of groups what dumps of OpenFlow 1.1 to 1.4 do not have.
	NoBucketProperties bool

	leftOut map[string]bool
}

// LeftOut names what the form left out of flows because Oldest can't express it.
func (c *Canonical) LeftOut() []string { return slices.Sorted(maps.Keys(c.leftOut)) }

func (c *Canonical) leaveOut(what string) {
	if c.leftOut == nil {
		c.leftOut = map[string]bool{}
	}
	c.leftOut[what] = true
}

// PortName returns the name of a port as OpenFlow has it: its first 15 bytes. ovs-ofctl prints
// the number of a port if another one has the same name.
func PortName(name string) string {
	const most = 15
	return name[:min(most, len(name))]
}

// HasBucketProperties reports whether dumps of groups have the ids of buckets and the
// selection method. OpenFlow 1.0 has no groups, and ovs-ofctl prints them as in 1.5.
func (v Version) HasBucketProperties() bool { return v < OpenFlow11 || v > OpenFlow14 }

// OlderOf returns the older of two versions; one that is not known counts as the newest.
func OlderOf(a, b Version) Version { return min(cmp.Or(a, OpenFlow15), cmp.Or(b, OpenFlow15)) }

func (c *Canonical) since(v Version) bool { return c.Oldest == 0 || c.Oldest >= v }

// Key returns the key of a flow with the match in its canonical form.
func (c *Canonical) Key(f Flow) Key {
	k := f.Key()
	k.Match = c.Match(k.Match)
	return k
}

// criterion is a field of a match.
type criterion struct {
	field
	text string // with its name; "" for a protocol, which is written as a word
}

// protocol is a word for a type of Ethernet frame, and a protocol of IP.
type protocol struct {
	word             string
	etherType, proto uint64
}

// protocolNamed returns the protocol that a word stands for.
func protocolNamed(word string) (protocol, bool) {
	if word == "ipv4" {
		word = "ip"
	}
	for _, p := range protocols {
		if p.word == word {
			return p, true
		}
	}
	return protocol{}, false
}

// Protocol returns what a word in a match stands for: a type of Ethernet frame, and a protocol
// of IP, 0 for any.
func Protocol(word string) (etherType uint16, proto uint8, ok bool) {
	p, ok := protocolNamed(word)
	return uint16(p.etherType), uint8(p.proto), ok
}

var protocols = []protocol{
	{"ip", 0x800, 0}, {"ipv6", 0x86dd, 0}, {"arp", 0x806, 0}, {"rarp", 0x8035, 0}, {"mpls", 0x8847, 0}, {"mplsm", 0x8848, 0},
	{"icmp", 0x800, 1}, {"igmp", 0x800, 2}, {"tcp", 0x800, 6}, {"udp", 0x800, 17}, {"sctp", 0x800, 132},
	{"tcp6", 0x86dd, 6}, {"udp6", 0x86dd, 17}, {"icmp6", 0x86dd, 58}, {"sctp6", 0x86dd, 132},
}

// Match returns the fields of a match in their canonical form.
func (c *Canonical) Match(text string) string {
	var list []criterion
	var etherType, proto uint64
	for token := range Tokens(text) {
		name, value, valued := strings.Cut(token, "=")
		if p, ok := protocolNamed(token); ok {
			etherType, proto = p.etherType, p.proto
			continue
		}
		f := fieldNamed(name)
		switch n, ok := f.parse(value); {
		case !valued:
			list = append(list, criterion{f, f.match})
			continue
		case f.name == "eth_type" && ok && etherType == 0:
			etherType = n.low
			continue
		case f.name == "nw_proto" && ok && n.low != 0 && proto == 0:
			proto = n.low
			continue
		}
		f, value = c.criterion(f, value)
		list = append(list, criterion{f, f.match + "=" + value})
	}
	list = append(list, protocolCriteria(etherType, proto)...)
	slices.SortStableFunc(list, func(a, b criterion) int { return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.text, b.text)) })
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = x.text
	}
	return strings.Join(texts, ",")
}

// protocolCriteria returns the fields for the protocols of a match, in a word if there is one.
func protocolCriteria(etherType, proto uint64) (list []criterion) {
	word := ""
	for _, p := range protocols {
		if p.etherType == etherType && (p.proto == proto || word == "" && p.proto == 0) {
			if word = p.word; p.proto == proto {
				proto = 0
			}
		}
		if proto == 0 && word != "" {
			break
		}
	}
	kind := fieldNamed("eth_type")
	switch {
	case word != "":
		list = append(list, criterion{kind, word})
	case etherType != 0:
		list = append(list, criterion{kind, kind.match + "=" + word16(etherType)})
	}
	if proto != 0 {
		f := fieldNamed("nw_proto")
		list = append(list, criterion{f, f.match + "=" + strconv.FormatUint(proto, 10)})
	}
	return list
}

func word16(n uint64) string { return word{0, n}.hex() }

// criterion returns the value of a field in a match, and the field by which matches have it.
func (c *Canonical) criterion(f field, text string) (field, string) {
	if f.notation == portName {
		return f, c.port(text)
	}
	value, mask, ok := f.parseMasked(text)
	if !ok {
		return f, text
	}
	switch {
	case f.name == "vlan_vid" && mask == ones(f.bits) && value.low&tagged != 0,
		f.name == "vlan_tci" && mask == ones(13) && value.low&tagged != 0:
		f = fieldNamed("dl_vlan")
		return f, f.format(value.and(ones(f.bits)))
	case f.name == "ip_dscp" && mask == ones(f.bits):
		f = fieldNamed("nw_tos")
		return f, f.format(value.left(2))
	}
	return f, f.formatMasked(value, mask)
}

// parseMasked reads a value with or without a mask.
func (f field) parseMasked(text string) (value, mask word, ok bool) {
	number, masked, hasMask := strings.Cut(text, "/")
	value, ok = f.parse(number)
	mask = ones(cmp.Or(f.bits, 128))
	if hasMask && ok {
		mask, ok = f.parseMask(masked)
	}
	return value, mask, ok
}

// port returns the number of a port that a text names, or the word for a reserved one.
func (c *Canonical) port(text string) string {
	if n, err := strconv.ParseUint(text, 0, 32); err == nil {
		return formatPort(n)
	}
	name := text
	if unquoted, err := strconv.Unquote(text); err == nil {
		name = unquoted
	}
	if n, ok := c.Ports[name]; ok {
		return formatPort(uint64(n))
	}
	if upper := strings.ToUpper(text); upper != text {
		for _, reserved := range reservedPorts {
			if reserved == upper {
				return upper
			}
		}
	}
	return text
}

// Group returns a group in its canonical form.
func (c *Canonical) Group(text string) string {
	head, rest, _ := strings.Cut(text, "bucket=")
	if c.NoBucketProperties {
		head = withoutTokens(head, "selection_method", "selection_method_param", "fields")
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(head, ","))
	for rest != "" {
		bucket := rest
		if end := indexBucket(rest); end >= 0 {
			bucket, rest = rest[:end], rest[end+len(",bucket="):]
		} else {
			rest = ""
		}
		b.WriteString(",bucket=" + c.bucket(bucket))
	}
	return b.String()
}

// indexBucket returns the index of the next ",bucket=", -1 for none.
func indexBucket(text string) int {
	for at := 0; at < len(text); {
		at += IndexSeparator(text[at:], false)
		if strings.HasPrefix(text[at:], ",bucket=") {
			return at
		}
		at++
	}
	return -1
}

// bucket returns a bucket in its canonical form. Its properties precede its actions.
func (c *Canonical) bucket(text string) string {
	properties, actions := "", text
	if before, after, found := strings.Cut(text, "actions="); found {
		properties, actions = before, after
	}
	var list []string
	for token := range Tokens(properties) {
		if port, found := strings.CutPrefix(token, "watch_port:"); found {
			token = "watch_port:" + c.port(port)
		}
		if token != "weight:1" && !(c.NoBucketProperties && strings.HasPrefix(token, "bucket_id:")) {
			list = append(list, token)
		}
	}
	return strings.Join(append(list, "actions="+c.Actions(actions)), ",")
}

// withoutTokens returns a text without the tokens with these names.
func withoutTokens(text string, names ...string) string {
	var kept []string
	for token := range Tokens(text) {
		if end := strings.IndexAny(token+"=", "=("); !slices.Contains(names, token[:end]) {
			kept = append(kept, token)
		}
	}
	return strings.Join(kept, ",")
}
