package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

const (
	// maxCommands is how many commands of a text are read.
	maxCommands = 10000
	// maxInput is the size of the longest here-document, in bytes.
	maxInput = 4 << 20
	// maxQuoted is how much of a command a report quotes, in bytes.
	maxQuoted = 200
)

// step is a command to carry out.
type step struct {
	line     int
	text     string // as typed
	tool     string
	bridge   string           // of a command of ovs-ofctl
	version  openflow.Version // in which it speaks to the bridge; 0 for that of ovs-ofctl
	args     []string
	input    []string   // for standard input, nil for none
	withheld [][]string // commands of ovs-vsctl for when ovs-vswitchd has ended
}

// script is what the commands of a text ask for.
type script struct {
	host  string // in the prompt of the first command of Open vSwitch that has one, "" for none
	steps []step
	built *workdir.Built
}

// read returns the commands to carry out, in their order. It refuses what is not on the lists.
func read(typed recording.Script) *script {
	s := &script{built: &workdir.Built{}}
	if len(typed.Comments) > 0 {
		s.assume("the lines %s begin with # among commands without a prompt: they are taken for comments", numbers(typed.Comments))
	}
	for i, command := range typed.Commands {
		if i == maxCommands {
			s.refuse(command, fmt.Sprintf("a lab takes %d commands: %d from this line on are left out", maxCommands, len(typed.Commands)-i))
			break
		}
		s.add(command)
	}
	return s
}

// numbers lists the first numbers of lines.
func numbers(lines []int) string {
	var list []string
	for _, line := range lines {
		list = append(list, fmt.Sprint(line))
	}
	return phrase.FirstNames(list)
}

func (s *script) assume(format string, args ...any) {
	s.built.Assumptions = append(s.built.Assumptions, fmt.Sprintf(format, args...))
}

func (s *script) refuse(command recording.Typed, reason string) {
	s.built.Refused = append(s.built.Refused, notDone(command.Line, command.Text, reason))
}

// notDone returns an entry for a command that was not carried out.
func notDone(line int, text, reason string) workdir.Command {
	return workdir.Command{Line: line, Command: phrase.Shorten(text, maxQuoted), Reason: phrase.Shorten(reason, 2*maxQuoted)}
}

// add adds a command, unless it only prints something or is refused.
func (s *script) add(command recording.Typed) {
	step, todo, err := readCommand(command)
	if err == nil && !todo {
		return
	}
	ofSwitch := step.tool == "ovs-vsctl" || step.tool == "ovs-ofctl"
	switch {
	case command.Needs != "":
		err = fmt.Errorf("it needs %s, and no shell reads it", command.Needs)
	case err == nil && ofSwitch && s.host != "" && command.Host != "" && command.Host != s.host:
		err = fmt.Errorf("it is of %s, and a lab is one node: that of the first command, %s", command.Host, s.host)
	}
	if err != nil {
		s.refuse(command, err.Error())
		return
	}
	if ofSwitch {
		s.host = cmp.Or(s.host, command.Host)
	}
	s.steps = append(s.steps, step)
}

// readCommand returns what a lab does with a command: todo is false for one that only prints something.
func readCommand(command recording.Typed) (s step, todo bool, err error) {
	tool, words := command.Words[0], command.Words[1:]
	s = step{line: command.Line, text: command.Text, tool: tool, input: command.Input}
	if slices.Contains(words, "--help") || slices.Contains(words, "-h") || slices.Contains(words, "--version") || slices.Contains(words, "-V") {
		return s, false, nil
	}
	switch tool {
	case "ovs-vsctl":
		todo, err = s.readDatabase(vsctl(), words)
	case "ovn-nbctl":
		todo, err = s.readDatabase(nbctl(), words)
	case "ovn-sbctl":
		todo, err = s.readDatabase(sbctl(), words)
	case "ovs-ofctl":
		todo, err = s.readSwitch(words)
	default:
		if prints(tool, words) {
			return s, false, nil
		}
		err = fmt.Errorf("a lab carries out commands of ovs-vsctl, ovs-ofctl, ovn-nbctl and ovn-sbctl only")
	}
	if err == nil && todo && s.tool != "ovs-ofctl" && s.input != nil {
		err = fmt.Errorf("a here-document is no input of %s", tool)
	}
	if len(strings.Join(s.input, "\n")) > maxInput {
		err = fmt.Errorf("its here-document is larger than 4 MiB")
	}
	return s, todo, err
}

// prints reports whether a command of another tool only prints something.
func prints(tool string, words []string) bool {
	switch tool {
	case "ovn-trace", "ovn-detrace":
		return true
	case "ovs-appctl", "ovn-appctl", "ovs-dpctl", "ovsdb-client":
		return slices.ContainsFunc(words, func(word string) bool {
			name := word[strings.LastIndexByte(word, '/')+1:]
			return !strings.HasPrefix(word, "-") && (name == "trace" || name == "status" || name == "version" || name == "help" || name == "list-commands" ||
				strings.HasPrefix(name, "show") || strings.HasPrefix(name, "dump") || strings.HasPrefix(name, "list") || strings.HasPrefix(name, "get-") || strings.HasSuffix(name, "-show"))
		})
	}
	return false
}
