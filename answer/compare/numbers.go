package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/snapshot/node"
	"ovs-offline/snapshot/rules"
	"ovs-offline/workdir"
)

// someKey stands for the key of a datapath or of a port.
const someKey = "key"

// numbers maps the numbers in the flows of a bridge to names that do not depend on the capture.
type numbers struct {
	ports    map[string]string // by OpenFlow port number
	networks map[string]string // of neutron's agent, by local VLAN
	groups   map[uint32]string // the buckets, with names
	meters   map[uint32]string // the bands
	rules    *rules.Rules      // nil for a bridge without OVN
	keyless  bool              // keys of datapaths and ports are left out
	spelling openflow.Canonical
}

// readNumbers reads the names for the numbers on a bridge of a node.
func (n *capturedNode) readNumbers(bridge string, of *rules.Rules, common common) (*numbers, error) {
	found := &numbers{ports: map[string]string{"LOCAL": "LOCAL"}, networks: map[string]string{}, groups: map[uint32]string{}, meters: map[uint32]string{}, rules: of, keyless: common.keyless, spelling: common.spelling}
	found.spelling.Ports = map[string]int{openflow.PortName(bridge): openflow.PortLocal}
	bridges, err := n.recorded()
	if err != nil {
		return nil, err
	}
	found.readPorts(bridges, bridge)
	if common.meters {
		meters, err := entries(n.dir, n.dir.DumpFile(bridge, workdir.Meters), openflow.Meters)
		if err != nil {
			return nil, err
		}
		for _, m := range meters {
			found.meters[m.ID] = afterID(m.Text, " ")
		}
	}
	if common.groups {
		groups, err := entries(n.dir, n.dir.DumpFile(bridge, workdir.Groups), openflow.Groups)
		if err != nil {
			return nil, err
		}
		spelling := common.ofGroups
		spelling.Ports = found.spelling.Ports
		for _, g := range groups {
			found.groups[g.ID] = (&translation{numbers: found}).list(afterID(spelling.Group(g.Text), ","))
		}
	}
	return found, nil
}

// afterID returns the text of a group or a meter behind its id.
func afterID(text, separator string) string {
	_, rest, _ := strings.Cut(text, separator)
	return rest
}

// entries reads the groups or the meters of a dump; none if it was not collected.
func entries(wd *workdir.Dir, path string, read func(io.Reader) ([]openflow.Entry, []openflow.Problem)) ([]openflow.Entry, error) {
	dump, ok, err := wd.Collected(path)
	if !ok {
		return nil, err
	}
	defer dump.Close()
	list, _ := read(dump)
	return list, nil
}

// readPorts reads the names of a bridge's ports. A tunnel is named by its type and its
// remote address: its own name is made of an identifier.
func (x *numbers) readPorts(all []*node.Bridge, bridge string) {
	for iface := range node.Interfaces(all...) {
		if iface.Port.Bridge.Name != bridge {
			continue
		}
		if network := iface.Port.Config["net_uuid"]; network != "" && iface.Port.Tag != 0 {
			x.networks[strconv.Itoa(iface.Port.Tag)] = "network " + network
		}
		if iface.Number != 0 {
			x.spelling.Ports[openflow.PortName(iface.Name)] = iface.Number
			x.ports[strconv.Itoa(iface.Number)] = portName(iface.Name, iface.Type, iface.Options)
		}
	}
}

func portName(name, kind string, options map[string]string) string {
	if remote := options["remote_ip"]; remote != "" && remote != "flow" {
		return kind + " to " + remote
	}
	return name
}

// translation rewrites a flow in names. Keys of ports belong to the datapath in the metadata, which
// actions change: they are rewritten in their order.
type translation struct {
	*numbers
	datapath uint64
}

// flow returns a flow, without its cookie, in names, and the name of the datapath that it
// matches.
func (x *numbers) flow(f openflow.Flow) (match, actions, datapath string) {
	t := &translation{numbers: x}
	key := x.spelling.Key(f)
	actions = x.spelling.Actions(f.Actions())
	if x.rules != nil && !x.keyless {
		t.datapath = key.Number("metadata")
		datapath = x.rules.Datapath(t.datapath).Name
	}
	match = fmt.Sprintf("table=%d,priority=%d", key.Table, key.Priority)
	if key.Match != "" {
		match += "," + t.fields(key.Match)
	}
	if t.datapath != 0 && strings.Contains(match, `reg15="_MC_`) || strings.Contains(match, "reg15="+someKey) {
		return match, t.copies(actions), datapath
	}
	return match, t.list(actions), datapath
}

// leading returns the number at the beginning of a text.
func leading(text string) uint64 {
	end := strings.IndexFunc(text, func(c rune) bool { return !strings.ContainsRune("0123456789abcdefxABCDEF", c) })
	if end >= 0 {
		text = text[:end]
	}
	n, _ := strconv.ParseUint(text, 0, 64)
	return n
}

// fields rewrites the fields of a match.
func (t *translation) fields(match string) string {
	var b strings.Builder
	for field := range openflow.Tokens(match) {
		key, value, hasValue := strings.Cut(field, "=")
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(key)
		if hasValue {
			b.WriteString("=" + t.value(key, value))
		}
	}
	return b.String()
}

// value returns the value of a field in names.
func (t *translation) value(field, value string) string {
	number, mask, _ := strings.Cut(value, "/")
	n, err := strconv.ParseUint(number, 0, 64)
	switch field {
	case "in_port":
		return cmp.Or(t.ports[number], value)
	case "conj_id":
		return "*"
	case "dl_vlan", "vlan_vid":
		return cmp.Or(t.networks[strconv.FormatUint(n&0xfff, 10)], value)
	case "reg6":
		if t.rules == nil {
			return cmp.Or(t.networks[strconv.FormatUint(n, 10)], value)
		}
	case "reg5":
		if t.rules == nil {
			return cmp.Or(t.ports[strconv.FormatUint(n, 10)], value)
		}
	}
	if bits, err := strconv.ParseUint(mask, 0, 64); err == nil && bits&(bits+1) == 0 { // a whole key
		n, mask = n&bits, ""
	}
	if err != nil || t.rules == nil || mask != "" {
		return value
	}
	switch field {
	case "metadata", "tun_id", "reg14", "reg15", "tun_metadata0":
		if t.keyless && n != 0 {
			return someKey
		}
	}
	switch field {
	case "metadata", "tun_id":
		if d := t.rules.Datapath(n); d.Name != "" {
			return d.String()
		}
	case "reg14", "reg15":
		return t.port(n, value)
	case "tun_metadata0":
		to := t.port(n&0xffff, strconv.FormatUint(n&0xffff, 10))
		if from := n >> 16; from > 0 {
			return t.port(from, strconv.FormatUint(from, 10)) + " to " + to
		}
		return to
	case "reg11", "reg12", "reg13", "ct_zone":
		if n != 0 {
			return "zone"
		}
	}
	return value
}

// port returns the name of a logical port, or else the value of the field that has its key.
func (t *translation) port(key uint64, value string) string {
	if p, ok := t.rules.Port(t.datapath, key); ok {
		return strconv.Quote(p.Name)
	}
	return value
}

// list rewrites a list of actions. Copies that only go to ports are in the order of the
// ports' names, because otherwise they are in the order of the ports' numbers.
func (t *translation) list(actions string) string {
	list := t.actions(actions)
	for from := 0; from < len(list); from++ {
		to := from
		for to < len(list) && strings.HasPrefix(list[to], "output:") {
			to++
		}
		slices.Sort(list[from:to])
		from = max(from, to-1)
	}
	return strings.Join(list, ",")
}

// copies works like list for the flow of a multicast group, whose copies for the members
// are in the order of the members' keys. Each ends with a resubmit.
func (t *translation) copies(actions string) string {
	var done []string
	last := ""
	for _, action := range strings.SplitAfter(t.list(actions), "resubmit(") {
		end := strings.IndexByte(action, ')') + 1
		if last != "" && end > 0 {
			done, action = append(done, last+action[:end]), strings.TrimPrefix(action[end:], ",")
		}
		last = action
	}
	slices.Sort(done)
	if last != "" {
		done = append(done, last)
	}
	return strings.Join(done, ",")
}

func (t *translation) actions(text string) []string {
	var list []string
	for action := range openflow.Split(text) {
		list = append(list, t.action(strings.TrimSpace(action)))
	}
	return list
}

// nested splits an action with further actions or fields in parentheses.
func nested(text string) (name, inner string, ok bool) {
	name, inner, ok = strings.Cut(text, "(")
	if !ok || !strings.HasSuffix(inner, ")") || strings.ContainsAny(name, ":=") {
		return "", "", false
	}
	return name, strings.TrimSuffix(inner, ")"), true
}

// action rewrites one action.
func (t *translation) action(text string) string {
	if number, field, ok := openflow.Assignment(text); ok {
		value := t.value(field, number)
		if field == "metadata" && t.rules != nil {
			t.datapath = leading(number)
		}
		return "set_field:" + value + "->" + field
	}
	if name, inner, ok := nested(text); ok {
		return name + "(" + t.inner(name, inner) + ")"
	}
	name, argument, _ := strings.Cut(text, ":")
	switch name {
	case "output", "bucket", "actions", "group", "meter":
		return name + ":" + t.argument(name, argument)
	}
	if rest, found := strings.CutPrefix(text, "actions="); found {
		return "actions=" + t.action(rest)
	}
	if rest, found := strings.CutPrefix(text, "bucket="); found {
		return "bucket=" + t.action(rest)
	}
	if key, value, found := strings.Cut(text, "="); found { // of ct, learn or controller
		switch key {
		case "cookie":
			return key
		case "zone":
			if _, err := strconv.ParseUint(value, 0, 16); err == nil && t.rules != nil {
				return "zone=zone"
			}
		case "meter_id":
			return key + "=" + t.argument("meter", value)
		case "userdata":
			return key + "=" + t.userdata(value)
		}
	}
	return text
}

// encoded matches a register with a key or a zone in the actions that a controller action
// carries: the header and the value of its OXM field.
var encoded = lazyregexp.New(`00\.01\.(16|18|1a|1c|1e)\.04\.([0-9a-f]{2})\.([0-9a-f]{2})\.([0-9a-f]{2})\.([0-9a-f]{2})`)

// userdata rewrites the actions that ovn-controller runs on a packet.
func (t *translation) userdata(text string) string {
	if t.rules == nil {
		return text
	}
	return encoded.ReplaceAllStringFunc(text, func(field string) string {
		m := encoded.FindStringSubmatch(field)
		number, _ := strconv.ParseUint(m[1], 16, 8)
		register := "reg" + strconv.FormatUint(number/2, 10)
		return register + "=" + t.value(register, "0x"+strings.Join(m[2:], ""))
	})
}

// argument rewrites the argument of an action.
func (t *translation) argument(name, value string) string {
	id, err := strconv.ParseUint(value, 0, 32)
	switch {
	case name == "output":
		return cmp.Or(t.ports[value], value)
	case err != nil:
	case name == "group" && t.groups[uint32(id)] != "":
		return "{" + t.groups[uint32(id)] + "}"
	case name == "meter" && t.meters[uint32(id)] != "":
		return "{" + t.meters[uint32(id)] + "}"
	}
	return value
}

// inner rewrites what an action has in parentheses.
func (t *translation) inner(name, text string) string {
	switch name {
	case "conjunction":
		_, dimension, _ := strings.Cut(text, ",")
		return "*," + dimension
	case "bundle", "bundle_load":
		before, members, found := strings.Cut(text, "members:")
		if !found {
			return text
		}
		list := strings.Split(members, ",")
		for i, port := range list {
			list[i] = cmp.Or(t.ports[port], port)
		}
		return before + "members:" + strings.Join(list, ",")
	case "resubmit", "nat", "note", "check_pkt_larger":
		return text
	}
	return t.list(text)
}
