package recording

import (
	"slices"
	"strings"

	"ovs-offline/internal/archive"
	"ovs-offline/workdir"
)

// Part is which rows and columns of a table a command line has printed, and in which form (ovs-vsctl(8), "Database Commands" and
// "Table Formatting Options").
type Part struct {
	Columns    []string // of --columns, as they are spelled; nil for all columns
	Rows       string   // the words that choose rows; "" for all rows
	Format     string   // of --format; "" for that of the command
	Bare       bool     // values are printed without quotes and brackets
	NoHeadings bool
	// List is the command that printed the rows in a form of its own, "acl-list"; "" for list and find.
	List string
}

// Rows are rows of a table of which some rows or some columns were printed. The file has them as ovs-vsctl list prints them, with a UUID
// made up for each where none was printed.
type Rows struct {
	archive.File
	Kind    workdir.Kind
	Table   string   // as the command line spells it
	Columns []string // which each row has, but for values that can't be read; nil for all
	All     bool     // these are all rows of the table
	Unnamed bool     // the UUIDs of the rows were not printed
	Origin  string   // its place in the source
	Asked   string   // the command line
}

// partCommands returns the commands for what a text has of tables of which some rows or some columns were printed. No source has a
// file with their output: collect makes it of all parts.
func partCommands() (table []Command) {
	for _, kind := range workdir.Kinds() {
		tool := ToolOf(kind)
		table = append(table, Command{Name: PartOf(kind), Scope: OfPart, Line: tool + " find", Host: true, NotLive: true})
	}
	return table
}

// PartOf returns the name of the output with the rows of tables of a kind that are known in part.
func PartOf(kind workdir.Kind) Name { return Name(workdir.HostParts(kind)) }

// ToolOf returns the program that prints tables of the database of a kind.
func ToolOf(kind workdir.Kind) string {
	return map[workdir.Kind]string{workdir.OVS: "ovs-vsctl", workdir.NB: "ovn-nbctl", workdir.SB: "ovn-sbctl"}[kind]
}

// parsePart finds the table of which a command line prints some rows or some columns. words begin with the tool.
func parsePart(words []string) (found Invocation, ok bool) {
	at := slices.IndexFunc(workdir.Kinds(), func(kind workdir.Kind) bool { return ToolOf(kind) == words[0] })
	if at < 0 {
		return Invocation{}, false
	}
	var part Part
	var plain []string
	for i := 1; i < len(words); i++ {
		name, value, joined := strings.Cut(words[i], "=")
		if !strings.HasPrefix(name, "-") || name == "--" {
			plain = append(plain, words[i])
			continue
		}
		if takesValue(name) && !joined && i+1 < len(words) {
			i++
			value = words[i]
		}
		part.set(name, value)
	}
	if table := listed(plain, words[0]); table != "" {
		command, _ := Find(PartOf(workdir.NB))
		return Invocation{Command: command, Argument: table, Part: &Part{List: plain[0], Rows: strings.Join(plain[1:], " ")}}, true
	}
	if len(plain) < 2 || plain[0] != "list" && plain[0] != "find" || slices.Contains(plain, "--") {
		return Invocation{}, false
	}
	part.Rows = strings.Join(plain[2:], " ")
	if part.Columns == nil && part.Rows == "" && !part.Bare && !part.NoHeadings {
		return Invocation{}, false // it prints all
	}
	command, _ := Find(PartOf(workdir.Kinds()[at]))
	return Invocation{Command: command, Argument: plain[1], Part: &part}, true
}

// listed returns the table of which the words of a command line but for the options list rows, "" for none (ovn-nbctl(8)).
func listed(plain []string, tool string) string {
	if tool != "ovn-nbctl" || len(plain) == 0 || slices.Contains(plain, "--") {
		return ""
	}
	return map[string]string{"acl-list": "ACL", "lr-route-list": "Logical_Router_Static_Route", "lr-nat-list": "NAT",
		"lb-list": "Load_Balancer", "qos-list": "QoS"}[plain[0]]
}

// takesValue reports whether the word behind an option is its value (ovs-vsctl(8), ovn-nbctl(8)).
func takesValue(option string) bool {
	return slices.Contains([]string{"--columns", "-f", "--format", "-d", "--data", "-t", "--timeout", "--db", "-p", "-c", "-C", "--id", "--type", "--route-table"}, option)
}

// set notes an option.
func (p *Part) set(option, value string) {
	switch option {
	case "--columns":
		p.Columns = []string{}
		for column := range strings.SplitSeq(value, ",") {
			if column = strings.TrimSpace(column); column != "" {
				p.Columns = append(p.Columns, column)
			}
		}
	case "-f", "--format":
		p.Format = value
	case "-d", "--data":
		p.Bare = value == "bare"
	case "--no-headings", "--no-heading":
		p.NoHeadings = true
	case "--bare":
		p.Format, p.Bare, p.NoHeadings = "list", true, true
	}
}
