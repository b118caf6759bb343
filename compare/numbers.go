package compare

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// numbers are what the numbers in the flows of a bridge stand for.
type numbers struct {
	ports     map[string]string            // by OpenFlow port number
	networks  map[string]string            // of neutron's agent, by local VLAN
	groups    map[uint32]string            // the buckets, with names
	meters    map[uint32]string            // the bands
	datapaths map[uint64]string            // by tunnel key; nil for a bridge without OVN
	called    map[uint64]string            // their names in OVN
	keys      map[uint64]map[uint64]string // logical ports, by the keys of the datapath and of the port
	spelling  openflow.Canonical
}

// readNumbers reads what the numbers on a bridge of a node stand for.
func (n *node) readNumbers(bridge string, overlay *overlay, common common) (*numbers, error) {
	x := &numbers{ports: map[string]string{"LOCAL": "LOCAL"}, networks: map[string]string{}, groups: map[uint32]string{}, meters: map[uint32]string{}, spelling: common.spelling}
	x.spelling.Ports = map[string]int{openflow.PortName(bridge): openflow.PortLocal}
	if overlay != nil {
		x.datapaths, x.called, x.keys = overlay.datapaths, overlay.called, overlay.keys
	}
	if n.ovs != nil {
		if err := x.readPorts(n.ovs, bridge); err != nil {
			return nil, err
		}
	}
	if common.meters {
		meters, err := entries(n.dir.DumpFile(bridge, workdir.Meters), openflow.Meters)
		if err != nil {
			return nil, err
		}
		for _, m := range meters {
			x.meters[m.ID] = afterID(m.Text, " ")
		}
	}
	if common.groups {
		groups, err := entries(n.dir.DumpFile(bridge, workdir.Groups), openflow.Groups)
		if err != nil {
			return nil, err
		}
		spelling := common.ofGroups
		spelling.Ports = x.spelling.Ports
		for _, g := range groups {
			x.groups[g.ID] = (&translation{numbers: x}).list(afterID(spelling.Group(g.Text), ","))
		}
	}
	return x, nil
}

// afterID returns the text of a group or a meter behind its id.
func afterID(text, separator string) string {
	_, rest, _ := strings.Cut(text, separator)
	return rest
}

// entries reads the groups or the meters of a dump; none if it was not collected.
func entries(path string, read func(io.Reader) ([]openflow.Entry, []openflow.Problem)) ([]openflow.Entry, error) {
	f, ok, err := workdir.OpenCollected(path)
	if !ok {
		return nil, err
	}
	defer f.Close()
	list, _ := read(f)
	return list, nil
}

// readPorts reads the names of a bridge's ports. A tunnel is named by its type and its
// remote address: its own name is made of an identifier.
func (x *numbers) readPorts(ovs *file.Index, bridge string) error {
	for row, err := range ovs.Rows("Bridge", "name", "ports") {
		if err != nil {
			return err
		}
		if row.String("name") != bridge {
			continue
		}
		for _, id := range row.UUIDs("ports") {
			port, ok, err := ovs.Row("Port", id, "interfaces", "tag", "other_config", "name")
			if err != nil || !ok {
				continue
			}
			if tag, ok := port.Int("tag"); ok && port.Map("other_config")["net_uuid"] != "" {
				x.networks[strconv.Itoa(tag)] = "network " + port.Map("other_config")["net_uuid"]
			}
			for _, id := range port.UUIDs("interfaces") {
				i, ok, err := ovs.Row("Interface", id, "name", "ofport", "type", "options")
				if err != nil || !ok {
					continue
				}
				if number, ok := i.Int("ofport"); ok {
					x.spelling.Ports[openflow.PortName(i.String("name"))] = int(number)
					x.ports[strconv.Itoa(number)] = portName(i.String("name"), i.String("type"), i.Map("options"))
				}
			}
		}
	}
	return nil
}

func portName(name, kind string, options map[string]string) string {
	if remote := options["remote_ip"]; remote != "" && remote != "flow" {
		return kind + " to " + remote
	}
	return name
}

// translation rewrites a flow in names. It follows the datapath that the metadata stands
// for, in the order of the actions.
type translation struct {
	*numbers
	datapath uint64
}

// flow returns a flow, without its cookie, in names, and the name of the datapath that it
// matches.
func (x *numbers) flow(f openflow.Flow) (match, actions, datapath string) {
	t := &translation{numbers: x}
	_, criteria := x.spelling.Identity(f)
	actions = x.spelling.Actions(f.Actions())
	if _, rest, found := strings.Cut(criteria, "metadata="); found && x.datapaths != nil {
		t.datapath = leading(rest)
		datapath = x.called[t.datapath]
	}
	fields := strings.SplitN(criteria, "|", 3)
	if len(fields) != 3 {
		return criteria, t.list(actions), datapath
	}
	match = "table=" + fields[0] + ",priority=" + fields[1]
	if fields[2] != "" {
		match += "," + t.fields(fields[2])
	}
	if t.datapath != 0 && strings.Contains(match, `reg15="_MC_`) {
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
	for rest := match; rest != ""; {
		end := openflow.IndexSeparator(rest, true)
		key, value, hasValue := strings.Cut(rest[:end], "=")
		rest = rest[min(end+1, len(rest)):]
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
		if t.datapaths == nil {
			return cmp.Or(t.networks[strconv.FormatUint(n, 10)], value)
		}
	case "reg5":
		if t.datapaths == nil {
			return cmp.Or(t.ports[strconv.FormatUint(n, 10)], value)
		}
	}
	if bits, err := strconv.ParseUint(mask, 0, 64); err == nil && bits&(bits+1) == 0 { // a whole key
		n, mask = n&bits, ""
	}
	if err != nil || t.datapaths == nil || mask != "" {
		return value
	}
	switch field {
	case "metadata", "tun_id":
		return cmp.Or(t.datapaths[n], value)
	case "reg14", "reg15":
		return cmp.Or(t.keys[t.datapath][n], value)
	case "tun_metadata0":
		to := cmp.Or(t.keys[t.datapath][n&0xffff], strconv.FormatUint(n&0xffff, 10))
		if from := n >> 16; from > 0 {
			return cmp.Or(t.keys[t.datapath][from], strconv.FormatUint(from, 10)) + " to " + to
		}
		return to
	case "reg11", "reg12", "reg13", "ct_zone":
		if n != 0 {
			return "zone"
		}
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
	for rest := text; rest != ""; {
		end := openflow.IndexSeparator(rest, false)
		list = append(list, t.action(strings.TrimSpace(rest[:end])))
		rest = rest[min(end+1, len(rest)):]
	}
	return list
}

// assignment splits an action that writes a constant into a field.
func assignment(text string) (value, field string, ok bool) {
	rest, ok := strings.CutPrefix(text, "set_field:")
	if at := strings.LastIndex(rest, "->"); ok && at >= 0 {
		return rest[:at], rest[at+len("->"):], true
	}
	return "", "", false
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
	if number, field, ok := assignment(text); ok {
		value := t.value(field, number)
		if field == "metadata" && t.datapaths != nil {
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
			if _, err := strconv.ParseUint(value, 0, 16); err == nil && t.datapaths != nil {
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
var encoded = regexp.MustCompile(`00\.01\.(16|18|1a|1c|1e)\.04\.([0-9a-f]{2})\.([0-9a-f]{2})\.([0-9a-f]{2})\.([0-9a-f]{2})`)

// userdata rewrites the actions that ovn-controller runs on a packet.
func (t *translation) userdata(text string) string {
	if t.datapaths == nil {
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

// overlay is what the keys of OVN's datapaths and logical ports stand for.
type overlay struct {
	datapaths map[uint64]string // with their kinds
	called    map[uint64]string // their names in OVN
	keys      map[uint64]map[uint64]string
}

// readOverlay reads the keys in the southbound database.
func (z *zone) readOverlay() (*overlay, error) {
	o := &overlay{datapaths: map[uint64]string{}, called: map[uint64]string{}, keys: map[uint64]map[uint64]string{}}
	key := map[string]uint64{}
	for row, err := range z.sb.Rows("Datapath_Binding", "tunnel_key") {
		if err != nil {
			return nil, err
		}
		n, _ := row.Int("tunnel_key")
		key[row.UUID] = uint64(n)
		d := z.rules.Datapath(uint64(n))
		o.datapaths[uint64(n)], o.called[uint64(n)] = d.String(), d.Name
		o.keys[uint64(n)] = map[uint64]string{}
	}
	for table, column := range map[string]string{"Port_Binding": "logical_port", "Multicast_Group": "name"} {
		for row, err := range z.sb.Rows(table, column, "tunnel_key", "datapath") {
			if err != nil {
				return nil, err
			}
			n, _ := row.Int("tunnel_key")
			for _, id := range row.UUIDs("datapath") {
				if ports := o.keys[key[id]]; ports != nil {
					ports[uint64(n)] = fmt.Sprintf("%q", row.String(column))
				}
			}
		}
	}
	return o, nil
}
