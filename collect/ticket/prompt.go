package ticket

import (
	"regexp"
	"strings"
)

// A prompt is what a shell prints before a command line. Where a pattern has a group, that is the host.
var (
	// hostPrompts name a host: "[root@host ~]# ", "user@host:~$ ", "[host ~]# ", "host:~ # ", "host ~ # ", "(env) root@host ~ # ", "host# ".
	hostPrompts = []*regexp.Regexp{
		regexp.MustCompile(`^` + around + `\[(?:[\w.-]+@)?([\w.-]+)[^\]]*\] ?[#$%>]+ ?`),
		regexp.MustCompile(`^` + around + `[\w.-]+@([\w.-]+)(?:[: ][^#$%>❯»]*)?[#$%>❯»]+ ?`),
		regexp.MustCompile(`^` + around + `([A-Za-z0-9][\w.-]*):[~/][^#$%> ]* ?[#$>] ?`),
		regexp.MustCompile(`^([A-Za-z][\w.-]*) [~/][\w/.~-]* [#$%❯] `),
	}
	// plainPrompts name none: "sh-4.4# ", "/ # ", "PS C:\> ", "C:\Users\me>", "mininet> ".
	plainPrompts = []*regexp.Regexp{
		regexp.MustCompile(`^-?(?:ba|z|da|k)?sh-\d[\d.]*[#$] ?`),
		regexp.MustCompile(`^[~/][\w/.~-]* ?[#$%❯»] `),
		regexp.MustCompile(`^\([^)]{1,40}\)(?: \d+)? [#$%>❯] `),
		regexp.MustCompile(`^(?:PS )?[A-Za-z]:\\[^>]*> ?`),
	}
	// shortPrompts are prompts only before a command: other lines begin with such words and characters, too.
	shortPrompts = []*regexp.Regexp{
		regexp.MustCompile(`^(?:\d+[.)] ?)?[#$%+>] ?`),
		regexp.MustCompile(`^[└╰][─╼╾]* ?[#$%>❯]* ?`), // the second line of one
		regexp.MustCompile(`^[➜❯»λ]\s+(?:[~/][\w/.~-]*\s+)?`),
		regexp.MustCompile(`^([A-Za-z][\w.-]*)# ?`),
		regexp.MustCompile(`^[A-Za-z][\w.-]*(?:\([\w-]+\))?[>#] ?`),
		regexp.MustCompile(`^(?:In \[\d*\]: )?! ?`),
		regexp.MustCompile(`^(?i:cmd|command|run|running|executing|exec): ?`),
	}
)

// around matches what virtual environments and themes of shells put before a prompt, such as the time.
const around = `(?:\([^)]{1,40}\) ?|\[[\w .:-]{1,30}\] |\d\d:\d\d(?::\d\d)? )?`

// readPrompt returns the length of the prompt with which a line begins, 0 for none, and the host that it names. certain reports
// that it is a prompt whatever follows.
func readPrompt(line string) (length int, host string, certain bool) {
	for _, kind := range [][]*regexp.Regexp{hostPrompts, plainPrompts, shortPrompts} {
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
