package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// readSwitch reads a command line of ovs-ofctl. Its options may stand anywhere.
func (s *step) readSwitch(words []string) (todo bool, err error) {
	var options, operands []string
	for len(words) > 0 {
		word, next := words[0], words[1:]
		var version string
		switch {
		case word == "--":
			operands, next = append(operands, next...), nil
		case !strings.HasPrefix(word, "-") || word == "-":
			operands = append(operands, word)
		case (word == "-O" || word == "--protocols") && len(next) > 0:
			version, next = next[0], next[1:]
		case strings.HasPrefix(word, "-O"):
			version = word[2:]
		case strings.HasPrefix(word, "--protocols="):
			_, version, _ = strings.Cut(word, "=")
		case slices.Contains(ofctlOptions(), word):
			options = append(options, word)
		default:
			err = fmt.Errorf("the option %s of ovs-ofctl is not on the list of a lab", word)
		}
		if version != "" {
			options = append(options, "-O", version)
			err = cmp.Or(err, s.readVersions(version))
		}
		words = next
	}
	if len(operands) == 0 {
		return true, fmt.Errorf("it names no subcommand of ovs-ofctl")
	}
	name := operands[0]
	command, listed := ofctl()[name]
	switch {
	case !listed && (name == "show" || strings.HasPrefix(name, "dump-") || strings.HasPrefix(name, "get-") || strings.HasPrefix(name, "queue-") || strings.HasPrefix(name, "parse-") || name == "monitor" || name == "snoop"):
		return false, nil
	case err != nil:
		return true, err
	case !listed:
		return true, fmt.Errorf("the subcommand %s of ovs-ofctl is not on the list of a lab", name)
	}
	return true, s.checkSwitch(options, operands, command)
}

// readVersions reads the versions of -O, whose names have any case.
func (s *step) readVersions(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		digits, _ := strings.CutPrefix(strings.ToLower(name), "openflow")
		version := openflow.ParseVersion("OpenFlow" + digits)
		if version == 0 || digits == name {
			return fmt.Errorf("%s is no version of OpenFlow", name)
		}
		s.version = max(s.version, version)
	}
	return nil
}

// checkSwitch checks the operands of a subcommand of ovs-ofctl.
func (s *step) checkSwitch(options, operands []string, command switchCommand) error {
	name, operands := operands[0], operands[1:]
	if given := len(operands) - 1; given < command.least || given > command.most {
		return fmt.Errorf("%s takes a bridge and %d operands, not %d", name, command.most, given)
	}
	s.bridge = bridgeOf(operands[0])
	switch {
	case s.bridge == "":
		return fmt.Errorf("%s is no bridge", operands[0])
	case command.file && operands[1] != "-":
		return fmt.Errorf("%s is a file: a lab reads none; give its lines as a here-document: %s %s - <<EOF", operands[1], name, s.bridge)
	case command.file && s.input == nil:
		return fmt.Errorf("the lines of its standard input are not in the text as a here-document")
	case !command.file && s.input != nil:
		return fmt.Errorf("a here-document is no input of %s", name)
	}
	s.args = slices.Concat(options, []string{"--", name})
	s.args = append(s.args, "") // the socket of the bridge
	s.args = append(s.args, operands[1:]...)
	return nil
}

var managementSocket = lazyregexp.New(`^(?:unix:)?/[\w./-]*/([\w.-]+)\.mgmt$`)

// bridgeOf returns the bridge that a word names, by its name or by its management socket; "" for another address.
func bridgeOf(word string) string {
	if match := managementSocket.FindStringSubmatch(word); match != nil {
		return match[1]
	}
	if word == "" || word == "." || word == ".." || strings.ContainsAny(word, ":/\x00") {
		return ""
	}
	return word
}
