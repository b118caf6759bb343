package tickets

import (
	"html"
	"strings"
)

// markup are the forms of documents around the outputs.
func markup() []Form {
	return ofKind("markup",
		byBlock("fence", "a block of Markdown for each output", "```\n", "```\n", nil),
		byBlock("fence with language", "```console", "```console\n", "```\n", nil),
		byBlock("tildes", "~~~", "~~~\n", "~~~\n", nil),
		byBlock("summary", "<details><summary>COMMAND</summary>", "<details><summary>", "</details>\n", func(command, text string) string {
			return command + "</summary>\n\n```\n" + ended(text) + "```\n\n"
		}),
		byBlock("inline command", "the command in a sentence, the output in a block", "", "", func(command, text string) string {
			return "Output of `" + command + "`:\n\n```\n" + ended(text) + "```\n"
		}),
		byBlock("heading", "the command as a heading, the output in a block", "", "", func(command, text string) string {
			return "### " + command + "\n\n```\n" + ended(text) + "```\n"
		}),
		byBlock("bold command", "the command in bold, the output in a block", "", "", func(command, text string) string {
			return "**" + command + "**\n\n```\n" + ended(text) + "```\n"
		}),
		byBlock("jira code", "{code}", "{code:bash}\n", "{code}\n", nil),
		byBlock("jira noformat", "{noformat:title=COMMAND}", "", "", func(command, text string) string {
			return "{noformat:title=" + command + "}\n" + ended(text) + "{noformat}\n"
		}),
		byBlock("asciidoc", "[source,console] and ----", "[source,console]\n----\n", "----\n", nil),
		byBlock("org", "#+BEGIN_SRC", "#+BEGIN_SRC sh\n", "#+END_SRC\n", nil),
		byBlock("redmine", "<pre><code class=\"text\">", "<pre><code class=\"text\">\n", "</code></pre>\n", nil),
		byText("indented by four", "a block of Markdown that is indented", func(_ *Node, text string) string { return prefixed(text, "    ") }),
		byText("rst", "a literal block of reStructuredText", func(_ *Node, text string) string {
			return "The node says::\n\n" + prefixed(text, "  ") + "\nWhat is wrong?\n"
		}),
		byText("quoted", "a mail that is quoted: \"> \"", func(_ *Node, text string) string { return prefixed(text, "> ") }),
		byText("quoted twice", "\">> \"", func(_ *Node, text string) string { return prefixed(text, ">> ") }),
		byText("quoted in turns", "\"> > \"", func(_ *Node, text string) string { return prefixed(text, "> > ") }),
		byText("html page", "a page with everything in <pre>", func(_ *Node, text string) string {
			return "<!DOCTYPE html>\n<html><head><title>bug 1</title></head><body>\n<p>See below.</p>\n<pre>" + html.EscapeString(text) + "</pre>\n</body></html>\n"
		}),
		byText("html blocks", "a page with <pre> for each line of a mail", func(_ *Node, text string) string {
			return "<html><body>\n" + eachLine(text, func(_ int, line string) string { return "<div>" + html.EscapeString(line) + "<br></div>" }) + "</body></html>\n"
		}),
		byText("list", "the outputs below the items of a list", func(_ *Node, text string) string { return "1. What I see:\n\n" + prefixed(text, "   ") }),
	)
}

// byBlock returns a form in which each output has a block of its own. inside makes the text of a block, nil for a prompt with the
// command and the output.
func byBlock(name, shows, begin, end string, inside func(command, text string) string) Form {
	return Form{Name: name, Shows: shows, Write: func(n *Node) string {
		var b strings.Builder
		b.WriteString("Traffic is lost.\n\n")
		for _, o := range n.Outputs {
			text := plain(n, []Output{o})
			if inside != nil {
				text = inside(o.Command, o.Text)
			}
			b.WriteString(begin + text + end + "\n")
		}
		return b.String()
	}}
}

// prefixed returns a text with a prefix before each line, without blanks at the ends of lines.
func prefixed(text, prefix string) string {
	return eachLine(text, func(_ int, line string) string { return strings.TrimRight(prefix+line, " ") })
}

// encodings are the forms of what programs do with the characters and the ends of lines.
func encodings() []Form {
	return ofKind("encoding",
		byText("crlf", "the ends of lines of Windows", func(_ *Node, text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }),
		byText("doubled newlines", "an empty line behind each line", func(_ *Node, text string) string { return strings.ReplaceAll(text, "\n", "\n\n") }),
		byText("doubled crlf", "an empty line behind each line, with the ends of lines of Windows", func(_ *Node, text string) string { return strings.ReplaceAll(text, "\n", "\r\n\r\n") }),
		byText("nbsp", "blanks that don't break, everywhere", func(_ *Node, text string) string { return strings.ReplaceAll(text, " ", "\u00a0") }),
		byText("nbsp before", "blanks that don't break before each line", func(_ *Node, text string) string {
			return eachLine(text, func(_ int, line string) string {
				bare := strings.TrimLeft(line, " ")
				return strings.Repeat("\u00a0", len(line)-len(bare)) + bare
			})
		}),
		byText("nbsp entities", "&nbsp; for each blank", func(_ *Node, text string) string {
			return "<html><body><p>" + strings.ReplaceAll(strings.ReplaceAll(html.EscapeString(text), " ", "&nbsp;"), "\n", "<br>\n") + "</p></body></html>\n"
		}),
		byText("byte order mark", "U+FEFF at the beginning", func(_ *Node, text string) string { return "\ufeff" + text }),
		byText("trailing blanks", "lines that are filled up with blanks to 80 columns", func(_ *Node, text string) string {
			return eachLine(text, func(_ int, line string) string { return line + strings.Repeat(" ", max(0, 80-len(line))) })
		}),
		byText("tabs", "a tabulator for the blanks before each line", func(_ *Node, text string) string {
			return eachLine(text, func(_ int, line string) string {
				bare := strings.TrimLeft(line, " ")
				return strings.Repeat("\t", (len(line)-len(bare)+3)/4) + bare
			})
		}),
		byText("colours", "the colours of ovs-ofctl --color", func(_ *Node, text string) string {
			return strings.NewReplacer("actions=", "\x1b[01;31mactions=\x1b[m", "table=", "\x1b[32mtable=\x1b[m", "drop", "\x1b[31mdrop\x1b[m").Replace(text)
		}),
		byText("zero width blanks", "U+200B behind each comma, as some trackers put it to let lines break", func(_ *Node, text string) string {
			return strings.ReplaceAll(text, ", ", ",\u200b ")
		}),
		byText("script", "what script(1) adds, and the carriage returns of the terminal", func(n *Node, text string) string {
			return "Script started on 2026-05-07 06:44:05+00:00 [TERM=\"xterm\"]\n" + strings.ReplaceAll(text, "\n", "\r\n") + rootPrompt(n) + "exit\n\nScript done on 2026-05-07 06:45:05+00:00\n"
		}),
	)
}
