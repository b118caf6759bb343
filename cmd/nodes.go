package cmd

import (
	"fmt"
	"strings"

	"ovs-offline/internal/workdir"
)

// maxNodes is the number of nodes that an error lists.
const maxNodes = 20

// withNodes adds to an error about a workdir without data how to run the command on
// the workdirs of nodes below it, if a collection of several nodes made some.
func withNodes(err error, wd *workdir.Dir, command string) error {
	nodes, _ := workdir.Below(wd.Path())
	if len(nodes) == 0 {
		return err
	}
	var lines strings.Builder
	for i, path := range nodes {
		if i == maxNodes {
			fmt.Fprintf(&lines, "\nand %d more", len(nodes)-maxNodes)
			break
		}
		fmt.Fprintf(&lines, "\novs-offline -w %s %s", shellWord(path), command)
	}
	return fmt.Errorf("%w. It holds a working directory for each of its nodes:%s", err, lines.String())
}
