package ticket

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
)

// statement is a simple command of a shell's command line.
type statement struct {
	words []string   // without quotes; "$(...)" is a part of a word
	pipe  [][]string // the programs that its output goes through
	file  string     // where its output goes, "" for none
}

// statements splits a command line of a POSIX shell (POSIX.1-2017, 2.3 and 2.10) at ";", "&&", "||" and "&", and
// its commands at "|". Redirections are left out. It follows what is between $( and ), and between quotes,
// only to find its end.
func statements(line string) (all []statement) {
	r := shellReader{line: line}
	var s statement
	piped := false
	for {
		r.file = ""
		words, end := r.simple()
		s.file = cmp.Or(r.file, s.file)
		switch {
		case len(words) == 0:
		case piped && len(s.words) > 0:
			s.pipe = append(s.pipe, words)
		default:
			s.words = words
		}
		piped = end == "|" || end == "|&"
		if piped {
			continue
		}
		if len(s.words) > 0 {
			all = append(all, s)
		}
		s = statement{}
		if end == "" {
			return all
		}
	}
}

// shellReader reads a command line from left to right.
type shellReader struct {
	line string
	at   int
	// needs names the first thing of the simple command that only a shell can carry out, "" for none.
	needs string
	// document is the delimiter of the here-document of the simple command, "" for none.
	document string
	file     string // where the output of the simple command goes, "" for none
}

// need notes what only a shell can carry out, with the text that shows it.
func (r *shellReader) need(what, shown string) {
	const most = 60 // bytes
	if r.needs == "" {
		r.needs = what + phrase.Shorten(shown, most)
	}
}

// expanded returns the beginning of a text, in which the mark of an expansion has to end.
func expanded(text string) string { return text[:min(len(text), 256)] }

// operators end a simple command, the longest first.
func operators() []string { return []string{"&&", "||", ";", "|&", "|", "&"} }

// simple returns the words up to the next operator, and that; "" at the end of the line.
func (r *shellReader) simple() (words []string, end string) {
	for {
		r.blanks()
		rest := r.line[r.at:]
		switch {
		case rest == "", rest[0] == '#' && len(words) > 0:
			r.at = len(r.line)
			return words, ""
		case r.redirection():
			continue
		}
		for _, operator := range operators() {
			if strings.HasPrefix(rest, operator) {
				r.at += len(operator)
				return words, operator
			}
		}
		words = append(words, r.word())
	}
}

func (r *shellReader) blanks() {
	for r.at < len(r.line) && (r.line[r.at] == ' ' || r.line[r.at] == '\t') {
		r.at++
	}
}

// redirection passes over a redirection with its file: "2>&1", ">> FILE", "&>FILE".
func (r *shellReader) redirection() bool {
	rest := r.line[r.at:]
	digits := strings.TrimLeft(rest, "0123456789&")
	operator := len(digits) - len(strings.TrimLeft(digits, "<>"))
	if operator == 0 || len(rest)-len(digits) > 1 || strings.HasPrefix(rest, "<(") || strings.HasPrefix(rest, ">(") {
		return false
	}
	begin := r.at
	r.at += len(rest) - len(digits) + operator
	if strings.HasPrefix(r.line[r.at:], "&") {
		r.at++
	}
	r.blanks()
	file := ""
	if r.at < len(r.line) {
		file = r.word()
	}
	if strings.HasPrefix(digits, ">") && (len(rest) == len(digits) || rest[0] == '1' || rest[0] == '&') {
		r.file = file
	}
	if delimiter := strings.TrimPrefix(file, "-"); digits[:operator] == "<<" && len(rest) == len(digits) && r.document == "" && delimiter != "" {
		r.document = delimiter
	} else {
		r.need("the redirection ", r.line[begin:r.at])
	}
	return true
}

// word returns the word that begins here.
func (r *shellReader) word() string {
	var word strings.Builder
	for begin := r.at; r.at < len(r.line); {
		switch c := r.line[r.at]; {
		case c == '\'' || c == '"':
			r.quoted(&word, c)
		case c == '\\' && r.at+1 < len(r.line):
			word.WriteByte(r.line[r.at+1])
			r.at += 2
		case strings.HasPrefix(r.line[r.at:], "$("), c == '`', r.at == begin && (strings.HasPrefix(r.line[r.at:], "<(") || strings.HasPrefix(r.line[r.at:], ">(")):
			end := r.substitution()
			r.need("the output of another command, ", r.line[r.at:end])
			word.WriteString(r.line[r.at:end])
			r.at = end
		case r.at > begin && strings.IndexByte(" \t;|&<>", c) >= 0:
			return word.String()
		default:
			r.expansion(c)
			word.WriteByte(c)
			r.at++
		}
	}
	return word.String()
}

// expansion notes a character outside of quotes that has a shell replace the word.
func (r *shellReader) expansion(c byte) {
	switch rest := expanded(r.line[r.at:]); c {
	case '$':
		if name := variable.FindString(rest); name != "" {
			r.need("the variable ", name)
		}
	case '*', '?':
		r.need("a pattern outside of quotes, ", rest[:1])
	case '{':
		if inner, _, ok := strings.Cut(rest, "}"); ok && !strings.ContainsAny(inner, " \t") && (strings.Contains(inner, ",") || strings.Contains(inner, "..")) {
			r.need("a list outside of quotes, ", inner+"}")
		}
	}
}

// variable matches a variable of a shell with its mark.
var variable = lazyregexp.New(`^\$(?:\w+|\{[^}]*\}|[@*#?!$-])`)

// quoted adds what is between two quotation marks. A mark without its end is a character, as in "it's". Between double quotes,
// a backslash takes the meaning of the next character away if that has one there (POSIX.1-2017, 2.2.3).
func (r *shellReader) quoted(word *strings.Builder, mark byte) {
	rest := r.line[r.at+1:]
	end := endOfQuotation(rest, mark)
	if end < 0 {
		r.need("a quotation mark without its end", "")
		word.WriteByte(mark)
		r.at++
		return
	}
	text := rest[:end]
	if mark == '"' {
		for i := 0; i < len(text); i++ {
			switch c := text[i]; {
			case c == '\\' && i+1 < len(text) && strings.IndexByte("\\\"$`", text[i+1]) >= 0:
				i++
			case c == '`':
				r.need("the output of another command, ", text[i:])
			case c == '$':
				if name := variable.FindString(expanded(text[i:])); name != "" {
					r.need("the variable ", name)
				} else if strings.HasPrefix(text[i:], "$(") {
					r.need("the output of another command, ", text[i:])
				}
			}
			word.WriteByte(text[i])
		}
	} else {
		word.WriteString(text)
	}
	r.at += end + 2
}

// endOfQuotation returns where a quotation mark ends the text, -1 if it has none.
func endOfQuotation(text string, mark byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == mark:
			return i
		case text[i] == '\\' && mark == '"':
			i++
		}
	}
	return -1
}

// substitution returns where the substitution of a command that begins here ends.
func (r *shellReader) substitution() int {
	if r.line[r.at] == '`' {
		if end := strings.IndexByte(r.line[r.at+1:], '`'); end >= 0 {
			return r.at + end + 2
		}
		return r.at + 1
	}
	depth := 0
	for i := r.at; i < len(r.line); i++ {
		switch r.line[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(r.line)
}

// filter returns the words of the programs of a pipe that may leave out lines or parts of them, "" if none does.
func (s statement) filter() string {
	var words []string
	for _, program := range s.pipe {
		if !printsAll(program[0]) {
			words = append(words, "| "+strings.Join(program, " "))
		}
	}
	if strings.HasPrefix(s.file, ">(") {
		words = append(words, "| "+strings.Trim(s.file, ">()"))
	}
	return strings.Join(words, " ")
}

// printsAll reports whether a program prints all lines that it reads.
func printsAll(program string) bool {
	return slices.Contains([]string{"cat", "less", "more", "tee", "sort", "sudo"}, program)
}

// filterOf returns the words of a command line that prints a part of a file, "" for another line: `head flows.txt`.
func filterOf(line string) string {
	length, _, _ := readPrompt(line)
	list := statements(line[length:])
	if len(line) > maxCommand || len(list) == 0 {
		return ""
	}
	last := list[len(list)-1]
	if slices.Contains([]string{"grep", "egrep", "fgrep", "zgrep", "rg", "head", "tail", "sed", "awk", "cut", "findstr", "diff"}, last.words[0]) {
		return strings.TrimSpace(strings.Join(last.words, " ") + " " + last.filter())
	}
	return last.filter()
}

// isEnd reports whether a statement ends a compound command, through whose pipe all of its output goes.
func (s statement) isEnd() bool {
	return slices.Contains([]string{"}", ")", "done", "fi", "esac"}, s.words[0])
}

// unfolded returns statements with the filters that are not in their own pipes: those behind a compound command, and of the programs
// that print the file into which an output went. Parentheses round commands are left out.
func unfolded(list []statement) []statement {
	for i := range list {
		words := list[i].words
		if bare := strings.TrimLeft(words[0], "({"); bare != "" {
			words[0] = bare
		} else if len(words) > 1 {
			list[i].words = words[1:]
		}
		last := &words[len(words)-1]
		if bare := strings.TrimRight(*last, ")"); bare != "" && strings.Count(*last, ")") > strings.Count(*last, "(") {
			*last = bare
			list = groupFilter(list, i)
		} else if list[i].isEnd() {
			list = groupFilter(list, i)
		}
		if file := list[i].file; file != "" {
			for _, later := range list[i+1 : min(len(list), i+1+maxPipe)] {
				if slices.Contains(later.words, file) && !printsAll(later.words[0]) {
					list[i].pipe = append(list[i].pipe, later.words)
				} else if slices.Contains(later.words, file) {
					list[i].pipe = append(list[i].pipe, later.pipe...)
				}
			}
		}
	}
	return list
}

// maxPipe is how many programs of the pipes of other statements a command gets, and among how many statements they are sought.
const maxPipe = 8

// groupFilter gives the statements before one the programs of its pipe.
func groupFilter(list []statement, end int) []statement {
	for i := range list[:end] {
		if len(list[i].pipe) < maxPipe {
			list[i].pipe = append(list[i].pipe, list[end].pipe...)
		}
	}
	return list
}
