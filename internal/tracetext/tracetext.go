// Package tracetext finds the outputs of ofproto/trace and ovn-trace in text that people paste, and
// keeps them in files, each with its command line and the place where it stood.
package tracetext

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// Tool is the command that printed a trace.
type Tool string

// The tools.
const (
	Switch  Tool = "ofproto/trace"
	Logical Tool = "ovn-trace"
)

// Trace is what a tool printed of one packet.
type Trace struct {
	Tool Tool
	// Origin is where the output stood: a file and the number of a line.
	Origin string
	// Words are the words of the command line from the tool on, nil if it was not pasted.
	Words []string
	// Text is the output without what programs put before its lines.
	Text string
	// Lacks is why the text is not all that the tool printed, nil if it is.
	Lacks []string
	// Flat reports that the output had no indentation: which flow an action is of is not certain.
	Flat bool
}

// flatMark is the sentence in Format about an output without its indentation.
const flatMark = "it had no indentation"

// Format returns a trace as Read takes it: a line with its origin, its command line, and its text.
func (t Trace) Format() string {
	var b strings.Builder
	fmt.Fprintf(&b, "==> %s <==\n$ %s\n", strings.ReplaceAll(t.Origin, "\n", " "), joinWords(t.Words))
	lacks := t.Lacks
	if t.Flat {
		lacks = append(slices.Clone(lacks), flatMark)
	}
	for _, why := range lacks {
		fmt.Fprintf(&b, "! %s\n", strings.ReplaceAll(why, "\n", " "))
	}
	b.WriteString(t.Text)
	b.WriteString("\n")
	return b.String()
}

// Read returns the traces in a file of Format, or in a file that a user added: one output, or several, each
// of which may follow its command line.
func Read(text string) []Trace {
	if !strings.HasPrefix(text, "==> ") {
		return Find(text)
	}
	var all []Trace
	var output strings.Builder // of the last one
	end := func() {
		if n := len(all) - 1; n >= 0 {
			all[n].Text = strings.TrimSuffix(output.String(), "\n")
		}
		output.Reset()
	}
	for line := range strings.Lines(text) {
		plain := strings.TrimSuffix(line, "\n")
		n := len(all) - 1
		switch {
		case strings.HasPrefix(plain, "==> ") && strings.HasSuffix(plain, " <=="):
			end()
			all = append(all, Trace{Tool: Switch, Origin: strings.TrimSuffix(plain[len("==> "):], " <==")})
		case n < 0:
		case strings.HasPrefix(plain, "$ ") && output.Len() == 0:
			all[n].Words = splitWords(plain[len("$ "):])
		case strings.HasPrefix(plain, "! ") && output.Len() == 0:
			if why := plain[len("! "):]; why == flatMark {
				all[n].Flat = true
			} else {
				all[n].Lacks = append(all[n].Lacks, why)
			}
		default:
			output.WriteString(line)
		}
	}
	end()
	for i := range all {
		if first, _, _ := strings.Cut(all[i].Text, "\n"); ToolOf(all[i].Words) == Logical || beginsLogical(first) {
			all[i].Tool = Logical
		}
	}
	return all
}

// Find returns the traces in a text without other outputs.
func Find(text string) (all []Trace) {
	var finder Finder
	var open *Reader
	var words []string
	end := func() {
		if open != nil {
			trace := open.Trace()
			trace.Words = words
			all = append(all, trace)
		}
		open, words = nil, nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		if open != nil && open.Take(line) {
			continue
		}
		if open != nil {
			end()
		}
		if command := splitWords(strings.TrimLeft(line, "$#> ")); ToolOf(command) != "" {
			words = command
			continue
		}
		open = finder.Next(line)
	}
	end()
	return all
}

// ToolOf returns the tool that a command line runs, "" for none of the two.
func ToolOf(words []string) Tool {
	for _, word := range words {
		switch {
		case word == string(Switch) || strings.HasPrefix(word, "ofproto/trace-packet-out"):
			return Switch
		case word == string(Logical) || strings.HasSuffix(word, "/"+string(Logical)):
			return Logical
		}
	}
	return ""
}

// joinWords returns words as a shell takes them.
func joinWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		word = strings.Join(strings.FieldsFunc(word, func(c rune) bool { return c == '\n' || c == '\r' }), " ")
		if word == "" || strings.ContainsAny(word, " \t'\"\\$&|;<>()*?#~`[]{}!") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		quoted[i] = word
	}
	return strings.Join(quoted, " ")
}

// splitWords returns the words of a command line without their quotes.
func splitWords(line string) (words []string) {
	var word strings.Builder
	begun, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"') && strings.IndexByte(line[i+1:], c) >= 0:
			quote, begun = c, true
		case quote == 0 && c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			begun = true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// Describe names a trace in a few words: its command line, or how it begins.
func (t Trace) Describe() string {
	if t.Words != nil {
		return joinWords(t.Words)
	}
	first, _, _ := strings.Cut(t.Text, "\n")
	return fmt.Sprintf("%s of %s", t.Tool, phrase.Shorten(strings.TrimPrefix(strings.TrimPrefix(first, "# "), "Flow: "), 200))
}
