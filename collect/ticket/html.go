package ticket

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"ovs-offline/internal/lazyregexp"
)

var htmlTag = lazyregexp.New(`(?i)<(?:!doctype html|html|body|pre|p|div|br|code)\b[^>]*>`)

func isHTML(text string) bool { return htmlTag.MatchString(text[:min(len(text), 64<<10)]) }

// textOfHTML returns the text of a page, each block on lines of its own, with the marks of a
// code block around preformatted text.
func textOfHTML(page string) string {
	var text strings.Builder
	hidden := 0 // depth of elements whose text is not shown
	tokens := html.NewTokenizer(strings.NewReader(page))
	for {
		switch kind := tokens.Next(); kind {
		case html.ErrorToken:
			return text.String()
		case html.TextToken:
			if hidden == 0 {
				text.Write(tokens.Text())
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := tokens.TagName()
			switch tag := string(name); {
			case tag == "script" || tag == "style":
				hidden = max(0, hidden+map[html.TokenType]int{html.StartTagToken: 1, html.EndTagToken: -1}[kind])
			case tag == "pre":
				text.WriteString("\n```\n")
			case slices.Contains([]string{"br", "p", "div", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"}, tag):
				text.WriteByte('\n')
			}
		}
	}
}
