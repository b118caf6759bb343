package tracetext

import (
	"fmt"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow/flow"
)

// Question is what a command line asks.
type Question struct {
	// Bridge and Flow are the arguments of ofproto/trace; both "" if it names a datapath and its notation of flows,
	// or if they were not pasted whole.
	Bridge, Flow string
	// States are those of --ct-next, or of --ct of ovn-trace.
	States []string
	// Names reports the option --names of ofproto/trace, with which ports have names.
	Names bool
	// Datapath and Microflow are the arguments of ovn-trace. Datapath is "" where the microflow tells it.
	Datapath, Microflow string
	// Options are other options of ovn-trace that change what it finds.
	Options []string
	// Actions are those of ofproto/trace-packet-out, "" for another command.
	Actions string
}

var (
	state     = lazyregexp.New(`^[a-z]+(?:[,|][a-z]+)*$`)
	backend   = lazyregexp.New(`^[0-9a-fA-F.:\[\]]+$`)
	selection = lazyregexp.New(`^[\w=,.-]+$`)
	hexBytes  = lazyregexp.New(`^[0-9a-fA-F]{28,}$`)
)

// Question returns what the command line of a trace asks; the zero Question if it was not pasted.
func (t Trace) Question() Question {
	var q Question
	var arguments []string
	begun := false
	for i := 0; i < len(t.Words); i++ {
		word := t.Words[i]
		if !begun {
			begun = ToolOf(t.Words[i:i+1]) != ""
			continue
		}
		name, value, joined := strings.Cut(word, "=")
		if isOption := strings.HasPrefix(word, "-"); !isOption {
			arguments = append(arguments, word)
			continue
		}
		if hasValue(name) && !joined && i+1 < len(t.Words) {
			i++
			value = t.Words[i]
		}
		q.set(name, value)
	}
	if t.Tool == Logical {
		q.setLogical(arguments)
	} else {
		q.setSwitch(t.Words, arguments)
	}
	return q
}

// hasValue reports whether an option of one of the tools has a value.
func hasValue(name string) bool {
	return strings.Contains(" --ct-next --ct --lb-dst --select-id --db --l7 --l7-len -t --target ", " "+name+" ")
}

// set takes an option. One that names a place, or has no effect on the way of the packet, is left out.
func (q *Question) set(name, value string) {
	switch {
	case (name == "--ct-next" || name == "--ct") && state.MatchString(value):
		q.States = append(q.States, value)
	case name == "--lb-dst" && backend.MatchString(value), name == "--select-id" && selection.MatchString(value):
		q.Options = append(q.Options, name+"="+value)
	case name == "--names" || name == "-names":
		q.Names = true
	}
}

func (q *Question) setLogical(arguments []string) {
	switch {
	case len(arguments) == 0:
	case strings.ContainsAny(arguments[0], "=<>&|"):
		q.Microflow = strings.Join(arguments, " ")
	default:
		q.Datapath, q.Microflow = arguments[0], strings.Join(arguments[1:], " ")
	}
}

func (q *Question) setSwitch(words, arguments []string) {
	if strings.Contains(strings.Join(words, " "), "trace-packet-out") && len(arguments) > 2 {
		q.Actions = arguments[len(arguments)-1]
		arguments = arguments[:len(arguments)-1]
	}
	if len(arguments) < 2 || strings.Contains(arguments[1], "(") { // a flow of the datapath
		return
	}
	q.Bridge, q.Flow = arguments[0], arguments[1]
	for _, more := range arguments[2:] { // a flow with blanks, and without the quotation marks around it
		if !strings.HasSuffix(q.Flow, ",") || hexBytes.MatchString(more) {
			break
		}
		q.Flow += more
	}
}

// CheckFlow returns an error for a text that is no flow in the notation of ofproto/trace.
func CheckFlow(text string) error {
	if text == "" || strings.HasPrefix(text, "-") || len(text) > maxLine {
		return fmt.Errorf("%.80q is no flow", text)
	}
	_, err := flow.Parse(text)
	return err
}
