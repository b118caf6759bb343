// Package ovntrace reads what ovn-trace prints (utilities/ovn-trace.c of OVN), in each of its forms:
// --detailed, which is the default and alone names logical flows, --summary and --minimal.
package ovntrace

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
)

// Trace is the way of a packet through logical datapaths.
type Trace struct {
	Packet flow.Packet // no fields if the text does not have it
	Stages []Stage
	// Outputs are the logical ports where the packet leaves, in their order.
	Outputs []Output
	// Replies are the actions that make another packet in place of this one: icmp4, tcp_reset, arp ...
	Replies []string
	// Errors are the remarks by which ovn-trace says that it gives up ("*** ...").
	Errors []string
	// Assumed are the states of connections that no option gave.
	Assumed []string
	// IsDetailed reports that the text names logical flows.
	IsDetailed bool
}

// Stage is a lookup in a logical table.
type Stage struct {
	Pipeline string // ingress or egress
	Datapath string
	InPort   string
	OutPort  string // "" in the ingress pipeline
	Table    int
	Name     string // of the stage, "" if it is not printed
	Location string // in the source of ovn-northd, "" if it is not printed
	Match    string
	Priority int
	UUID     string   // its first 8 digits
	Actions  []string // with remarks
	Miss     bool     // no logical flow matched
	inReply  bool
}

// Output is a logical port where a packet leaves.
type Output struct{ Port, Type string }

// ErrNoTrace is wrapped when a text is not what ovn-trace prints.
var ErrNoTrace = errors.New("not the output of ovn-trace")

var (
	pipeline = lazyregexp.New(`^(ingress|egress)\(dp="([^"]*)", (?:inport|outport)="([^"]*)"(?:, outport="([^"]*)")?\)`)
	table    = lazyregexp.New(`^(\d{1,3})\. (?:(\w+)(?: \(([^)]*)\))?: |\(([^)]*)\): )?(.*)$`)
	ofFlow   = lazyregexp.New(`^(.*), priority (\d+), uuid ([0-9a-f]{8})$`)
	toPort   = lazyregexp.New(`^/\* output to "([^"]*)", type "([^"]*)" \*/;?$`)
	minimal  = lazyregexp.New(`^output\("([^"]*)"\);?$`)
	assumed  = lazyregexp.New(`^\w+\(ct_state=(\S+) /\* default`)
	// makes matches the actions whose packet is another one, which OVN makes.
	makes = lazyregexp.New(`^(icmp[46](?:_error)?|tcp_reset|sctp_abort|reject|arp|nd_ns|nd_na(?:_router)?)(?: \{)?$`)
)

// block is what the lines after it are in.
type block struct {
	indent    int
	reply     bool
	of        Stage // without a flow
	isBraced  bool
	transform bool
}

// reader reads the lines of a trace.
type reader struct {
	*Trace
	open []block
}

// Parse reads the output of one ovn-trace.
func Parse(text string) (*Trace, error) {
	r := reader{Trace: &Trace{}}
	found := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		plain := strings.TrimLeft(line, " ")
		if plain == "" || strings.Trim(plain, "-") == "" {
			continue
		}
		if microflow, ok := strings.CutPrefix(plain, "# "); ok {
			if packet, err := flow.Parse(microflow); err == nil && packet.Has("reg14") && !found {
				r.Packet, found = packet, true
			}
			continue
		}
		found = r.add(plain, len(line)-len(plain)) || found
	}
	if !found || len(r.Stages) == 0 && len(r.Outputs) == 0 && len(r.open) == 0 && len(r.Packet.Fields()) == 0 {
		return nil, ErrNoTrace
	}
	return r.Trace, nil
}

// add reads a line, and returns false for one of which no more is known than its text.
func (r *reader) add(line string, indent int) bool {
	switch {
	case line == "};" || line == "}":
		if n := len(r.open); n > 0 && r.open[n-1].isBraced {
			r.open = r.open[:n-1]
		}
		return true
	case pipeline.MatchString(line):
		match := pipeline.FindStringSubmatch(line)
		of := Stage{Pipeline: match[1], Datapath: match[2], InPort: match[3], OutPort: match[4]}
		r.begin(block{indent: indent, of: of}, line)
		return true
	case makes.MatchString(line):
		r.Replies = append(r.Replies, makes.FindStringSubmatch(line)[1])
		r.begin(block{indent: indent, reply: true, transform: true}, line)
		return true
	case table.MatchString(line):
		r.IsDetailed = true
		r.close(indent)
		r.addStage(table.FindStringSubmatch(line))
		return true
	case strings.HasSuffix(line, " {"), strings.HasPrefix(line, "ct_next("), isTransformation(line):
		if match := assumed.FindStringSubmatch(line); match != nil {
			r.Assumed = append(r.Assumed, match[1])
		}
		r.begin(block{indent: indent, transform: true}, line)
		return true
	}
	return r.addAction(line)
}

// isTransformation reports whether a line is the title of an action that goes on with a changed packet.
func isTransformation(line string) bool {
	name, _, _ := strings.Cut(line, "(")
	return slices.Contains([]string{"ct_lb", "ct_lb_mark", "ct_dnat", "ct_snat", "ct_dnat_in_czone", "ct_snat_in_czone", "ct_snat_to_vip", "multicast", "clone"}, name) && !strings.HasSuffix(line, ";")
}

// begin opens a block. What is in it has the datapath of the block around it, unless it names one.
func (r *reader) begin(b block, line string) {
	b.isBraced = strings.HasSuffix(line, "{")
	if !b.isBraced {
		r.close(b.indent)
	}
	if n := len(r.open); n > 0 {
		b.reply = b.reply || r.open[n-1].reply
		if b.transform {
			b.of = r.open[n-1].of
		}
	}
	if len(r.open) < maxDepth {
		r.open = append(r.open, b)
	}
}

// maxDepth bounds the blocks in blocks: ovn-trace gives up at 100 lookups.
const maxDepth = 1000

// close closes the blocks that are indented further than a line.
func (r *reader) close(indent int) {
	for n := len(r.open); n > 0 && !r.open[n-1].isBraced && r.open[n-1].indent > indent; n-- {
		r.open = r.open[:n-1]
	}
}

// addStage adds a lookup: the parts of its line.
func (r *reader) addStage(parts []string) {
	var stage Stage
	if n := len(r.open); n > 0 {
		stage = r.open[n-1].of
		stage.inReply = r.open[n-1].reply
	}
	stage.Table, _ = strconv.Atoi(parts[1])
	stage.Name, stage.Location = parts[2], parts[3]+parts[4]
	if match := ofFlow.FindStringSubmatch(parts[5]); match != nil {
		stage.Match, stage.UUID = match[1], match[3]
		stage.Priority, _ = strconv.Atoi(match[2])
	} else if parts[5] == "no match (implicit drop)" {
		stage.Miss = true
	} else {
		stage.Match = parts[5]
	}
	r.Stages = append(r.Stages, stage)
}

// addAction adds an action or a remark to the last stage, and returns whether it is the output of a packet.
func (r *reader) addAction(line string) bool {
	if n := len(r.Stages); n > 0 {
		r.Stages[n-1].Actions = append(r.Stages[n-1].Actions, line)
	}
	if text, ok := strings.CutPrefix(line, "*** "); ok {
		r.Errors = append(r.Errors, strings.TrimSuffix(text, ";"))
	}
	var output Output
	if match := toPort.FindStringSubmatch(line); match != nil {
		output = Output{match[1], match[2]}
	} else if match := minimal.FindStringSubmatch(line); match != nil {
		output = Output{Port: match[1]}
	}
	isReply := len(r.open) > 0 && r.open[len(r.open)-1].reply
	if output.Port == "" || output.Type == "patch" || output.Type == "l3gateway" || isReply { // those lead to another datapath
		return output.Port != ""
	}
	if !slices.Contains(r.Outputs, output) {
		r.Outputs = append(r.Outputs, output)
	}
	return true
}

// Last returns the stage where the packet itself ended; ok is false for a text without stages.
func (t *Trace) Last() (stage Stage, ok bool) {
	for _, stage := range slices.Backward(t.Stages) {
		if !stage.inReply {
			return stage, true
		}
	}
	return Stage{}, false
}
