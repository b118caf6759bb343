// Package portmap translates the datapath port numbers in printed traces and
// datapath flows.
package portmap

import (
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// Ports maps the port numbers of one datapath to the numbers on another.
type Ports map[string]string

var (
	// actionList matches the datapath actions in a line of a trace or of
	// dpctl/dump-flows.
	actionList = lazyregexp.New(`(?:^Datapath actions: |\bactions:)(.*)$`)
	inPort     = lazyregexp.New(`\bin_port\(([0-9]+)\)`)
	portNumber = lazyregexp.New(`^[0-9]+$`)
)

// Translate translates the datapath port numbers in a line of ofproto/trace or of
// dpctl/dump-flows: outputs among the actions, and in_port in a flow. OpenFlow port
// numbers and all other numbers stay unchanged.
func (p Ports) Translate(line string) string {
	line = inPort.ReplaceAllStringFunc(line, func(found string) string {
		return "in_port(" + p.number(inPort.FindStringSubmatch(found)[1]) + ")"
	})
	m := actionList.FindStringSubmatchIndex(line)
	if m == nil {
		return line
	}
	return line[:m[2]] + p.actions(line[m[2]:])
}

func (p Ports) number(text string) string {
	if other, ok := p[text]; ok {
		return other
	}
	return text
}

// actions translates a list of datapath actions. An action that is a number is an
// output, and some actions contain lists of actions.
func (p Ports) actions(text string) string {
	list := slices.Collect(openflow.Split(text))
	for i, action := range list {
		bare := strings.TrimSpace(action)
		if portNumber.MatchString(bare) {
			list[i] = strings.Replace(action, bare, p.number(bare), 1)
			continue
		}
		if open := strings.IndexByte(action, '('); open >= 0 && strings.HasSuffix(action, ")") && holdsActions(action[:open]) {
			list[i] = action[:open+1] + p.actions(action[open+1:len(action)-1]) + ")"
		}
	}
	return strings.Join(list, ",")
}

// holdsActions reports whether the arguments of an action contain actions
// (ovs-actions(7), and lib/odp-util.c of Open vSwitch).
func holdsActions(name string) bool {
	switch name {
	case "clone", "sample", "actions", "check_pkt_len", "gt", "le":
		return true
	}
	return false
}
