package recording

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
)

// Invocation is a recorded command as a person ran it.
type Invocation struct {
	Command  Command
	OpenFlow openflow.Version // of -O; zero for none
	Argument string           // the bridge, datapath, table or network namespace, "" for none
	// Filter is what limits the output to a part, in the words of the command line ("table=0,ip"); "" for nothing.
	Filter string
	// Part is which rows and columns of its table the command prints, nil for all of both and for other commands.
	Part *Part
}

// Bounds of lines and names that name a command: a source may have any.
const (
	maxLine  = 4 << 10 // bytes: no program records a longer command line of a tool
	maxTools = 8       // words of a line that name a tool: a container or a host may have the name of one
	maxName  = 255     // bytes of the name of a file: NAME_MAX of linux/limits.h
)

// ParseLine finds the recorded command that a command line runs, with or without its options.
// Words before the tool don't count: sudo, kubectl exec POD --, a path, the name of a snap. A line of more than 4 KiB is no command.
func ParseLine(line string) (Invocation, bool) {
	if len(line) > maxLine {
		return Invocation{}, false
	}
	return parseWords(strings.Fields(line), false)
}

// ParseTyped works like ParseLine with the words of a command line that a person typed: a match or an option may follow the bridge,
// which its socket may name.
func ParseTyped(words []string) (Invocation, bool) { return parseWords(words, true) }

func parseWords(words []string, typed bool) (Invocation, bool) {
	tried := 0
	for i, word := range words {
		if tool := toolOf(word); tool != "" {
			if tried++; tried > maxTools {
				break
			}
			if found, isOne, ok := parseNamespaced(append([]string{tool}, words[i+1:]...)); isOne {
				return found, ok
			}
			if found, ok := parseConntrack(append([]string{tool}, words[i+1:]...)); ok && typed {
				return found, true
			}
			if found, ok := parsePart(append([]string{tool}, words[i+1:]...)); ok && typed {
				return found, true
			}
			run := readWords(append([]string{tool}, words[i+1:]...))
			run.typed = typed
			if found, ok := run.find(); ok {
				return found, true
			}
			if found, ok := run.findOfBridge(); ok && typed {
				return found, true
			}
		}
	}
	return Invocation{}, false
}

// ParseFileName finds the command that a file is named for: sos and many people write blanks
// and slashes of the command line as "_" and ".".
func ParseFileName(name string) (Invocation, bool) {
	name = path.Base(name)
	if len(name) > maxName {
		return Invocation{}, false
	}
	if !strings.Contains(name, "ovs") && !strings.Contains(name, "ovn-") && !strings.HasPrefix(name, "ip_") {
		return Invocation{}, false // a source can have a million names
	}
	for _, ending := range []string{".txt", ".log", ".out"} {
		name = strings.TrimSuffix(name, ending)
	}
	if command, namespace, number, ok := NamespaceOfFile(name); ok && number == 0 {
		return Invocation{Command: command, Argument: namespace}, true
	}
	for i := range name {
		if i > 0 && !strings.ContainsRune("_.- ", rune(name[i-1])) {
			continue
		}
		words := strings.Split(name[i:], "_")
		if tool := toolOf(words[0]); tool != "" {
			run := readWords(append([]string{tool}, joinSocket(words[1:])...))
			run.separator = "_"
			return run.find()
		}
		if command, ok := dashed()[name[i:]]; ok {
			return Invocation{Command: command}, true
		}
	}
	return Invocation{}, false
}

// joinSocket joins the words of the name of a file that are the path of one socket, after -t: sos
// writes a "*" in it as "_", and ovnnb_db.ctl has a "_".
func joinSocket(words []string) []string {
	i := slices.Index(words, "-t")
	if i < 0 {
		return words
	}
	end := slices.IndexFunc(words[i+1:], func(word string) bool { return strings.HasSuffix(word, ".ctl") })
	if end < 0 {
		return words
	}
	socket := strings.Join(words[i+1:i+end+2], "_")
	return slices.Concat(words[:i+1], []string{socket}, words[i+end+2:])
}

// outputName matches the names of files that people and programs give the outputs of tools of Open
// vSwitch and OVN.
var outputName = lazyregexp.New(`(?:^|[_.])(?:ovs|ovn|ovsdb)-[a-z]+[_.-]`)

// IsOutputName reports whether a file is named for a command of Open vSwitch or OVN, whether its output
// is recorded or not.
func IsOutputName(name string) bool { return outputName.MatchString(path.Base(name)) }

// dashed has the commands by the names that ovs-bugtool and XenServer's bugtool give their files,
// which have "-" for blanks and slashes: ovs-appctl-bond-show, ovs-appctl-dpctl-show-s.
var dashed = sync.OnceValue(func() map[string]Command {
	all := map[string]Command{}
	dashes := strings.NewReplacer(" -", "-", " ", "-", "/", "-")
	for _, line := range ownLines() {
		if line.command.Scope != OfBridge && line.command.Scope != OfTable && line.target == "" {
			all[dashes.Replace(line.command.Line)] = line.command
			all[dashes.Replace(strings.Join(line.words, " "))] = line.command
		}
	}
	return all
})

// ownLines are the command lines of the recorded commands.
var ownLines = sync.OnceValue(func() (list []ownLine) {
	for _, command := range Commands() {
		if !command.isOfSystem() && command.Scope != OfNamespace && command.Scope != OfPart {
			list = append(list, ownLine{command, readWords(strings.Fields(command.Line))})
		}
	}
	return list
})

type ownLine struct {
	command Command
	run
}

// tools are the programs of the recorded commands.
var tools = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{"ovs-dpctl": true, "conntrack": true, kernelConnections: true}
	for _, line := range ownLines() {
		tool, _, _ := strings.Cut(line.command.Line, " ")
		all[tool] = true
	}
	return all
})

// IsTool reports whether a word of a command line names the tool of a recorded command.
func IsTool(word string) bool { return toolOf(word) != "" }

// toolOf returns the tool that a word of a command line names, "" for another word. A snap
// puts its name before the tool's: microovn.ovs-vsctl.
func toolOf(word string) string {
	name := path.Base(word)
	if i := strings.LastIndexByte(name, '.'); i >= 0 && tools()[name[i+1:]] {
		name = name[i+1:]
	}
	if !tools()[name] {
		return ""
	}
	return name
}

// run is a command line without its options.
type run struct {
	words     []string
	version   openflow.Version
	separator string // between the words
	partial   bool   // the command prints only some columns
	typed     bool   // by a person
	target    string // see Command.Target
}

// readWords takes the options away. ovs-dpctl has the commands of ovs-appctl's dpctl/, and ovn-appctl is
// ovs-appctl with another default of -t. Options of ip(8) that choose a family stay: its output is then only
// a part.
func readWords(words []string) run {
	r, target := run{separator: " "}, ""
	withValue := []string{"-O", "--protocols", "-t", "--timeout", "--target", "-f", "--format", "-T", "--db"}
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, value, joined := strings.Cut(word, "=")
		switch {
		case !strings.HasPrefix(word, "-"), words[0] == "ip" && (word == "-4" || word == "-6"):
			r.words = append(r.words, word)
			continue
		case joined:
		case (slices.Contains(withValue, word) || isProtocols(word)) && i+1 < len(words):
			i++
			value = words[i]
		case strings.HasPrefix(word, "-O"):
			name, value = "-O", word[2:]
		}
		if name == "-O" || isProtocols(name) {
			r.version = newest(value)
		}
		r.partial = r.partial || name == "--columns"
		if name == "-t" || name == "--target" {
			target = value
		}
	}
	if len(r.words) > 1 && r.words[0] == "ovs-dpctl" {
		r.words[0], r.words[1] = "ovs-appctl", "dpctl/"+r.words[1]
	}
	if len(r.words) > 0 && r.words[0] == "ovn-appctl" {
		r.words[0] = "ovs-appctl"
		target = cmp.Or(target, controller)
	}
	if len(r.words) > 0 && r.words[0] == "ovs-appctl" {
		r.target = TargetOf(target)
	}
	r.words = wholeAddress(r.words)
	// Without a condition, find prints what list prints.
	if len(r.words) == 3 && r.words[1] == "find" && slices.Contains([]string{"ovs-vsctl", "ovn-nbctl", "ovn-sbctl"}, r.words[0]) {
		r.words[1] = "list"
	}
	return r
}

// isProtocols reports whether a word is the option --protocols, which getopt_long(3) lets people cut.
func isProtocols(word string) bool {
	return len(word) > len("--p") && strings.HasPrefix("--protocols", word)
}

// newest returns the newest of the versions that -O names, in any case: a switch that speaks several uses that
// (ovs-ofctl(8)).
func newest(names string) (version openflow.Version) {
	for _, name := range strings.Split(names, ",") {
		for _, known := range openflow.Versions() {
			if strings.EqualFold(known.String(), name) {
				version = max(version, known)
			}
		}
	}
	return version
}

// wholeAddress writes "ip a", "ip addr show" and the like in full, as the table of commands does. All
// mean the same to ip(8).
func wholeAddress(words []string) []string {
	if len(words) < 2 || words[0] != "ip" || !strings.HasPrefix("address", words[1]) {
		return words
	}
	if len(words) == 3 && slices.Contains([]string{"show", "list", "ls"}, words[2]) {
		words = words[:2]
	}
	return append([]string{"ip", "address"}, words[2:]...)
}

// find returns the command with the most words of its own that the line begins with.
func (r run) find() (found Invocation, ok bool) {
	own := 0
	for _, line := range ownLines() {
		words := line.words
		if r.separator == "_" {
			words = strings.Split(strings.Join(words, "_"), "_")
		}
		if len(line.words) < own || r.target != line.target || !r.begins(words) || line.version != 0 && line.version != r.version {
			continue
		}
		rest := r.words[len(words):]
		if line.command.Scope == OfTable && !r.isTable(rest) || line.command.Scope == OfNode && len(rest) > 0 || len(line.words) == own && line.version == 0 {
			continue
		}
		own, ok = len(line.words), true
		found = Invocation{Command: line.command, OpenFlow: r.version}
		found.Argument, found.Filter = r.argument(line.command.Scope, rest)
	}
	return found, ok
}

// argument separates what a command is about from what limits its output. Where no person typed the command, all words are
// what it is about.
func (r run) argument(scope Scope, rest []string) (argument, filter string) {
	switch {
	case !r.typed || len(rest) == 0:
		return strings.Join(rest, r.separator), ""
	case scope == OfBridge:
		return bridgeName(rest[0]), strings.Join(rest[1:], " ")
	case scope == OfDatapath:
		for _, word := range rest {
			if strings.Contains(word, "=") {
				filter = strings.TrimSpace(filter + " " + word)
			} else {
				argument = word
			}
		}
		return argument, filter
	}
	return strings.Join(rest, r.separator), ""
}

// bridgeName returns the bridge that a word of a command line names: by its name, or by the path of its socket for
// OpenFlow (ovs-ofctl(8)). It returns "" for an address and for a variable, which don't tell it.
func bridgeName(word string) string {
	socket, isSocket := strings.CutPrefix(word, "unix:")
	if isSocket || strings.HasPrefix(word, "/") {
		name := path.Base(socket)
		return cmp.Or(strings.TrimSuffix(strings.TrimSuffix(name, ".mgmt"), ".snoop"), name)
	}
	if strings.ContainsAny(word, "$<>{}`") || strings.HasPrefix(word, "tcp:") || strings.HasPrefix(word, "ssl:") {
		return ""
	}
	return word
}

// isTable reports whether the words after a command name one table, all of which is printed. In the
// name of a file, the words of a table's name are words of their own.
func (r run) isTable(rest []string) bool {
	return !r.partial && len(rest) > 0 && (len(rest) == 1 || r.separator == "_")
}

// begins reports whether the line begins with words. The name of a table may have any case.
func (r run) begins(words []string) bool {
	if len(r.words) < len(words) {
		return false
	}
	for i, word := range words {
		if !strings.EqualFold(strings.ReplaceAll(word, "/", "."), strings.ReplaceAll(r.words[i], "/", ".")) {
			return false
		}
	}
	return true
}
