package ticket

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
)

// A prompt is what a shell prints before a command line. Where a pattern has a group, that is the host.
var (
	// hostPrompts name a host: "[root@host ~]# ", "user@host:~$ ", "[host ~]# ", "host:~ # ", "host ~ # ", "(env) root@host ~ # ", "host# ".
	hostPrompts = []*lazyregexp.Regexp{
		lazyregexp.New(`^` + around + `\[(?:[\w.-]+@)?([\w.-]+)[^\]]*\] ?[#$%>]+ ?`),
		lazyregexp.New(`^` + around + `[\w.-]+@([\w.-]+)(?:[: ][^#$%>❯»]*)?[#$%>❯»]+ ?`),
		lazyregexp.New(`^` + around + `([A-Za-z0-9][\w.-]*):[~/][^#$%> ]* ?[#$>] ?`),
		lazyregexp.New(`^([A-Za-z][\w.-]*) [~/][\w/.~-]* [#$%❯] `),
	}
	// plainPrompts name none: "sh-4.4# ", "/ # ", "PS C:\> ", "C:\Users\me>", "mininet> ".
	plainPrompts = []*lazyregexp.Regexp{
		lazyregexp.New(`^-?(?:ba|z|da|k)?sh-\d[\d.]*[#$] ?`),
		lazyregexp.New(`^[~/][\w/.~-]* ?[#$%❯»] `),
		lazyregexp.New(`^\([^)]{1,40}\)(?: \d+)? [#$%>❯] `),
		lazyregexp.New(`^(?:PS )?[A-Za-z]:\\[^>]*> ?`),
	}
	// shortPrompts are prompts only before a command: other lines begin with such words and characters, too.
	shortPrompts = []*lazyregexp.Regexp{
		lazyregexp.New(`^(?:\d+[.)] ?)?[#$%+>] ?`),
		lazyregexp.New(`^[└╰][─╼╾]* ?[#$%>❯]* ?`), // the second line of one
		lazyregexp.New(`^[➜❯»λ]\s+(?:[~/][\w/.~-]*\s+)?`),
		lazyregexp.New(`^([A-Za-z][\w.-]*)# ?`),
		lazyregexp.New(`^[A-Za-z][\w.-]*(?:\([\w-]+\))?[>#] ?`),
		lazyregexp.New(`^(?:In \[\d*\]: )?! ?`),
		lazyregexp.New(`^(?i:cmd|command|run|running|executing|exec): ?`),
	}
)

// around matches what virtual environments and themes of shells put before a prompt, such as the time.
const around = `(?:\([^)]{1,40}\) ?|\[[\w .:-]{1,30}\] |\d\d:\d\d(?::\d\d)? )?`

// readPrompt returns the length of the prompt with which a line begins, 0 for none, and the host that it names. certain reports
// that it is a prompt whatever follows.
func readPrompt(line string) (length int, host string, certain bool) {
	for _, kind := range [][]*lazyregexp.Regexp{hostPrompts, plainPrompts, shortPrompts} {
		for _, pattern := range kind {
			if match := pattern.FindStringSubmatch(line); match != nil {
				if len(match) > 1 {
					host = match[1]
				}
				return len(match[0]), host, &kind[0] != &shortPrompts[0]
			}
		}
	}
	return 0, "", false
}

// isPrompt reports whether a line is a prompt with or without another command, whatever the text around it.
func isPrompt(line string) bool {
	length, _, certain := readPrompt(line)
	return length > 0 && certain || strings.HasPrefix(line, "$ ") || line == "$" || line == "#"
}
