package trace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/pass"
)

// registers are what OVN's registers hold as a packet passes its pipelines: the tunnel keys of
// the ports by which the packet entered and leaves a logical datapath (reg14 and reg15 since
// OVN 2.6, include/ovn/logical-fields.h). 0 stands for not known.
type registers struct {
	in, out  uint64
	metadata uint64 // the tunnel key of the logical datapath
	dstMAC   string // the MAC address that a router has sent the packet to, "" for its own
}

// movedRegister matches what ofproto/trace prints for a register that an action move writes.
var movedRegister = lazyregexp.New(`^-> NXM_NX_REG(14|15)\[0\.\.15\] is now (0x[0-9a-f]+|0)$`)

// afterMatch returns the registers as the flow of a stage shows them.
func (r registers) afterMatch(stage pass.Stage) registers {
	key := stage.Key()
	return registers{
		in: cmp.Or(key.Number("reg14"), r.in), out: cmp.Or(key.Number("reg15"), r.out),
		metadata: cmp.Or(key.Number("metadata"), r.metadata), dstMAC: r.dstMAC,
	}
}

// afterActions returns the registers after a stage. A flow that sets one several times, such as the
// flow of a multicast group, leaves open which value holds further on.
func (r registers) afterActions(stage pass.Stage) registers {
	var in, out []uint64
	for _, line := range stage.Lines {
		// Most lines are about something else, and a regular expression takes a microsecond.
		if !strings.Contains(line, "reg1") && !strings.Contains(line, "REG1") && !strings.HasSuffix(line, "metadata") && !strings.HasSuffix(line, "eth_dst") {
			continue
		}
		value, field, _ := openflow.Assignment(line)
		if moved := movedRegister.FindStringSubmatch(line); moved != nil {
			field, value = "reg"+moved[1], moved[2]
		}
		number, err := strconv.ParseUint(value, 0, 64)
		switch {
		case field == "eth_dst" && !strings.Contains(value, "/"):
			r.dstMAC = value
		case err != nil: // another action, or one that changes a part of a field
		case field == "metadata":
			r.metadata = number
		case field == "reg14":
			in = append(in, number)
		case field == "reg15":
			out = append(out, number)
		}
	}
	r.in, r.out = last(in, r.in), last(out, r.out)
	return r
}

// registersAt returns the registers in a stage of a pass, or after its last stage if the pass does not
// have the stage.
func registersAt(passed *pass.Pass, at *pass.Stage) registers {
	var r registers
	for i := range passed.Stages {
		r = r.afterMatch(passed.Stages[i])
		if &passed.Stages[i] == at {
			return r
		}
		r = r.afterActions(passed.Stages[i])
	}
	return r
}

// last returns the last of the values that a register was set to, 0 if they differ, and before
// if it was not set. A value of 0 only clears it.
func last(values []uint64, before uint64) uint64 {
	if len(values) == 0 {
		return before
	}
	isCleared := func(n uint64) bool { return n == 0 }
	if set := slices.Compact(slices.DeleteFunc(slices.Clone(values), isCleared)); len(set) > 1 {
		return 0
	}
	return values[len(values)-1]
}
