package collect

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Inspection is the JSON output of inspect.
type Inspection struct {
	Inputs []Input       `json:"inputs"`
	Nodes  []Description `json:"nodes"`
	Lost   []string      `json:"lost"`
	// Unused are outputs of Open vSwitch and OVN that belong to no node and that nothing uses.
	Unused []string `json:"unused,omitempty"`
	// Remarks are findings about several nodes or inputs.
	Remarks []string `json:"remarks,omitempty"`
}

// NewInspection returns the output for what a source holds, and the plans for its nodes.
func NewInspection(found *Found, plans []*Plan) Inspection {
	seen := Inspection{Inputs: found.Inputs, Nodes: []Description{}, Lost: append([]string{}, found.Lost...), Unused: found.Unused, Remarks: found.Remarks}
	for _, plan := range plans {
		seen.Nodes = append(seen.Nodes, plan.Describe())
	}
	return seen
}

// IsIncomplete reports whether something could not be read, or a node lacks an OVN database.
func (seen Inspection) IsIncomplete() bool {
	return len(seen.Lost) > 0 || slices.ContainsFunc(seen.Nodes, func(node Description) bool { return len(node.Lost) > 0 || node.OVN.Lacking })
}

// Print prints what was found.
func (seen Inspection) Print(p *show.Page) {
	printInputs(p, seen.Inputs)
	for _, n := range seen.Nodes {
		p.Printf("\n")
		p.Headline("Node %s", terminal.Escape(n.Name))
		n.printVersions(p)
		n.printDatabases(p)
		n.OVN.print(p, len(seen.Nodes) > 1, n.Host)
		n.printDumps(p)
		printList(p, "Recorded: ", ", ", n.Recorded)
		printList(p, "Of the machine: ", ", ", n.HostOutputs)
		printList(p, "Network namespaces:\n  - ", "\n  - ", n.namespaces())
		printList(p, "Logs: ", ", ", n.logs())
		printUnused(p, n.Unused)
		printList(p, "A replica can answer:\n  - ", "\n  - ", n.Can)
		printList(p, "A replica can't answer:\n  - ", "\n  - ", n.Cannot)
		p.WarnEach(n.Name+": ", n.Remarks)
		p.WarnEach(n.Name+": could not be read: ", n.Lost)
	}
	printUnused(p, seen.Unused)
	p.WarnEach("", seen.Remarks)
	p.WarnEach("could not be read: ", seen.Lost)
}

// namespaces returns the named network namespaces with their outputs.
func (n Description) namespaces() (list []string) {
	for _, namespace := range n.Namespaces {
		list = append(list, namespace.Name+": "+strings.Join(namespace.Recorded, ", "))
	}
	return list
}

// logs returns the programs that have logs, and how many if there is more than one.
func (n Description) logs() (list []string) {
	for _, log := range n.Logs {
		text := log.Program
		if log.Files > 1 {
			text = fmt.Sprintf("%d of %s", log.Files, log.Program)
		}
		list = append(list, text)
	}
	return list
}

// printVersions prints the versions of the programs that the node has, or has data of.
func (n Description) printVersions(p *show.Page) {
	ovs, ovn := len(n.Bridges) > 0, false
	for _, db := range n.Databases {
		ovs = ovs || db.Kind == workdir.OVS
		ovn = ovn || db.Kind == workdir.NB || db.Kind == workdir.SB
	}
	for _, v := range []struct {
		program, version string
		has              bool
	}{{"Open vSwitch", n.OVSVersion, ovs}, {"OVN", n.OVNVersion, ovn}} {
		switch {
		case v.version != "":
			p.Printf("%s %s\n", v.program, terminal.Escape(v.version))
		case v.has:
			p.Printf("%s of unknown version\n", v.program)
		}
	}
}

func printInputs(p *show.Page, list []Input) {
	for _, in := range list {
		p.Printf("%s: %s\n", terminal.Escape(in.Path), terminal.Escape(strings.Join(in.Kinds, ", ")))
	}
}

func printList(p *show.Page, title, separator string, list []string) {
	if len(list) == 0 {
		return
	}
	escaped := make([]string, len(list))
	for i := range list {
		escaped[i] = terminal.Escape(list[i])
	}
	fmt.Fprintln(p.Out, title+strings.Join(escaped, separator))
}

func (n Description) printDatabases(p *show.Page) {
	if len(n.Databases) == 0 {
		return
	}
	t := p.Table("database", "form", "schema", "size", "records", "health", "from")
	for _, db := range n.Databases {
		health := "sound"
		if db.Damaged > 0 {
			health = fmt.Sprintf("%d damaged records", db.Damaged)
		}
		if !db.Used {
			health += ", not used"
		}
		form := db.Form
		if db.Gzip {
			form += ", gzip"
		}
		t.AppendRow([]any{terminal.Escape(db.Name), form, terminal.Escape(db.Schema), db.Size, db.Records, health, terminal.Escape(db.Origin)})
	}
	t.Render()
	p.Printf("\n")
}

// printDumps prints each dump that a replica would load, and the other OpenFlow
// versions in which the source has it.
func (n Description) printDumps(p *show.Page) {
	t := p.Table("bridge", "dump", "OpenFlow", "entries", "unusable lines", "also in", "from")
	for _, b := range n.Bridges {
		for _, command := range recording.Dumps() {
			dump := command.Dump
			var also []string
			var used DumpDescription
			for _, d := range b.Dumps[dump] {
				if d.Used {
					used = d
				} else {
					also = append(also, shortVersion(d.OpenFlow))
				}
			}
			if used.Used {
				t.AppendRow([]any{terminal.Escape(b.Name), dump, shortVersion(used.OpenFlow), used.Entries, used.Lost, strings.Join(also, " "), terminal.Escape(used.Origin)})
			}
		}
	}
	if t.Length() > 0 {
		t.Render()
		p.Printf("\n")
	}
}

// shortVersion shortens "OpenFlow13" to "1.3".
func shortVersion(openflow string) string {
	digits := strings.TrimPrefix(openflow, "OpenFlow")
	if len(digits) != 2 {
		return openflow
	}
	return digits[:1] + "." + digits[1:]
}

// CollectedNode is the JSON output for one collected node.
type CollectedNode struct {
	Name        string               `json:"name,omitempty"`
	Workdir     string               `json:"workdir"`
	Collections []workdir.Collection `json:"collections"`
	OVN         *OVN                 `json:"ovn,omitempty"`
}

// Collected is the JSON output of collect.
type Collected struct {
	Inputs []Input         `json:"inputs"`
	Nodes  []CollectedNode `json:"nodes"`
	Lost   []string        `json:"lost"`
	// Remarks are findings about several nodes or inputs.
	Remarks []string `json:"remarks,omitempty"`
}

// NewCollected returns the output for what a source holds, and what was written of it.
func NewCollected(found *Found, written []Written) Collected {
	out := Collected{Inputs: found.Inputs, Nodes: []CollectedNode{}, Lost: append([]string{}, found.Lost...), Remarks: found.Remarks}
	for _, node := range written {
		out.Nodes = append(out.Nodes, CollectedNode{Name: node.Name, Workdir: node.Path, Collections: node.Collections, OVN: &node.OVN})
	}
	return out
}

// IsIncomplete reports whether something could not be read, or a node lacks an OVN database.
func (out Collected) IsIncomplete() bool {
	return len(out.Lost) > 0 || slices.ContainsFunc(out.Nodes, func(node CollectedNode) bool { return HasLost(node.Collections) || node.OVN.Lacking })
}

// Print prints what was collected into a folder.
func (out Collected) Print(p *show.Page, folder *workdir.Dir) {
	printInputs(p, out.Inputs)
	for _, n := range out.Nodes {
		p.Headline("Offline OVS Debugging: data of %s collected and stored in %s", terminal.Escape(n.Name), n.Workdir)
		PrintCollections(p, n.Collections)
		n.OVN.print(p, len(out.Nodes) > 1, n.host())
	}
	p.WarnEach("", out.Remarks)
	p.WarnEach("could not be read: ", out.Lost)
	if first := out.Nodes[0].Workdir; first != folder.Path() {
		printNext(p, first)
	}
}

// printNext prints how to start the nodes that were collected together, one of which has
// this workdir.
func printNext(p *show.Page, workdir string) {
	folder, name := filepath.Split(workdir)
	folder = show.Word(filepath.Clean(folder))
	p.Printf("Start all: ovs-offline -w %s start\nStart one: ovs-offline -w %s start --node %s\n", folder, folder, show.Word(name))
}

// PrintCollections prints a line for each collection, and its warnings.
func PrintCollections(p *show.Page, collections []workdir.Collection) {
	for _, c := range collections {
		node, bridges := "", ""
		if c.Host != "" {
			node = " of " + terminal.Escape(c.Host)
		}
		if len(c.Bridges) > 0 {
			bridges = ", bridges " + terminal.Escape(fmt.Sprint(c.Bridges))
		}
		title := c.Kind.Title()
		if c.Kind == workdir.Host {
			title, bridges = "Logs and outputs", logsIn(c)
		}
		p.Printf("%s%s: %d files%s\n", title, node, len(c.Files), bridges)
		p.WarnEach("", c.Remarks)
		for _, f := range c.Files {
			p.WarnEach(f.Path+": ", f.Remarks)
		}
		p.WarnEach("could not be read: ", c.Lost)
	}
}

// logsIn describes the logs among the files of a machine: ", logs of ovs-vswitchd, ovn-controller".
func logsIn(c workdir.Collection) string {
	var programs []string
	for _, file := range c.Files {
		if program := workdir.ProgramOfLog(file.Path); program != "" && !slices.Contains(programs, program) {
			programs = append(programs, program)
		}
	}
	if len(programs) == 0 {
		return ""
	}
	slices.Sort(programs)
	return terminal.Escape(", logs of " + phrase.FirstNames(programs))
}

// host returns the name of the node in its source.
func (n CollectedNode) host() string {
	for _, c := range n.Collections {
		if c.Host != "" {
			return c.Host
		}
	}
	return ""
}

// printOVN prints where the OVN databases of a host are from, and why it has none. For a
// single host that has databases of its own, that is clear.
func (ovn OVN) print(p *show.Page, several bool, host string) {
	for _, f := range ovn.From {
		if several || f.Node != "" && f.Node != host {
			p.Printf("%s: from %s\n", titles(f.Kinds), terminal.Escape(f.String()))
		}
	}
	if ovn.Reason != "" && !ovn.Lacking { // what is lacking is a remark
		p.Printf("%s: none: %s\n", titles([]workdir.Kind{workdir.NB, workdir.SB}), terminal.Escape(ovn.Reason))
	}
}

// titles joins the names of OVN databases: "OVN NB, SB".
func titles(kinds []workdir.Kind) string {
	var words []string
	for _, k := range kinds {
		words = append(words, strings.TrimPrefix(k.Title(), "OVN "))
	}
	return "OVN " + strings.Join(words, ", ")
}

// HasLost reports whether a source held something that could not be read.
func HasLost(collections []workdir.Collection) bool {
	return slices.ContainsFunc(collections, func(c workdir.Collection) bool { return len(c.Lost) > 0 })
}

// printUnused prints the names of outputs that nothing uses.
func printUnused(p *show.Page, paths []string) {
	if len(paths) > 0 {
		p.Printf("%s\n", terminal.Escape(fmt.Sprintf("Seen and not used: %s: %s", phrase.Count(len(paths), "file"), phrase.FirstNames(baseNames(paths)))))
	}
}

// baseNames returns the names of files without their folders.
func baseNames(paths []string) (names []string) {
	for _, name := range paths {
		names = append(names, path.Base(name))
	}
	return names
}
