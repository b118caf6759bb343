package cmd

import (
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/show"
	"ovs-offline/snapshot"
)

const (
	programName = "ovs-offline"
	// pluginFile is the name under which kubectl and oc find a plugin. Krew gives it to
	// the program (its naming guide: a dash of the plugin's name becomes an underscore).
	pluginFile = "kubectl-ovs_offline"
)

// caller is how the user called the program. It makes command lines for pasting.
type caller struct {
	program string // path by which the program was called
	workdir string
}

// name returns the words that call the program.
func (c caller) name() string {
	if filepath.Base(c.program) == pluginFile {
		return "kubectl " + programName
	}
	return programName
}

// line returns the command line of a command on the workdir.
func (c caller) line(command string) string {
	if c.workdir == usualWorkdir() {
		return c.name() + " " + command
	}
	return c.name() + " -w " + show.Word(c.workdir) + " " + command
}

// call works like callOn, for nodes that are not open. It opens them for the first command line.
func (c caller) call() show.Call {
	opened := sync.OnceValue(func() show.Call {
		selected, err := snapshot.OpenNodes(c.workdir, nil)
		if err != nil {
			selected = nil
		}
		return c.callOn(selected)
	})
	return func(node string, args ...string) string { return opened()(node, args...) }
}

// callOn returns the function that makes command lines on the workdir, whose nodes these are; nil for none. Where it is a folder of several,
// a command about one of them has its name.
func (c caller) callOn(selected *snapshot.Snapshot) show.Call {
	return func(node string, args ...string) string {
		if selected != nil && !selected.Alone() && slices.ContainsFunc(selected.Nodes(), func(n *snapshot.Node) bool { return n.Name == node }) {
			args = slices.Insert(slices.Clone(args), 1, "--node", node)
		}
		return c.line(show.Words(args...))
	}
}

// exampleCall is a call of the program in an example.
var exampleCall = lazyregexp.New(`(?m)(^|\s)` + programName + ` `)

// showCaller makes the help of all commands show the program as the user called it.
func showCaller(root *cobra.Command, name string) {
	if name == programName {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	replaceExamples(root, "${1}"+name+" ")
}

func replaceExamples(command *cobra.Command, call string) {
	command.Example = exampleCall.ReplaceAllString(command.Example, call)
	for _, sub := range command.Commands() {
		replaceExamples(sub, call)
	}
}
