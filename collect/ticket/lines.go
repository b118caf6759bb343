package ticket

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/recording"
)

// command is a line that runs or names a recorded command.
type command struct {
	host  string
	run   recording.Invocation
	prose bool // words stand before the command that are not a prompt
}

var (
	// prompt matches the prompts of shells: "[root@host ~]# ", "user@host:~$ ", "sh-4.4# ", "$ ", "+ ".
	prompt = regexp.MustCompile(`^(?:\([^)]*\) ?)?(?:\[[\w.-]+@[^\]]*\][#$] ?|[\w.-]+@[\w.-]+[: ][^#$%]*[#$%] ?|(?:ba|z)?sh-\d[\d.]*[#$] ?|[#$%+>] )`)
	host   = regexp.MustCompile(`^(?:\([^)]*\) ?)?\[?[\w.-]+@([\w.-]+)`)
	// decoration are the characters with which headings and emphasis begin and end.
	decoration = " \t#*=+-|>`:~"
	// escapes are the control sequences of terminals (ECMA-48, and OSC of xterm).
	escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])`)
)

// plain returns a line without its end, control sequences of a terminal and the marks of a quotation.
func plain(line string) string {
	line = strings.TrimRight(line, "\r\n")
	if strings.ContainsRune(line, '\x1b') {
		line = escapes.ReplaceAllString(line, "")
	}
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:] // a terminal shows what was written last
	}
	for strings.HasPrefix(line, ">") {
		line = strings.TrimPrefix(line[1:], " ")
	}
	return strings.TrimRight(line, " \t")
}

// maxCommand is the length of a line with a command, in bytes: flows are longer than most.
const maxCommand = 500

// readCommand reads a line that runs a recorded command or is a heading that names one.
func readCommand(line string) (command, bool) {
	if len(line) > maxCommand || !strings.Contains(line, "ovs") && !strings.Contains(line, "ovn-") && !strings.Contains(line, "ip ") && !strings.Contains(line, " ko ") {
		return command{}, false
	}
	var found command
	rest := strings.TrimSpace(line)
	if match := prompt.FindString(rest); match != "" {
		if named := host.FindStringSubmatch(match); named != nil {
			found.host = named[1]
		}
		rest = rest[len(match):]
	}
	rest = strings.Trim(rest, decoration)
	rest, ok := withoutPager(rest)
	if !ok {
		return command{}, false
	}
	words, node := withoutPlugin(strings.Fields(rest))
	found.host = cmp.Or(node, found.host)
	first := slices.IndexFunc(words, func(word string) bool { return recording.IsTool(word) })
	if first < 0 {
		return command{}, false
	}
	found.run, ok = recording.ParseLine(strings.Join(words[first:], " "))
	found.prose = first > 0 && !slices.Contains([]string{"sudo", "--", "-t", "-it"}, words[first-1]) && !isRunner(words[0])
	return found, ok
}

// withoutPlugin replaces the command of kube-ovn's plugin for kubectl by the tool that it runs on a node:
// "kubectl ko ofctl worker-1 dump-flows br-int". node is "" for the tools of the OVN databases.
func withoutPlugin(words []string) (plain []string, node string) {
	at := slices.Index(words, "ko")
	if at < 1 || words[at-1] != "kubectl" || at+3 > len(words) {
		return words, ""
	}
	switch tool := words[at+1]; tool {
	case "nbctl", "sbctl":
		return append([]string{"ovn-" + tool}, words[at+2:]...), ""
	case "vsctl", "ofctl", "dpctl", "appctl":
		return append([]string{"ovs-" + tool}, words[at+3:]...), words[at+2]
	}
	return words, ""
}

// isRunner reports whether a word is a program that runs a command somewhere else.
func isRunner(word string) bool {
	return slices.Contains([]string{"sudo", "kubectl", "oc", "docker", "podman", "crictl", "ip", "nsenter", "timeout", "lxc", "incus", "ssh"}, word)
}

// withoutPager removes programs that only show text from a pipe. ok is false for a pipe whose
// output is not all of the command's.
func withoutPager(line string) (string, bool) {
	parts := strings.Split(line, "|")
	for _, part := range parts[1:] {
		words := strings.Fields(part)
		if len(words) == 0 || !slices.Contains([]string{"cat", "less", "more", "tee", "sort"}, words[0]) {
			return "", false
		}
	}
	before, _, _ := strings.Cut(parts[0], ">") // a file that the output goes to as well
	return strings.TrimSpace(before), true
}

// isPrompt reports whether a line is a prompt with or without another command.
func isPrompt(line string) bool {
	match := prompt.FindString(line)
	return match != "" && !strings.HasPrefix(match, ">") && !strings.HasPrefix(match, "+")
}

// isSection reports whether a line begins a section of supportconfig's files, the command of
// which is on the next line: "#==[ Command ]====#".
func isSection(line string) bool { return strings.HasPrefix(line, "#==[ ") }

// isFence reports whether a line begins or ends a block of code in Markdown.
func isFence(line string) bool {
	text := strings.TrimSpace(line)
	return strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~") || strings.HasPrefix(text, "{code") || strings.HasPrefix(text, "{noformat")
}
