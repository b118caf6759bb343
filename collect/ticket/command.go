package ticket

import (
	"cmp"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/tracetext"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// command is a recorded command that a line runs, or names in a heading or a sentence.
type command struct {
	host  string // in the prompt, or where the command line has it run
	run   recording.Invocation
	prose bool // words stand before the command that are not a prompt
	// known is false for a command that is not recorded, or whose output goes to a program that prints something else.
	known bool
	words []string // from the tool on
	// unread is the command line of a tool of Open vSwitch or OVN that is not recorded, "" for another.
	unread string
}

const (
	// maxCommand is the length of a line with a command, in bytes: flows are longer than most.
	maxCommand = 4000
	// maxTraced is the length of one that asks about a packet, whose bytes may be in it.
	maxTraced = 32 << 10
	// maxNested is how often a command line may be a word of another: ssh host "sudo sh -c '...'".
	maxNested = 3
	// decoration are the characters with which headings and emphasis begin and end.
	decoration = " \t#*=+-|>`:~"
)

// readCommands returns the commands that a line runs or names, nil for a line that mentions no tool of Open vSwitch or OVN, and
// no recorded command of the system.
func readCommands(line string) []command {
	if len(line) > maxCommand && !(len(line) <= maxTraced && isTraced(line)) || !strings.Contains(line, "ovs") && !strings.Contains(line, "ovn-") && !strings.Contains(line, "ip ") && !strings.Contains(line, " ko ") && !strings.Contains(line, "dpctl") && !strings.Contains(line, "conntrack") {
		return nil
	}
	rest := strings.TrimSpace(withoutMarkup(line))
	length, host, certain := readPrompt(rest)
	if match := watched.FindStringSubmatch(rest); match != nil {
		rest, host, length, certain = match[1], match[2], 0, true
	}
	text := strings.Trim(rest[length:], decoration)
	if strings.Count(text, "`")%2 == 1 { // one of two marks is at an end
		text = strings.Trim(rest[length:], strings.ReplaceAll(decoration, "`", ""))
	}
	commands := commandsIn(text, 0)
	if !slices.ContainsFunc(commands, func(c command) bool { return c.known || c.unread != "" && length > 0 }) && !certain {
		return nil
	}
	for i := range commands {
		commands[i].host = cmp.Or(commands[i].host, host)
		commands[i].prose = commands[i].prose && !certain
		if part := partWords.FindString(beside(text, commands[i])); part != "" && commands[i].known {
			commands[i].run.Filter = strings.TrimSpace(commands[i].run.Filter + " " + part)
		}
	}
	return commands
}

// watched matches what watch(1) prints above an output.
var watched = lazyregexp.New(`^Every \d+(?:\.\d+)?s: (.+?)(?:\s{2,}([\w.-]+): .*)?$`)

// partWords match the words round a command with which people say that they show a part of its output.
var partWords = lazyregexp.New(`(?i)\b(?:excerpts?|extracts?|parts? of|portions? of|relevant|interesting|some (?:of|flows|lines|entries|rules)|subset|snippets?|truncated|shortened|trimmed|filtered|abbreviated)\b|# *only\b.*`)

// beside returns what stands in a line beside a command: words before it, and a comment.
func beside(text string, c command) string {
	if len(c.words) == 0 {
		return ""
	}
	before, behind, _ := strings.Cut(text, c.words[0])
	if !c.prose {
		before = ""
	}
	if _, comment, found := strings.Cut(behind, " #"); found {
		before += " #" + comment
	}
	return before
}

// isTraced reports whether a line may ask about a packet.
func isTraced(line string) bool {
	return strings.Contains(line, string(tracetext.Switch)) || strings.Contains(line, string(tracetext.Logical))
}

var (
	// tags match the tags round a command in the titles of blocks and sections.
	tags = lazyregexp.New(`(?i)</?(?:details|summary|b|strong|code|tt|h[1-6])(?: [^<>]*)?>`)
	// titled matches the beginning of a block of Jira with a title.
	titled = lazyregexp.New(`^\s*\{(?:code|noformat)[^}]*title=([^}|]*)[^}]*\}`)
)

// withoutMarkup returns a line without tags, or the title of the block that it begins.
func withoutMarkup(line string) string {
	if match := titled.FindStringSubmatch(line); match != nil {
		return match[1]
	}
	return tags.ReplaceAllString(line, "")
}

// quotedCommand returns a word without the marks of code in Markdown round it.
func quotedCommand(word string) string {
	if end := strings.LastIndexByte(word, '`'); end > 0 && word[0] == '`' {
		return word[1:end]
	}
	return word
}

// commandsIn returns the commands of a command line.
func commandsIn(line string, depth int) (all []command) {
	for _, s := range unfolded(statements(line)) {
		all = append(all, s.commands(depth)...)
	}
	return all
}

// commands returns the command that a statement runs, or those of a command line that is a word of it.
func (s statement) commands(depth int) []command {
	words, node := withoutPlugin(s.words)
	for _, word := range words {
		if depth < maxNested && strings.ContainsAny(word, " \t") && !strings.HasPrefix(word, "$(") {
			if inner := commandsIn(quotedCommand(word), depth+1); slices.ContainsFunc(inner, func(c command) bool { return c.known }) {
				for i := range inner {
					inner[i].host = cmp.Or(inner[i].host, placeOf(words, inner[i].run))
					inner[i].prose = inner[i].prose || !isRunner(words[0])
				}
				return inner
			}
		}
	}
	first := slices.IndexFunc(words, recording.IsTool)
	if first < 0 {
		return []command{{}}
	}
	run, known := recording.ParseTyped(words[first:])
	c := command{host: cmp.Or(node, placeOf(words[:first], run)), run: run, known: known, words: words[first:]}
	if !known && strings.HasPrefix(words[first], "ov") {
		c.unread = strings.Join(words[first:], " ")
	}
	c.prose = first > 0 && !slices.Contains([]string{"sudo", "--", "-t", "-it"}, words[first-1]) && !isRunner(words[0])
	if filter := s.filter(); filter != "" {
		c.run.Filter = strings.TrimSpace(c.run.Filter + " " + filter)
	}
	return []command{c}
}

// withoutPlugin replaces the command of Mininet, and of kube-ovn's plugin for kubectl, by the tool that it runs on a node:
// "kubectl ko ofctl worker-1 dump-flows br-int", "kubectl ko nb status". node is "" for the tools of the OVN databases.
func withoutPlugin(words []string) (plain []string, node string) {
	if len(words) > 0 && words[0] == "dpctl" { // of Mininet, which runs it for each switch
		return append([]string{"ovs-ofctl"}, words[1:]...), ""
	}
	at := slices.Index(words, "ko")
	if at < 1 || words[at-1] != "kubectl" || at+3 > len(words) {
		return words, ""
	}
	switch tool := words[at+1]; tool {
	case "nbctl", "sbctl":
		return append([]string{"ovn-" + tool}, words[at+2:]...), ""
	case "nb", "sb":
		if words[at+2] == "status" {
			return []string{"ovn-appctl", "-t", "/var/run/ovn/ovn" + tool + "_db.ctl", "cluster/status", map[string]string{"nb": "OVN_Northbound", "sb": "OVN_Southbound"}[tool]}, ""
		}
	case "vsctl", "ofctl", "dpctl", "appctl":
		return append([]string{"ovs-" + tool}, words[at+3:]...), words[at+2]
	}
	return words, ""
}

// isRunner reports whether a word is a program that runs a command somewhere else, or later, or again.
func isRunner(word string) bool {
	return slices.Contains([]string{"sudo", "kubectl", "oc", "docker", "podman", "crictl", "nerdctl", "ip", "nsenter", "timeout", "lxc", "incus", "ssh", "juju", "watch",
		"time", "do", "sh", "bash", "microk8s.kubectl", "microk8s", "k3s", "minikube", "virsh", "chroot", "env"}, word)
}

// placeOf returns the host or the pod in which the programs before a command have it run, "" if they don't tell. What is asked of an OVN
// database is of the whole cluster.
func placeOf(words []string, run recording.Invocation) string {
	if run.Command.Prints != "" || strings.HasPrefix(run.Command.Line, "ovn-nbctl ") || strings.HasPrefix(run.Command.Line, "ovn-sbctl ") {
		return ""
	}
	for i, word := range words {
		var place string
		switch word {
		case "exec", "rsh", "debug":
			if i > 0 && (words[i-1] == "docker" || words[i-1] == "podman" || words[i-1] == "crictl" || words[i-1] == "nerdctl") {
				continue
			}
			place = firstOperand(words[i+1:], []string{"-n", "-c", "--namespace", "--container"})
		case "ssh":
			place = firstOperand(words[i+1:], []string{"-i", "-p", "-l", "-o", "-F", "-J", "-m"})
		case "-H":
			if i+1 < len(words) {
				place = words[i+1]
			}
		}
		if place = strings.TrimPrefix(place, "node/"); place != "" && !strings.ContainsAny(place, "$`(<{ ") {
			place = place[strings.LastIndexByte(place, '@')+1:]
			place = strings.TrimPrefix(strings.TrimPrefix(place, "ssh://"), "tcp://")
			return strings.TrimPrefix(place, "pod/")
		}
	}
	return ""
}

// firstOperand returns the first word that is neither an option nor the value of one.
func firstOperand(words, withValue []string) string {
	for i := 0; i < len(words); i++ {
		switch {
		case slices.Contains(withValue, words[i]):
			i++
		case !strings.HasPrefix(words[i], "-"):
			return words[i]
		}
	}
	return ""
}

// isDense reports whether the output of a command has no empty lines.
func isDense(command recording.Command) bool {
	return command.Dump != "" && command.Dump != workdir.TLV || command.Name == workdir.RecordedSwitchShow || command.Name == workdir.RecordedShow
}
