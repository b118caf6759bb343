package openflow

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// assignment is an action that writes a constant into a field, or into a part of it.
type assignment struct {
	field
	value, mask word
	whole       bool // the field has no mask, and may have any width
}

func (a assignment) String() string {
	if a.whole && a.bits == 0 {
		return "set_field:" + a.format(a.value) + "->" + a.name
	}
	return "set_field:" + a.formatMasked(a.value, a.mask) + "->" + a.name
}

// then returns the assignment that has the effect of both, b after a.
func (a assignment) then(b assignment) assignment {
	a.value, a.mask = a.value.andNot(b.mask).or(b.value.and(b.mask)), a.mask.or(b.mask)
	a.whole = a.whole || b.whole
	return a
}

// Actions returns a list of actions in its canonical form. Where it outputs a packet to several ports one after the
// other, these are in the order of their texts: the copies are the same.
func (c *Canonical) Actions(text string) string {
	list := &actionList{Canonical: c}
	for action := range Split(text) {
		list.add(strings.TrimSpace(action))
	}
	list.flush()
	list.writeOutputs()
	return cmp.Or(list.done.String(), "drop")
}

// tagged is the bit of a VLAN's TCI that is set in each packet with a tag.
const tagged = 0x1000

// actionList is a list of actions in the making.
type actionList struct {
	*Canonical
	done    strings.Builder
	outputs []string    // not in done yet: the next action may be another output
	last    *assignment // not in done yet: the next action may assign to the same field
}

func (l *actionList) write(text string) {
	switch {
	case text == "":
	case strings.HasPrefix(text, "output:"):
		l.outputs = append(l.outputs, text)
	default:
		l.writeOutputs()
		l.append(text)
	}
}

// writeOutputs writes the outputs that follow each other.
func (l *actionList) writeOutputs() {
	slices.Sort(l.outputs)
	for _, output := range l.outputs {
		l.append(output)
	}
	l.outputs = nil
}

func (l *actionList) append(text string) {
	if l.done.Len() > 0 {
		l.done.WriteByte(',')
	}
	l.done.WriteString(text)
}

// flush writes the last assignment.
func (l *actionList) flush() {
	if l.last == nil {
		return
	}
	a := *l.last
	if l.last = nil; a.unmasked && !l.since(OpenFlow12) && a.mask != ones(a.bits) {
		l.leaveOut("masks of addresses and ports that they set")
		a.mask = ones(a.bits)
	}
	switch {
	case a.name == "vlan_vid":
		a.value.low, a.mask.low = a.value.low|tagged, a.mask.low|tagged
	case a.name == "vlan_tci" && a.value.low&tagged == 0 && !l.since(OpenFlow12):
		l.write("pop_vlan")
		return
	}
	l.write(a.String())
}

// add adds an action.
func (l *actionList) add(text string) {
	if a, ok := l.assignment(text); ok {
		if l.last != nil && l.last.name == a.name {
			a = l.last.then(a)
		} else {
			l.flush()
		}
		l.last = &a
		return
	}
	if text = l.action(text); text != "" && text != "drop" {
		l.flush()
		l.write(text)
	}
}

// settingActions are the actions of OpenFlow 1.0 and 1.1 that set a field.
var settingActions = map[string]string{
	"mod_dl_src": "eth_src", "mod_dl_dst": "eth_dst", "mod_nw_src": "ip_src", "mod_nw_dst": "ip_dst", "mod_nw_tos": "nw_tos", "mod_nw_ecn": "nw_ecn",
	"mod_nw_ttl": "nw_ttl", "mod_tp_src": "tp_src", "mod_tp_dst": "tp_dst", "mod_vlan_vid": "vlan_vid", "set_vlan_vid": "vlan_vid", "mod_vlan_pcp": "vlan_pcp",
	"set_vlan_pcp": "vlan_pcp", "set_tunnel": "tun_id", "set_tunnel64": "tun_id", "set_mpls_label": "mpls_label", "set_mpls_tc": "mpls_tc", "set_mpls_ttl": "mpls_ttl",
}

// Target returns the name in set_field of the field that an action writes, also if it writes
// only a part of it; "" for another action.
func Target(action string) string {
	end := strings.IndexAny(action, ":(")
	if end < 0 {
		return ""
	}
	name, target := action[:end], action[end+1:]
	switch name {
	case "set_field", "load", "move":
		if _, target, _ = strings.Cut(target, "->"); target == "" {
			return ""
		}
	case "pop":
	default:
		return settingActions[name]
	}
	target, _, _ = strings.Cut(target, "[")
	return fieldNamed(target).name
}

// Assignment splits an action that writes a constant into a field, in its canonical form. The
// value may have a mask.
func Assignment(action string) (value, field string, ok bool) {
	rest, ok := strings.CutPrefix(action, "set_field:")
	if at := strings.LastIndex(rest, "->"); ok && at >= 0 {
		return rest[:at], rest[at+len("->"):], true
	}
	return "", "", false
}

// assignment reads an action that writes a constant.
func (c *Canonical) assignment(text string) (a assignment, ok bool) {
	end := strings.IndexAny(text, ":(")
	if end < 0 {
		return a, false
	}
	name, argument := text[:end], strings.TrimSuffix(text[end+1:], ")")
	switch name {
	case "set_field", "load":
		value, target, found := strings.Cut(text[end+1:], "->")
		if !found {
			return a, false
		}
		a, ok = c.written(value, target)
	default:
		set := settingActions[name]
		if set == "" {
			return a, false
		}
		a, ok = c.written(argument, set)
	}
	if ok && a.name == "nw_tos" { // ECN is a field of its own
		a = assignment{fieldNamed("ip_dscp"), a.value.right(2), a.mask.right(2), a.whole}
	}
	return a, ok
}

// written returns what writing a value into a field, or into a part of one, does.
func (c *Canonical) written(value, target string) (a assignment, ok bool) {
	name, part, sliced := strings.Cut(target, "[")
	a.field = fieldNamed(name)
	if a.notation == portName {
		if port := c.port(value); port != value {
			value = port
		}
		for n, reserved := range reservedPorts {
			if reserved == value {
				value = strconv.FormatUint(n, 10)
			}
		}
	}
	if a.value, a.mask, ok = a.parseMasked(value); !ok {
		return a, false
	}
	a.whole = !strings.Contains(value, "/")
	if part = strings.TrimSuffix(part, "]"); !sliced || part == "" {
		return a, true
	}
	low, high, ok := slice(part)
	if !ok {
		return a, false
	}
	a.whole = false
	a.mask = ones(high - low + 1).left(low)
	a.value = a.value.left(low)
	return a, true
}

// slice reads a range of bits: "5" or "0..31".
func slice(text string) (low, high int, ok bool) {
	first, last, isRange := strings.Cut(text, "..")
	low, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	if high = low; isRange {
		if high, err = strconv.Atoi(last); err != nil {
			return 0, 0, false
		}
	}
	return low, high, 0 <= low && low <= high && high < 128
}

// action returns an action that is no assignment, "" for one that is left out.
func (c *Canonical) action(text string) string {
	switch text {
	case "strip_vlan":
		return "pop_vlan"
	case "dec_ttl(0)", "dec_ttl()":
		return "dec_ttl"
	}
	end := strings.IndexAny(text+":", ":(")
	name, rest := text[:end], text[end:]
	switch name {
	case "meter":
		if !c.since(OpenFlow13) {
			c.leaveOut("meters")
			return ""
		}
	case "push_vlan":
		if !c.since(OpenFlow11) { // setting a VLAN adds the tag
			c.leaveOut("added VLAN tags")
			return ""
		}
	case "goto_table":
		if !c.since(OpenFlow11) {
			return "resubmit(," + rest[1:] + ")"
		}
	case "enqueue":
		return c.enqueue(rest)
	case "output", "resubmit":
		if port, ok := strings.CutPrefix(rest, ":"); ok && !strings.Contains(port, "[") {
			return c.output(name, c.port(port))
		}
	}
	if strings.HasPrefix(rest, "(") {
		return c.nested(name, rest)
	}
	if n, err := strconv.ParseUint(text, 10, 32); err == nil { // ovs-ofctl takes a port without its action
		return c.output("output", formatPort(n))
	}
	return fieldReferences(text)
}

// output returns an action on a port; a reserved port is an action itself.
func (c *Canonical) output(name, port string) string {
	if _, err := strconv.Atoi(port); err != nil && name == "output" && !strings.HasPrefix(port, `"`) && c.reserved(port) {
		return port
	}
	return name + ":" + port
}

func (c *Canonical) reserved(port string) bool {
	for _, name := range reservedPorts {
		if name == port {
			return true
		}
	}
	return false
}

// enqueue returns the actions that newer versions of OpenFlow have for enqueue.
func (c *Canonical) enqueue(arguments string) string {
	arguments = strings.TrimSuffix(arguments[min(1, len(arguments)):], ")")
	at := strings.LastIndexAny(arguments, ":,")
	if at < 0 {
		return "enqueue:" + arguments
	}
	return "set_queue:" + arguments[at+1:] + "," + c.output("output", c.port(arguments[:at])) + ",pop_queue"
}

// nested returns an action with arguments in parentheses, and what may follow these.
func (c *Canonical) nested(name, text string) string {
	end := indexClosing(text)
	if end < 0 {
		return name + text
	}
	inner, after := text[1:end], text[end+1:]
	switch name {
	case "clone", "write_actions", "exec":
		inner = c.Actions(inner)
	case "nat", "note", "conjunction", "encap", "decap":
	case "controller":
		inner = c.arguments(name, inner, func(argument string) string { return argument })
	default:
		inner = c.arguments(name, inner, c.argument)
	}
	return name + "(" + inner + ")" + fieldReferences(after)
}

// indexClosing returns the index of the parenthesis that closes the first one, -1 for none.
func indexClosing(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// arguments rewrites each argument of an action.
func (c *Canonical) arguments(name, text string, rewrite func(string) string) string {
	var list []string
	members := false
	for argument := range Split(strings.TrimSuffix(text, ",")) { // an empty last argument has no effect
		argument = strings.TrimSpace(argument)
		if port, found := strings.CutPrefix(argument, "slaves:"); found { // before OVS 2.15
			argument = "members:" + port
		}
		switch port, found := strings.CutPrefix(argument, "members:"); {
		case found && port != "":
			argument, members = "members:"+c.port(port), true
		case members && argument != "", name == "resubmit" && len(list) == 0 && argument != "":
			argument = c.port(argument)
		default:
			argument = rewrite(argument)
		}
		list = append(list, argument)
	}
	return strings.Join(list, ",")
}

// argument rewrites an argument of ct, learn, sample and others.
func (c *Canonical) argument(text string) string {
	if name, value, found := strings.Cut(text, "="); found {
		switch name {
		case "port", "sampling_port", "in_port":
			return name + "=" + c.port(value)
		}
	} else if inner, found := strings.CutPrefix(text, "exec("); found {
		return "exec(" + c.Actions(strings.TrimSuffix(inner, ")")) + ")"
	} else if strings.HasPrefix(text, "nat(") {
		return text
	}
	return fieldReferences(text)
}

// fieldReferences returns a text in which the fields of NXM and OXM have their other names, and
// a part of a field that is all of it is written as the whole.
func fieldReferences(text string) string {
	if !strings.Contains(text, "XM_") && !strings.Contains(text, "[") {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		end := 0
		for end < len(rest) && isWordByte(rest[end]) {
			end++
		}
		if end == 0 {
			b.WriteByte(rest[0])
			rest = rest[1:]
			continue
		}
		name := rest[:end]
		rest = rest[end:]
		if !strings.HasPrefix(rest, "[") {
			b.WriteString(name)
			continue
		}
		f := fieldNamed(name)
		b.WriteString(f.name)
		close := strings.IndexByte(rest, ']')
		if close < 0 {
			continue
		}
		low, high, ok := slice(rest[1:close])
		switch {
		case ok && low == 0 && high == f.bits-1:
			b.WriteString("[]")
		case ok && low == high:
			b.WriteString("[" + strconv.Itoa(low) + "]")
		default:
			b.WriteString(rest[:close+1])
		}
		rest = rest[close+1:]
	}
	return b.String()
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
