// Package webpage has what the pages of answers share: the style sheet, the policy under which a page loads
// nothing, and the ways in which foreign text gets into a page.
package webpage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"ovs-offline/internal/terminal"
)

//go:embed base.css
var base string

// Style returns the style sheet of a page: the rules that all pages share, and then its own.
func Style(own string) template.CSS { return template.CSS(base + own) }

// Policy returns a Content-Security-Policy for a page that holds these scripts and style sheets: only they
// apply, and nothing is loaded.
func Policy(scripts []string, styles ...string) string {
	policy := "default-src 'none'; "
	if len(scripts) > 0 {
		policy += "script-src" + digests(scripts) + "; "
	}
	return policy + "style-src" + digests(styles) + "; base-uri 'none'; form-action 'none'"
}

// digests returns texts as sources of a policy.
func digests(texts []string) (list string) {
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		list += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return list
}

// Funcs returns the functions with which templates write foreign text: plain as one line, lines as several,
// and fields as a line that a browser may break behind each comma.
func Funcs() template.FuncMap {
	plain := func(text any) string { return Plain(fmt.Sprint(text)) }
	return template.FuncMap{"plain": plain, "lines": lines, "fields": fields}
}

// Plain returns a text as one line without control characters.
func Plain(text string) string { return strings.ReplaceAll(terminal.Escape(text), "\t", " ") }

func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(terminal.Escape(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

func fields(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(Plain(text)), ",", ",<wbr>"))
}
