package mcp

import (
	"fmt"
	"regexp"
	"strings"

	"ovs-offline/internal/terminal"
)

var (
	tableName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	columnNames = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(, *[A-Za-z_][A-Za-z0-9_]*)*$`)
	escapes     = regexp.MustCompile(`\\[bfnrtu]`) // in JSON
	zoneFilter  = regexp.MustCompile(`^zone=([0-9]{1,5})$`)
)

// checkText checks a text that becomes an argument of a tool: it can't be an option.
func checkText(what, text string) error {
	const most = 32 << 10
	switch {
	case text == "":
		return fmt.Errorf("%s is missing", what)
	case strings.HasPrefix(text, "-"):
		return fmt.Errorf("%s begins with a dash: %q", what, text[:min(len(text), 80)])
	case len(text) > most:
		return fmt.Errorf("%s has more than %d bytes", what, most)
	case strings.ContainsAny(text, "\x00\n\r"):
		return fmt.Errorf("%s has more than one line", what)
	}
	return nil
}

// checkGiven checks a text that need not be given.
func checkGiven(what, text string) error {
	if text == "" {
		return nil
	}
	return checkText(what, text)
}

// checkPattern checks a text against a pattern.
func checkPattern(what, text string, pattern *regexp.Regexp) error {
	if err := checkText(what, text); err != nil {
		return err
	}
	if !pattern.MatchString(text) {
		return fmt.Errorf("%s is not valid: %q", what, text[:min(len(text), 80)])
	}
	return nil
}

// wrongValue returns the error for a value that is not on the list of a tool.
func wrongValue(what, value string, allowed ...string) error {
	return fmt.Errorf("%s %q is refused; it is one of: %s", what, value[:min(len(value), 80)], strings.Join(allowed, ", "))
}

// escapeAll returns sentences with names in them as lines that are safe to print, without empty ones.
func escapeAll(texts []string) (safe []string) {
	for _, text := range texts {
		if text != "" {
			safe = append(safe, terminal.Escape(text))
		}
	}
	return safe
}
