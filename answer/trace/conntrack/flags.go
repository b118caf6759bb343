package conntrack

import "strings"

// Flags is a ct_state.
type Flags struct {
	New, Est, Rel, Rpl, Inv, SNAT, DNAT bool
}

// String returns the flags in the notation of ofproto/trace, with trk.
func (f Flags) String() string {
	var names []string
	for _, flag := range []struct {
		name string
		set  bool
	}{{"new", f.New}, {"est", f.Est}, {"rel", f.Rel}, {"rpl", f.Rpl}, {"inv", f.Inv}, {"trk", true}, {"snat", f.SNAT}, {"dnat", f.DNAT}} {
		if flag.set {
			names = append(names, flag.name)
		}
	}
	return strings.Join(names, "|")
}

// ParseFlags reads a ct_state, "est|rpl|trk" or "est,rpl"; ok is false if a flag is not
// known.
func ParseFlags(text string) (flags Flags, ok bool) {
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == ',' }) {
		switch name {
		case "new":
			flags.New = true
		case "est":
			flags.Est = true
		case "rel":
			flags.Rel = true
		case "rpl":
			flags.Rpl = true
		case "inv":
			flags.Inv = true
		case "snat":
			flags.SNAT = true
		case "dnat":
			flags.DNAT = true
		case "trk":
		default:
			return Flags{}, false
		}
	}
	return flags, true
}

// tcpFlags returns the flags of a TCP header from the value of tcp_flags in a flow.
// known is false if the flow shows none.
func tcpFlags(text string) (syn, ack, rst, fin, known bool) {
	if strings.HasPrefix(text, "0x") || text == "0" || text == "" {
		bits := uint64(0)
		for _, digit := range strings.TrimPrefix(text, "0x") {
			bits = bits<<4 | uint64(strings.IndexRune("0123456789abcdef", digit)&15)
		}
		return bits&2 != 0, bits&16 != 0, bits&4 != 0, bits&1 != 0, bits != 0
	}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == '+' }) {
		switch name {
		case "syn":
			syn = true
		case "ack":
			ack = true
		case "rst":
			rst = true
		case "fin":
			fin = true
		}
	}
	return syn, ack, rst, fin, true
}
