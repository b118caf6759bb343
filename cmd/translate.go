package cmd

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/portmap"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
)

func newTranslate(o *options) *cobra.Command {
	var toReplica bool
	c := &cobra.Command{
		Use: "translate", Short: "Rewrite datapath port numbers in piped text", Args: exactly(),
		Long: "Rewrite datapath port numbers in what is piped in (ofproto/trace, dpctl/dump-flows):\n" +
			"the replica's to the live node's, or with --to-replica the live node's to the replica's.\n" +
			"show lists both.",
		Example: "  ovs-appctl ofproto/trace br-int in_port=1,ip | ovs-offline translate\n" +
			"  ovs-offline translate --to-replica < /tmp/ovs-offline/recorded/dpctl.dump-flows",
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			if _, err := replica.Show(wd); err != nil {
				return err
			}
			report, err := replica.Report(wd)
			if err != nil {
				return err
			}
			return translate(interrupt.Pipe(c.Context(), c.InOrStdin()), o.Out, report.DatapathPorts(toReplica))
		},
	}
	c.Flags().BoolVar(&toReplica, "to-replica", false, "rewrite the live node's numbers to the replica's")
	return c
}

func translate(in io.Reader, out io.Writer, ports portmap.Ports) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		end := ""
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line, end = line[:n-1], "\n"
		}
		if line+end != "" {
			if _, err := fmt.Fprint(out, ports.Translate(line), end); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
