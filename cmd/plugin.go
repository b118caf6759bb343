package cmd

import (
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"
)

const (
	programName = "ovs-offline"
	// pluginFile is the name under which kubectl and oc find a plugin. Krew gives it to
	// the program (its naming guide: a dash of the plugin's name becomes an underscore).
	pluginFile = "kubectl-ovs_offline"
)

// called returns the command line by which the user called the program.
func (o *IO) called() string {
	if filepath.Base(o.Program) == pluginFile {
		return "kubectl " + programName
	}
	return programName
}

// exampleCall is a call of the program in an example.
var exampleCall = regexp.MustCompile(`(?m)(^|\s)` + programName + ` `)

// asCalled makes the help of all commands show the program as the user called it.
func (o *IO) asCalled(root *cobra.Command) {
	if o.called() == programName {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: o.called()}
	replaceExamples(root, "${1}"+o.called()+" ")
}

func replaceExamples(c *cobra.Command, call string) {
	c.Example = exampleCall.ReplaceAllString(c.Example, call)
	for _, sub := range c.Commands() {
		replaceExamples(sub, call)
	}
}
