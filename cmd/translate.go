package cmd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/portmap"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica"
	"ovs-offline/replica/set"
	"ovs-offline/workdir"
)

type translateOptions struct {
	*options
	toReplica bool
}

func newTranslate(shared *options) *cobra.Command {
	o := &translateOptions{options: shared}
	command := &cobra.Command{
		Use: "translate", Short: "Translate datapath port numbers in piped text", Args: exactArgs(),
		Long: "Translate the datapath port numbers in the output of ofproto/trace or dpctl/dump-flows,\n" +
			"read from standard input: the replica's numbers to the live node's, or with --to-replica\n" +
			"the other way. ovs-offline show lists both. In a folder of several nodes, --node chooses\n" +
			"one.",
		Example: "  ovs-appctl ofproto/trace br-int in_port=1,ip | ovs-offline translate\n" +
			"  ovs-offline translate --to-replica < /tmp/ovs-offline/recorded/dpctl.dump-flows",
		RunE: o.withChosenNode(o.withNode(o.run)),
	}
	o.nodeFlagFor(command, oneNode)
	command.Flags().BoolVar(&o.toReplica, "to-replica", false, "translate the live node's numbers to the replica's")
	return command
}

func (o *translateOptions) run(ctx context.Context, _ *set.Node, wd *workdir.Dir, _ []string) error {
	if _, err := replica.Show(wd); err != nil {
		return err
	}
	found, err := replica.Report(wd)
	if err != nil {
		return err
	}
	ports := portmap.Ports(found.DatapathPorts(o.toReplica))
	for in := bufio.NewReader(interrupt.Pipe(ctx, o.In)); ; {
		line, end := in.ReadString('\n')
		text, newline := strings.TrimSuffix(line, "\n"), ""
		if text != line {
			newline = "\n"
		}
		if _, err := io.WriteString(o.Out, terminal.Escape(ports.Translate(text))+newline); err != nil {
			return err
		}
		if errors.Is(end, io.EOF) {
			return nil
		}
		if end != nil {
			return end
		}
	}
}
