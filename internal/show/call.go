package show

import "strings"

// Call makes the command line of a command of the program, for pasting into a shell: its name as it was called, the working directory, and
// the node that the command is about, "" for all. Without one, there is only the command.
type Call func(node string, args ...string) string

// Line returns the command line of a command.
func (c Call) Line(node string, args ...string) string {
	if c == nil {
		return Words(args...)
	}
	return c(node, args...)
}

// Words quotes words for pasting into a shell, and joins them.
func Words(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}

// Adviser is an error that advises a command of the program.
type Adviser interface {
	error
	// Advising returns the text of the error with the command line that call makes.
	Advising(call Call) string
}

// Advise returns an error whose text ends with the command line of a command, about a node or "".
func Advise(err error, node string, args ...string) error { return advice{err, node, args} }

// advice is an error with a command that helps.
type advice struct {
	error
	node string
	args []string
}

// Error returns the text with the command alone.
func (a advice) Error() string { return a.Advising(nil) }

// Advising implements Adviser.
func (a advice) Advising(call Call) string {
	return a.error.Error() + ": " + call.Line(a.node, a.args...)
}

// Unwrap returns the error without the command.
func (a advice) Unwrap() error { return a.error }
