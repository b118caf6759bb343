package symbolic

import (
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/pkg/openflow"
)

// action is an action of a flow or a bucket.
type action interface{}

// The actions. Those without an effect are left out. The flows that learn has added are in the dump.
type (
	assign    []literal
	move      struct{ from, to span }
	push      struct{ field span }
	pop       struct{ field span }
	pushVLAN  struct{}
	popVLAN   struct{}
	decTTL    struct{}
	resubmit  struct{ port, table int } // -1 for the current one
	output    struct{ port int }
	outputTo  struct{ field span } // the port whose number is in a field
	toGroup   struct{ id uint32 }
	clone     struct{ actions []action }
	checkSize struct{ to int } // the bit that says that the packet is larger
	notify    struct {
		ends bool
		text string
	}
	effect  struct{ text string } // that neither changes nor sends the packet
	ctClear struct{}
	track   struct {
		table     int    // -1 for none
		effect    string // without the table, the field of the zone and what exec does
		zone      uint16
		zoneField span // that has the zone, of no bits for none
		force     bool
		commit    bool
		nat       *nat
		exec      []action
	}
	unknown struct{ text string }
)

// Stop is an action that OpenFlow does not have: Result.Unknown has the packets that meet it by this name.
const Stop = "stop"

// Reserved ports of OpenFlow 1.0.
const (
	portInPort     = 0xfff8
	portNormal     = 0xfffa
	portFlood      = 0xfffb
	portAll        = 0xfffc
	portController = 0xfffd
)

// nat is the translation of ct: nil addresses where it only undoes the translation of a known connection.
type nat struct {
	destination    bool
	address, ports string // as in the action: one value, or a range
}

// actions compiles actions in their canonical form. One that is not modelled is unknown.
func (l *layout) actions(text string) (list []action, clauses []clause, err error) {
	for part := range openflow.Split(text) {
		part = strings.TrimSpace(part)
		name, rest := part, ""
		if end := strings.IndexAny(part, ":("); end >= 0 {
			name, rest = part[:end], part[end+1:]
		}
		if name == "conjunction" {
			c, err := parseClause(strings.TrimSuffix(rest, ")"))
			if err != nil {
				return nil, nil, err
			}
			clauses = append(clauses, c)
			continue
		}
		made, err := l.action(name, rest, part)
		if err != nil {
			made = unknown{fmt.Sprintf("the action %s: %v", part, err)}
		}
		if made != nil {
			list = append(list, made)
		}
	}
	return list, clauses, nil
}

func parseClause(text string) (c clause, err error) {
	if _, err = fmt.Sscanf(text, "%d,%d/%d", &c.id, &c.dimension, &c.dimensions); err != nil {
		return c, fmt.Errorf("conjunction(%s): %w", text, err)
	}
	return c, nil
}

// action compiles one action; nil for one without an effect on the packet.
func (l *layout) action(name, rest, text string) (action, error) {
	arguments := strings.TrimSuffix(rest, ")")
	switch name {
	case Stop:
		return unknown{Stop}, nil
	case "drop", "note", "reset_counts":
		return nil, nil
	case "learn", "meter", "set_queue", "pop_queue", "fin_timeout", "sample":
		return effect{text}, nil
	case "set_field":
		value, field, _ := openflow.Assignment(text)
		inMatch, known := openflow.FieldName(field)
		if !known && !strings.HasPrefix(field, "tun_metadata") {
			return nil, fmt.Errorf("the field %s is not modelled", field)
		}
		list, err := l.literals(inMatch, value)
		return assign(list), err
	case "move":
		from, to, _ := strings.Cut(rest, "->")
		source, err := l.subfield(from)
		if err != nil {
			return nil, err
		}
		target, err := l.subfield(to)
		return move{source, target}, err
	case "push":
		field, err := l.subfield(rest)
		return push{field}, err
	case "pop":
		field, err := l.subfield(rest)
		return pop{field}, err
	case "push_vlan":
		return pushVLAN{}, nil
	case "pop_vlan":
		return popVLAN{}, nil
	case "dec_ttl":
		return decTTL{}, nil
	case "resubmit":
		return parseResubmit(rest)
	case "goto_table":
		table, err := strconv.Atoi(rest)
		return resubmit{-1, table}, err
	case "group":
		id, err := strconv.ParseUint(rest, 0, 32)
		return toGroup{uint32(id)}, err
	case "clone":
		inner, _, err := l.actions(arguments)
		return clone{inner}, err
	case "check_pkt_larger":
		_, field, _ := strings.Cut(rest, "->")
		bit, err := l.subfield(field)
		return checkSize{bit.at}, err
	case "controller", "CONTROLLER":
		return notify{strings.Contains(","+arguments+",", ",pause,"), text}, nil
	case "ct_clear":
		return ctClear{}, nil
	case "ct":
		return l.track(arguments)
	}
	return l.output(name, rest)
}

// output compiles the actions that send the packet to ports.
func (l *layout) output(name, rest string) (action, error) {
	port := rest
	if rest == "" {
		port = name // a reserved port
	} else if name != "output" {
		return nil, fmt.Errorf("it is not modelled")
	}
	if strings.Contains(port, "[") {
		field, err := l.subfield(port)
		return outputTo{field}, err
	}
	if inner, ok := strings.CutPrefix(port, "port="); ok { // output(port=1,max_len=100)
		port, _, _ = strings.Cut(inner, ",")
	}
	v, ok := openflow.ValueOf("in_port", port)
	if !ok {
		return nil, fmt.Errorf("it is not modelled")
	}
	number := 0
	for bit := range 16 {
		if v.Set.Bit(bit) {
			number |= 1 << bit
		}
	}
	return output{number}, nil
}

// parseResubmit reads the rest of "resubmit:PORT" or "resubmit(PORT,TABLE[,ct])".
func parseResubmit(rest string) (action, error) {
	made := resubmit{-1, -1}
	arguments := strings.Split(strings.TrimSuffix(rest, ")"), ",")
	for i, text := range arguments {
		number, err := strconv.Atoi(text)
		switch {
		case text == "" || i == 0 && text == "IN_PORT":
		case err != nil:
			return nil, fmt.Errorf("resubmit to %s is not modelled", text)
		case i == 0:
			made.port = number
		case i == 1:
			made.table = number
		}
	}
	if len(arguments) > 2 {
		return nil, fmt.Errorf("resubmit with ct is not modelled")
	}
	return made, nil
}

// subfield reads "FIELD[]", "FIELD[BIT]" or "FIELD[FIRST..LAST]".
func (l *layout) subfield(text string) (span, error) {
	name, part, _ := strings.Cut(strings.TrimSuffix(text, "]"), "[")
	inMatch, known := openflow.FieldName(name)
	if !known && !strings.HasPrefix(name, "tun_metadata") {
		return span{}, fmt.Errorf("the field %s is not modelled", name)
	}
	field, err := l.span(inMatch)
	if err != nil || part == "" {
		return field, err
	}
	first, last, isRange := strings.Cut(part, "..")
	low, err := strconv.Atoi(first)
	high := low
	if err == nil && isRange {
		high, err = strconv.Atoi(last)
	}
	if err != nil || low < 0 || high < low || high >= field.width {
		return span{}, fmt.Errorf("%s has no bits %s", name, part)
	}
	return field.part(low, high-low+1), nil
}

// track compiles ct.
func (l *layout) track(arguments string) (action, error) {
	made := track{table: -1, effect: "ct"}
	for argument := range openflow.Split(arguments) {
		name, value, _ := strings.Cut(argument, "=")
		inField := name == "zone" && strings.Contains(value, "[")
		if name != "table" && !inField && !strings.HasPrefix(name, "exec(") {
			made.effect += " " + argument
		}
		switch inner, isCall := strings.CutSuffix(argument, ")"); {
		case argument == "commit":
			made.commit = true
		case argument == "force":
			made.force = true
		case name == "zone":
			if err := l.trackZone(&made, value); err != nil {
				return nil, err
			}
		case name == "alg":
		case name == "table":
			table, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("table %s", value)
			}
			made.table = table
		case argument == "nat":
			made.nat = &nat{}
		case isCall && strings.HasPrefix(inner, "nat("):
			translation, err := parseNAT(strings.TrimPrefix(inner, "nat("))
			if err != nil {
				return nil, err
			}
			made.nat = translation
		case isCall && strings.HasPrefix(inner, "exec("):
			exec, _, err := l.actions(strings.TrimPrefix(inner, "exec("))
			if err != nil {
				return nil, err
			}
			made.exec = exec
		default:
			return nil, fmt.Errorf("%s is not modelled", argument)
		}
	}
	return made, nil
}

// trackZone reads the zone of ct: a number, or the bits of a field.
func (l *layout) trackZone(made *track, value string) (err error) {
	if strings.Contains(value, "[") {
		made.zoneField, err = l.subfield(value)
		return err
	}
	zone, err := strconv.ParseUint(value, 0, 16)
	made.zone = uint16(zone)
	return err
}

// parseNAT reads the arguments of nat: "src=10.0.0.1:1-2,random" or "dst=[fd00::1]:80".
func parseNAT(arguments string) (*nat, error) {
	made := &nat{}
	for argument := range openflow.Split(arguments) {
		name, value, _ := strings.Cut(argument, "=")
		switch name {
		case "src", "dst":
			made.destination = name == "dst"
			made.address, made.ports = cutPorts(value)
		case "persistent", "hash", "random":
		default:
			return nil, fmt.Errorf("nat(%s) is not modelled", argument)
		}
	}
	return made, nil
}

// cutPorts cuts a text before its ports: "10.0.0.1-10.0.0.9:80", "[fd00::1]:80", "fd00::1".
func cutPorts(text string) (address, ports string) {
	if inner, ok := strings.CutPrefix(text, "["); ok {
		address, ports, _ = strings.Cut(inner, "]")
		return address, strings.TrimPrefix(ports, ":")
	}
	if strings.Count(text, ":") > 1 {
		return text, ""
	}
	address, ports, _ = strings.Cut(text, ":")
	return address, ports
}
