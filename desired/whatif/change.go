package whatif

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Change is a change of the northbound database: the arguments of runs of ovn-nbctl, in
// their order.
type Change [][]string

// ErrRefused is wrapped for a line that is not a run of ovn-nbctl, and for an option that
// would lead it elsewhere.
var ErrRefused = errors.New("refused")

// maxChange bounds the text of a change in bytes.
const maxChange = 16 << 20

// program is the only one that changes consist of.
const program = "ovn-nbctl"

// Command returns the change that a command makes, which begins with "ovn-nbctl".
func Command(words []string) (Change, error) {
	if len(words) == 0 || words[0] != program {
		return nil, fmt.Errorf("%w: a change is a command of %s: -- %s ARGS", ErrRefused, program, program)
	}
	args, err := checked(words[1:])
	if err != nil {
		return nil, err
	}
	return Change{args}, nil
}

// ReadScript reads a change from lines that begin with "ovn-nbctl". Quotes and backslashes
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
	var change Change
	for s := (scanner{text: string(text), line: 1}); ; {
		words, err := s.command()
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrRefused, s.line, err)
		}
		if words == nil {
			break
		}
		one, err := Command(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", s.begin, err)
		}
		change = append(change, one...)
	}
	if len(change) == 0 {
		return nil, fmt.Errorf("%w: no line has a command of %s", ErrRefused, program)
	}
	return change, nil
}

// checked returns the arguments of ovn-nbctl without those by which it would wait, and
// refuses options other than those of its commands: with them it could reach another
// database, or write files. Each command of a list begins with its options, where
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

// scanner splits a script into words.
type scanner struct {
	text  string
	line  int // from 1
	begin int // the line of the last command
}

// special are the characters to which a shell gives a meaning that ReadScript does not.
const special = "$`|&;<>()"

// command returns the words of the next line that has any, nil at the end.
func (s *scanner) command() ([]string, error) {
	var words []string
	for {
		s.text = strings.TrimLeft(s.text, " \t\r")
		switch {
		case s.text == "":
			return words, nil
		case s.text[0] == '\n':
			s.next()
			if len(words) > 0 {
				return words, nil
			}
		case s.text[0] == '#':
			s.text = s.text[lineEnd(s.text):]
		case strings.HasPrefix(s.text, "\\\n"):
			s.next()
			s.next()
		default:
			if len(words) == 0 {
				s.begin = s.line
			}
			word, err := s.word()
			if err != nil {
				return nil, err
			}
			words = append(words, word)
		}
	}
}

// lineEnd returns the length of the first line of a text.
func lineEnd(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// next removes and returns the next byte.
func (s *scanner) next() byte {
	c := s.text[0]
	s.text = s.text[1:]
	if c == '\n' {
		s.line++
	}
	return c
}

// word returns the next word, without its quotes.
func (s *scanner) word() (string, error) {
	var b strings.Builder
	for s.text != "" && !strings.ContainsRune(" \t\r\n", rune(s.text[0])) {
		switch c := s.next(); {
		case c == '\'':
			end := strings.IndexByte(s.text, '\'')
			if end < 0 {
				return "", errors.New("a quote is not closed")
			}
			for range end {
				b.WriteByte(s.next())
			}
			s.next()
		case c == '"':
			if err := s.quoted(&b); err != nil {
				return "", err
			}
		case c == '\\':
			if s.text == "" {
				return "", errors.New("nothing follows a backslash")
			}
			if next := s.next(); next != '\n' {
				b.WriteByte(next)
			}
		case strings.IndexByte(special, c) >= 0:
			return "", fmt.Errorf("%q has a meaning for a shell, and no shell reads this: quote it, or write the command out", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// quoted reads the rest of a part in double quotes.
func (s *scanner) quoted(b *strings.Builder) error {
	for s.text != "" {
		switch c := s.next(); {
		case c == '"':
			return nil
		case c == '\\' && s.text != "" && strings.IndexByte("\"\\$`\n", s.text[0]) >= 0:
			if next := s.next(); next != '\n' {
				b.WriteByte(next)
			}
		case c == '$' || c == '`':
			return fmt.Errorf("%q has a meaning for a shell, and no shell reads this: write the command out", c)
		default:
			b.WriteByte(c)
		}
	}
	return errors.New("a quote is not closed")
}
