package trace

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/trace/pass"
)

// registers are what OVN's registers hold as a packet passes its pipelines: the tunnel keys of
// the ports by which the packet entered and leaves a logical datapath (reg14 and reg15 since
// OVN 2.6, include/ovn/logical-fields.h). 0 stands for not known.
type registers struct {
	in, out  uint64
	metadata uint64 // the tunnel key of the logical datapath
}

var (
	matchedRegister = regexp.MustCompile(`(?:^|,)reg(14|15)=(0x[0-9a-f]+)(?:,|$)`)
	setMetadata     = regexp.MustCompile(`^set_field:(0x[0-9a-f]+)->metadata$`)
	setRegister     = regexp.MustCompile(`^set_field:(0x[0-9a-f]+|0)->reg(14|15)$`)
	movedRegister   = regexp.MustCompile(`^-> NXM_NX_REG(14|15)\[0\.\.15\] is now (0x[0-9a-f]+|0)$`)
)

// matched returns the registers as the flow of a stage shows them.
func (r registers) matched(s pass.Stage) registers {
	if strings.Contains(s.Flow, "reg1") {
		for _, m := range matchedRegister.FindAllStringSubmatch(s.Flow, -1) {
			r.set(m[1], m[2])
		}
	}
	if key := metadata(s.Flow); key != 0 {
		r.metadata = key
	}
	return r
}

// after returns the registers after a stage. A flow that sets one several times, such as that
// of a multicast group, leaves open which value holds further on.
func (r registers) after(s pass.Stage) registers {
	var in, out []string
	for _, line := range s.Lines {
		// Most lines are about something else, and a regular expression takes a microsecond.
		if !strings.Contains(line, "reg1") && !strings.Contains(line, "REG1") && !strings.HasSuffix(line, "metadata") {
			continue
		}
		number, value := "", ""
		if m := setRegister.FindStringSubmatch(line); m != nil {
			value, number = m[1], m[2]
		} else if m := movedRegister.FindStringSubmatch(line); m != nil {
			number, value = m[1], m[2]
		} else if m := setMetadata.FindStringSubmatch(line); m != nil {
			r.metadata, _ = strconv.ParseUint(m[1], 0, 64)
		}
		switch number {
		case "14":
			in = append(in, value)
		case "15":
			out = append(out, value)
		}
	}
	r.in, r.out = last(in, r.in), last(out, r.out)
	return r
}

// last returns the last of the values that a register was set to, 0 if they differ, and before
// if there is none. A value of 0 only clears it.
func last(values []string, before uint64) uint64 {
	if len(values) == 0 {
		return before
	}
	n, _ := strconv.ParseUint(values[len(values)-1], 0, 64)
	isCleared := func(v string) bool { return v == "0" }
	set := slices.Compact(slices.DeleteFunc(slices.Clone(values), isCleared))
	if len(set) > 1 {
		return 0
	}
	return n
}

func (r *registers) set(number, value string) {
	n, _ := strconv.ParseUint(value, 0, 64)
	if number == "14" {
		r.in = n
	} else {
		r.out = n
	}
}
