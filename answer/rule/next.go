package rule

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/shell"

	"ovs-offline/internal/show"
)

// Next is a step to take next: a command of the program, or something that is run elsewhere.
type Next struct {
	// Args are the arguments of the program; none for what is run elsewhere.
	Args []string `json:"args,omitempty"`
	Node string   `json:"node,omitempty"` // that the command is about; "" for all
	// Where says where the Command is run: "on the node".
	Where   string `json:"where,omitempty"`
	Command string `json:"command,omitempty"`
}

// Ask returns the step of running the program with some arguments.
func Ask(args ...string) Next { return Next{Args: args} }

// OnTheNode returns the step of running a command on the node that a finding is about. It adds words, quoted for a shell.
func OnTheNode(command string, words ...string) Next {
	return Elsewhere("on the node", command, words...)
}

// Elsewhere returns the step of running a command in some place. It adds words, quoted for a shell.
func Elsewhere(where, command string, words ...string) Next {
	for _, word := range words {
		command += " " + show.Word(word)
	}
	return Next{Where: where, Command: command}
}

// ParseNext reads a step as rules in YAML have it: "on the node: COMMAND", or the arguments of the program as a shell reads them.
func ParseNext(text string) (Next, error) {
	if where, command, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(where, "on ") {
		return Elsewhere(where, command), nil
	}
	args, err := shell.Fields(text, func(string) string { return "" })
	if err == nil && len(args) == 0 {
		err = errors.New("there is no command")
	}
	if err != nil {
		return Next{}, fmt.Errorf("next step %q: %w", text, err)
	}
	return Ask(args...), nil
}

// On returns the step with the node that a command of the program is about, unless it has one.
func (n Next) On(node string) Next {
	if n.Args != nil && n.Node == "" {
		n.Node = node
	}
	return n
}

// readsOVN reports whether a step shows what is in one OVN database.
func (n Next) readsOVN() bool {
	return len(n.Args) > 1 && n.Args[0] == "history" && (n.Args[1] == "nb" || n.Args[1] == "sb")
}

// Text returns the step as a line. call makes the command line of the program.
func (n Next) Text(call show.Call) string {
	switch {
	case n.Args != nil:
		return call.Line(n.Node, n.Args...)
	case n.Where == "":
		return n.Command
	}
	return n.Where + ": " + n.Command
}
