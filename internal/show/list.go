package show

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"ovs-offline/internal/terminal"
)

// List writes a long list one value after the other: as texts for people, or as JSON or YAML,
// alone or as a field of a document. Only one value is in memory at a time.
type List struct {
	Out    io.Writer
	Format string // json, yaml, or another for texts
	Field  string // "" for a list alone
	Count  int    // of the values so far
}

// Add writes a value; text returns it for people.
func (l *List) Add(v any, text func() string) error {
	l.Count++
	switch {
	case l.Format == "json":
		return l.addJSON(v)
	case l.Format != "yaml":
		return l.write(text())
	case l.Count == 1 && l.Field != "":
		if err := l.write(l.Field + ":\n"); err != nil {
			return err
		}
	}
	return terminal.WriteYAML(l.Out, []any{v})
}

func (l *List) write(text string) error {
	_, err := io.WriteString(l.Out, text)
	return err
}

func (l *List) addJSON(v any) error {
	var text bytes.Buffer
	if err := terminal.WriteJSON(&text, v); err != nil {
		return err
	}
	separator := ",\n"
	if l.Count == 1 {
		separator = "[\n"
	}
	if l.Field == "" {
		return l.write(separator + text.String())
	}
	separator = ",\n    "
	if l.Count == 1 {
		separator = l.begin() + "\n    "
	}
	return l.write(separator + strings.ReplaceAll(strings.TrimSpace(text.String()), "\n", "\n    "))
}

// begin returns the beginning of a document as JSON.
func (l *List) begin() string { return fmt.Sprintf("{\n  %q: [", l.Field) }

// End writes the end of the list, and behind the field of a document the fields of tail.
func (l *List) End(tail any) error {
	isJSON, isYAML := l.Format == "json", l.Format == "yaml"
	text := ""
	switch {
	case isYAML && l.Field != "" && l.Count == 0:
		text = l.Field + ": []\n"
	case isJSON && l.Field != "" && l.Count == 0:
		text = l.begin() + "\n  ]"
	case isJSON && l.Field != "":
		text = "\n  ]"
	case (isJSON || isYAML) && l.Count == 0:
		text = "[]\n"
	case isJSON:
		text = "]\n"
	}
	if err := l.write(text); err != nil || l.Field == "" {
		return err
	}
	if isYAML {
		return terminal.WriteYAML(l.Out, tail)
	}
	var rest bytes.Buffer
	if err := terminal.WriteJSON(&rest, tail); err != nil {
		return err
	}
	return l.write("," + strings.TrimPrefix(rest.String(), "{"))
}
