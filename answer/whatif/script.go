package whatif

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// simpleCommand is a simple command of a script.
type simpleCommand struct {
	line  int // from 1
	words []string
}

// commands returns the commands of a script. The error names the line of the first part
// that is not a plain word.
func commands(script []byte) ([]simpleCommand, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(script), "")
	var wrong syntax.ParseError
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("line %d: %s", wrong.Pos.Line(), wrong.Text)
	}
	if err != nil {
		return nil, err
	}
	var all []simpleCommand
	for _, statement := range file.Stmts {
		words, err := plainCommand(statement)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", statement.Pos().Line(), err)
		}
		all = append(all, simpleCommand{int(statement.Pos().Line()), words})
	}
	return all, nil
}

// plainCommand returns the words of a statement that is a simple command.
func plainCommand(s *syntax.Stmt) ([]string, error) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Semicolon.IsValid() || len(s.Redirs) > 0 || len(call.Assigns) > 0 {
		return nil, errNotPlain
	}
	var words []string
	for _, w := range call.Args {
		word, err := plainWord(w)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return words, nil
}

// errNotPlain is the error for what a shell would expand or run.
var errNotPlain = errors.New("it has a meaning for a shell, and no shell reads this: quote it, or write the commands out, each on a line of its own")

// plainWord returns a word without its quotes.
func plainWord(quoted *syntax.Word) (string, error) {
	plain := !syntax.SplitBraces(&syntax.Word{Parts: quoted.Parts})
	if first, ok := quoted.Parts[0].(*syntax.Lit); ok && strings.HasPrefix(first.Value, "~") {
		plain = false
	}
	syntax.Walk(quoted, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.Word, *syntax.Lit:
		case *syntax.SglQuoted:
			plain = plain && !n.Dollar
		case *syntax.DblQuoted:
			plain = plain && !n.Dollar
		default:
			plain = false
		}
		return plain
	})
	if !plain {
		return "", errNotPlain
	}
	fields, err := expand.Fields(nil, quoted)
	if err != nil {
		return "", err
	}
	return strings.Join(fields, " "), nil // it is one field: only expansions are split
}
