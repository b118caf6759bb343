package whatif

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/lazyregexp"
)

// Change is a change of the northbound database: the arguments of runs of ovn-nbctl, in
// their order.
type Change [][]string

// ErrRefused is wrapped for a line that is not a run of ovn-nbctl, and for an option that
// would lead it elsewhere.
var ErrRefused = fault.Wrap(fault.Usage, errors.New("refused"))

// maxChange bounds the text of a change in bytes.
const maxChange = 16 << 20

// program is the program whose commands changes consist of.
const program = "ovn-nbctl"

// Command returns the change that a command makes. It can begin with "ovn-nbctl".
func Command(words []string) (Change, error) {
	if len(words) > 0 && words[0] == program {
		words = words[1:]
	} else if !isCommand(words) {
		return nil, fmt.Errorf("%w: a change is a command of %s: -- %s ARGS", ErrRefused, program, program)
	}
	args, err := checked(words)
	if err != nil {
		return nil, err
	}
	return Change{args}, nil
}

// isCommand reports whether words look like a command of ovn-nbctl: after options, the name of a
// general command, or two words with a dash, as "acl-add".
func isCommand(words []string) bool {
	for _, word := range words {
		if strings.HasPrefix(word, "--") {
			continue
		}
		general := []string{"init", "show", "sync", "list", "find", "get", "set", "add", "remove", "clear", "create", "destroy", "comment"}
		return slices.Contains(general, word) || commandName.MatchString(word)
	}
	return false
}

var commandName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)+$`)

// ReadScript reads a change from lines that are commands of ovn-nbctl. Quotes and backslashes
// work as in a shell. Nothing else of a shell is known: a line with another program, a
// variable, a pipe or a redirection is refused. Blank lines and comments are left out.
func ReadScript(r io.Reader) (Change, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxChange+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxChange {
		return nil, fmt.Errorf("%w: more than %d MiB", ErrRefused, maxChange>>20)
	}
	commands, err := commands(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var change Change
	for _, c := range commands {
		command, err := Command(c.words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", c.line, err)
		}
		change = append(change, command...)
	}
	if len(change) == 0 {
		return nil, fmt.Errorf("%w: no line has a command of %s", ErrRefused, program)
	}
	return change, nil
}

// checked returns the arguments of ovn-nbctl without the options to wait, and refuses all options but
// the options of its commands: with others it could reach another database, or write files. Each command of a list begins with its options, where
// ovn-nbctl takes the beginning of an option for the option, and a separate word for its
// value; so options have to be written out, and values with "=".
func checked(words []string) ([]string, error) {
	var args []string
	options := true
	for _, word := range words {
		switch {
		case strings.ContainsRune(word, 0):
			return nil, fmt.Errorf("%w: an argument can't hold a NUL", ErrRefused)
		case word == "--":
			options = true
		case !options:
		case waits(word):
			continue
		case strings.HasPrefix(word, "-"):
			if !isCommandOption(word) {
				return nil, fmt.Errorf("%w: %s is not an option of a command of %s, or lacks =VALUE: a change is made in a copy of the database, and nowhere else", ErrRefused, word, program)
			}
		default:
			options = false
		}
		args = append(args, word)
	}
	if options {
		return nil, fmt.Errorf("%w: %s needs a command", ErrRefused, program)
	}
	return args, nil
}

// waits reports whether an option makes ovn-nbctl wait for northd or all chassis, which is
// done in any case.
func waits(option string) bool {
	return option == "--no-wait" || option == "--wait=sb" || option == "--wait=hv" || option == "--wait=none"
}

// isCommandOption reports whether a word is an option of a command (ovn-nbctl(8)).
func isCommandOption(word string) bool {
	flags := []string{"add-duplicate", "add-route", "all", "apply-after-lb", "bfd", "ecmp", "ecmp-symmetric-reply", "event", "fair",
		"if-exists", "is-exempted", "liveness", "log", "may-exist", "portrange", "reject", "stateless", "template"}
	values := []string{"bfd", "chain", "columns", "gateway-port", "id", "inactivity-probe", "label", "match", "meter", "name", "output-port",
		"policy", "priority", "route-table", "sample-est", "sample-new", "severity", "tier", "type"}
	name, _, hasValue := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	if !strings.HasPrefix(word, "--") {
		return false
	}
	if hasValue {
		return slices.Contains(values, name)
	}
	return slices.Contains(flags, name)
}
