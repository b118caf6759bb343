package ticket

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir/recording"
)

// maxTyped is the length of the longest command line that ReadTyped returns the words of, in bytes.
const maxTyped = 64 << 10

// ReadTyped returns the commands that a text has somebody type. Where other commands have no prompt, the text is a script, and
// those behind "# " are comments.
func ReadTyped(text string) (script recording.Script) {
	if isHTML(text) {
		text = textOfHTML(text)
	}
	r := typedReader{lines: strings.Split(text, "\n")}
	for r.at < len(r.lines) {
		r.readLine()
	}
	if !r.script {
		return recording.Script{Commands: r.found}
	}
	comments := slices.Compact(r.hashed)
	commands := slices.DeleteFunc(r.found, func(c recording.Typed) bool {
		_, isComment := slices.BinarySearch(comments, c.Line)
		return isComment
	})
	return recording.Script{Commands: commands, Comments: comments}
}

// typedReader reads the lines of a text.
type typedReader struct {
	lines  []string
	at     int // the next line
	found  []recording.Typed
	hashed []int            // lines with a command behind "# "
	script bool             // a command has no prompt
	opened int              // the line with "for", "while" or "if" that was read last
	depth  int              // of loops and conditions
	ends   map[string][]int // the lines that can end a here-document, by their text; nil until one is needed
}

// typedTool matches a tool of Open vSwitch or OVN, with its path or with the name of its snap.
var typedTool = lazyregexp.New(`^(?:[\w-]+\.)?((?:ovs|ovn)-(?:(?:ic-)?(?:nb|sb|vs|of|dp|app)?ctl|trace|detrace|testcontroller|tcpdump|pki|docker|vlan-test)|vtep-ctl|ovsdb-(?:client|tool))$`)

// toolTyped returns the name of the tool that a word of a command line names, "" for another word.
func toolTyped(word string) string {
	if !strings.Contains(word, "ctl") && !strings.Contains(word, "ov") || len(word) > 200 {
		return ""
	}
	if match := typedTool.FindStringSubmatch(path.Base(word)); match != nil {
		return match[1]
	}
	return ""
}

// listMark matches what a list puts before its items.
var listMark = lazyregexp.New(`^(?:[-*•+]|\d{1,3}[.)])\s+`)

// readLine reads a command line: one line, and those that a backslash at the end continues.
func (r *typedReader) readLine() {
	number := r.at + 1
	line := r.joined()
	rest := strings.TrimSpace(line)
	if !mayType(rest) {
		return
	}
	length, host := 0, ""
	if first, _, _ := strings.Cut(rest, " "); toolTyped(first) == "" {
		length, host, _ = readPrompt(rest)
	}
	if prompt := strings.TrimSpace(rest[:length]); length > 0 {
		r.depth = 0 // the shell waits for a new command
		if prompt == "#" {
			defer func(before int) {
				if len(r.found) > before {
					r.hashed = append(r.hashed, number)
				}
			}(len(r.found))
		}
	}
	rest = rest[length:]
	if length == 0 {
		rest = listMark.ReplaceAllString(rest, "")
		if inner, ok := strings.CutPrefix(rest, "`"); ok {
			rest = strings.TrimSuffix(inner, "`")
		}
	}
	before := len(r.found)
	r.readStatements(rest, number, host)
	r.script = r.script || length == 0 && len(r.found) > before
}

// mayType reports whether a line has a tool, or a word of a shell that opens or ends a loop or a condition.
func mayType(line string) bool {
	if strings.Contains(line, "ovs") || strings.Contains(line, "ovn-") || strings.Contains(line, " ko ") || strings.Contains(line, "vtep-ctl") || strings.Contains(line, "<<") {
		return true
	}
	first, _, _ := strings.Cut(line, " ")
	return slices.Contains([]string{"for", "while", "until", "if", "do", "then", "done", "fi"}, strings.Trim(first, ";$#> "))
}

// joined returns the next line with those that continue it.
func (r *typedReader) joined() string {
	line, _, _ := plain(r.lines[r.at])
	r.at++
	if !strings.HasSuffix(line, `\`) {
		return line
	}
	var all strings.Builder
	for strings.HasSuffix(line, `\`) && r.at < len(r.lines) {
		if all.Len() <= maxTyped {
			all.WriteString(strings.TrimSuffix(line, `\`))
		}
		line, _, _ = plain(r.lines[r.at])
		r.at++
	}
	all.WriteString(strings.TrimSuffix(line, `\`))
	return all.String()
}

// readStatements reads the simple commands of a command line.
func (r *typedReader) readStatements(line string, number int, host string) {
	shell := shellReader{line: line[:min(len(line), maxTyped)]}
	var document string // the delimiter of the line's here-document
	var readers []int   // the commands that read it
	var passed string   // the delimiter of the one that "cat" passes to the next command
	for before := ""; ; {
		begin := shell.at
		shell.needs, shell.document = "", ""
		words, end := shell.simple()
		from := len(r.found)
		if words = r.withoutKeywords(words, number); len(words) > 0 {
			r.add(words, recording.Typed{Line: number, Text: strings.TrimRight(strings.TrimSpace(line[begin:shell.at]), "|&; "), Host: host, Needs: shell.needs}, 0)
		}
		own := cmp.Or(shell.document, passed)
		for i := from; i < len(r.found); i++ {
			if own != "" {
				readers = append(readers, i)
			}
			if why := r.needed(line, before, end, passed != ""); why != "" {
				r.found[i].Needs = cmp.Or(r.found[i].Needs, why)
			}
		}
		document, passed = cmp.Or(document, own), ""
		if end == "|" && len(words) == 1 && words[0] == "cat" && shell.needs == "" {
			passed = shell.document
		}
		if before = end; end == "" {
			break
		}
		if end == "&&" && len(words) > 0 && slices.Contains([]string{"[", "[[", "test", "grep", "which"}, words[0]) {
			before = "||" // it is there to fail, too
		}
	}
	if document == "" {
		return
	}
	input, whole := r.document(document)
	for _, i := range readers {
		if r.found[i].Input = input; !whole {
			r.found[i].Needs = cmp.Or(r.found[i].Needs, "a here-document without its end")
		}
	}
}

// needed returns what only a shell can do around a simple command of a line, "" for nothing: before and end are the operators
// around it, and passed reports that its input is a here-document that "cat" passes on.
func (r *typedReader) needed(line, before, end string, passed bool) string {
	switch {
	case len(line) > maxTyped:
		return "more than 64 KiB of arguments"
	case r.depth > 0:
		return "a loop or a condition"
	case end == "|", before == "|" && !passed:
		return "a pipe"
	case before == "||":
		return "the outcome of the command before it"
	}
	return ""
}

// document returns the lines of a here-document. whole is false if its end is not in the text.
func (r *typedReader) document(delimiter string) (input []string, whole bool) {
	if r.ends == nil {
		r.findEnds()
	}
	at, _ := slices.BinarySearch(r.ends[delimiter], r.at)
	if at == len(r.ends[delimiter]) {
		return nil, false // the lines may be commands
	}
	for ; r.at < r.ends[delimiter][at]; r.at++ {
		line, _, _ := plain(r.lines[r.at])
		input = append(input, line)
	}
	r.at++
	return input, true
}

// findEnds finds the lines that can end a here-document: those of one word.
func (r *typedReader) findEnds() {
	const longest = 64
	r.ends = map[string][]int{}
	for i, line := range r.lines {
		if len(line) > 2*longest {
			continue
		}
		line, _, _ = plain(line)
		if line = strings.TrimSpace(line); line != "" && len(line) <= longest && !strings.ContainsAny(line, " \t") {
			r.ends[line] = append(r.ends[line], i)
		}
	}
}

// withoutKeywords returns a simple command without the words of a shell before it, and follows loops and conditions.
func (r *typedReader) withoutKeywords(words []string, line int) []string {
	for len(words) > 0 {
		switch words[0] {
		case "for", "while", "until", "if":
			r.opened = line
			if words[0] == "for" {
				return nil
			}
		case "do", "then":
			if r.opened > 0 && line <= r.opened+1 {
				r.depth++
				r.opened = 0
			}
		case "done", "fi":
			r.depth = max(0, r.depth-1)
			return nil
		case "else", "!", "time":
		default:
			return words
		}
		words = words[1:]
	}
	return nil
}

// add adds the command of a tool that a simple command runs, or those of a command line that is a word of it.
func (r *typedReader) add(words []string, c recording.Typed, depth int) {
	words, node := withoutPlugin(words)
	first := slices.IndexFunc(words, func(word string) bool { return toolTyped(word) != "" })
	if first < 0 {
		if depth < maxNested && runsOthers(words) {
			r.addNested(words, c, depth)
		}
		return
	}
	before := words[:first]
	assigned := slices.IndexFunc(before, func(word string) bool { return strings.Contains(word, "=") && !strings.HasPrefix(word, "-") })
	if first > 0 && assigned != 0 && !runsOthers(before) || first+1 < len(words) && strings.HasPrefix(words[first+1], "(") {
		return // a sentence, or what a tool prints as its version
	}
	if assigned >= 0 {
		c.Needs = cmp.Or(c.Needs, "the variable "+before[assigned])
	}
	c.Host = cmp.Or(node, typedPlace(before), c.Host)
	c.Words = append([]string{toolTyped(words[first])}, words[first+1:]...)
	r.found = append(r.found, c)
}

// addNested adds the commands of command lines that are words: ssh host "sudo sh -c '...'".
func (r *typedReader) addNested(words []string, c recording.Typed, depth int) {
	for _, word := range words[1:] {
		if !strings.ContainsAny(word, " \t") || !mayType(word) {
			continue
		}
		inner := shellReader{line: word}
		for end := "x"; end != ""; {
			var simple []string
			inner.needs, inner.document = "", ""
			simple, end = inner.simple()
			one := c
			one.Host, one.Needs = cmp.Or(typedPlace(words), c.Host), cmp.Or(c.Needs, inner.needs)
			if end == "|" || end == "||" {
				one.Needs = cmp.Or(one.Needs, "a pipe or a condition")
			}
			if len(simple) > 0 {
				r.add(simple, one, depth+1)
			}
		}
	}
}

// runsOthers reports whether the first word is a program that runs the command in the words after it; those of OVN's own tests
// are among them.
func runsOthers(words []string) bool {
	return len(words) > 0 && (isRunner(words[0]) || slices.Contains([]string{"check", "check_uuid", "as", "su", "doas", "exec", "xargs", "parallel"}, words[0]))
}

// typedPlace returns the host or the pod in which the words before a tool have it run, "" if they don't tell.
func typedPlace(words []string) string {
	if len(words) > 1 && words[0] == "as" {
		return words[1]
	}
	return placeOf(words, recording.Invocation{})
}
