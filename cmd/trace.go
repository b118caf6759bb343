package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/answer/trace/draw"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot/names"
)

type traceOptions struct {
	*options
	question   trace.Between
	flow       string
	ct         string
	expect     string
	session    trace.Options
	detail     bool
	file, pcap string
	log        string
	recorded   bool
	families
}

func newTrace(shared *options) *cobra.Command {
	o := &traceOptions{options: shared}
	command := &cobra.Command{
		Use: "trace FROM TO [PROTOCOL] | trace --flow FLOW | trace --file CHECKS | trace FROM [TO] --pcap FILE | trace --log FILE | trace --recorded", Short: "Follow a packet over all nodes, and name the rule that decides",
		Args: o.checkArgs,
		Long: "Follow a packet from one endpoint to another over the running replicas of all nodes, and the\n" +
			"reply to it: whether it arrives, or else where it is dropped and by which rule.\n\n" +
			"FROM and TO are NAMESPACE/POD, svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, the name\n" +
			"of a port in OVN or neutron, of an instance, a MAC or IP address, or the beginning of a UUID.\n" +
			"PROTOCOL is tcp, udp, sctp, icmp or icmp6; TO:PORT names the destination port. Without a\n" +
			"protocol and a port, the packet is a ping; to svc/NAMESPACE/NAME it has a protocol and port of the\n" +
			"service. An IPv6 address with a port is in brackets: external/[2001:db8::1]:443. A TCP packet is\n" +
			"the SYN that opens a connection.\n" +
			"An address is taken as typed; between names that have both families, the packet is IPv4, or\n" +
			"with -6 IPv6. The shell completes names (ovs-offline completion --help).\n\n" +
			"The state of connections is what conntrack had recorded; --ct changes that.\n\n" +
			"With --recorded, no packet is followed: the outputs of ofproto/trace and ovn-trace that people\n" +
			"pasted into what was collected are read: where each packet ends, and by which flow and rule.\n" +
			"No replica has to run. One that runs is asked the same, and the first difference is shown.\n\n" +
			"Exit code 1: --expect expects another verdict, or the flows do not explain a line of --log. Exit code 2: a name is unknown or ambiguous.\n" +
			"Exit code 3: the verdict is UNDETERMINED, of the packet or of the reply. A packet that reaches a\n" +
			"node without a running replica is UNDETERMINED, too; a warning names the node.\n" +
			"Exit code 4: with --recorded, a replica says something else than what was pasted.",
		Example: "  ovs-offline collect ticket.md && ovs-offline trace --recorded\n" +
			"  ovs-offline -w nodes trace ns1/web-0 svc/ns2/db:5432\n" +
			"  ovs-offline -w nodes trace vm-17 external/8.8.8.8 icmp --size 1500\n" +
			"  ovs-offline -w nodes trace --node compute1 --flow 'br-int in_port=3,icmp,nw_ttl=64'",
		RunE: o.withNodes(o.run),
	}
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		if o.recorded {
			return o.checkRecordedFlags(command.Flags())
		}
		o.session.Raw = o.session.Raw || o.format == formatHTML // the page has everything
		return o.checkFlags(command.Flags())
	}
	flags := command.Flags()
	flags.StringVar(&o.flow, "flow", "", "`FLOW` to follow, as ofproto/trace takes it: 'BRIDGE in_port=PORT,...'")
	flags.StringVar(&o.file, "file", "", "run the checks in `FILE`, a list in YAML or JSON; - is standard input")
	flags.StringVar(&o.pcap, "pcap", "", "follow the packets of FROM in a capture `FILE` of tcpdump")
	flags.StringVar(&o.log, "log", "", "whether the flows explain what ACLs logged, in a `FILE`: the log of an ovn-controller; - is standard input")
	flags.BoolVar(&o.recorded, "recorded", false, "read the traces that were pasted into what was collected, and ask replicas that run the same")
	flags.StringVar(&o.ct, "ct", "recorded", "state of connections: recorded, new, or the ct_state of each lookup: est,rpl new")
	flags.StringVar(&o.session.Bucket, "bucket", "", "follow only the bucket with this `ID` of a group (default: all that differ)")
	flags.IntVar(&o.question.Size, "size", 0, "size of the frame in `bytes` (default: one that fits everywhere)")
	flags.IntVar(&o.question.TTL, "ttl", 0, "TTL or hop limit of the packet (default 64)")
	flags.Uint16Var(&o.question.SrcPort, "source-port", 0, "source port (default 40000)")
	flags.StringVar(&o.question.Network, "network", "", "network or logical switch, for names that occur in several")
	o.families.add(command)
	flags.StringVar(&o.expect, "expect", "", "expected verdict, reachable or unreachable: exit with code 1 for another")
	detailFlag(command, &o.detail, "print every stage")
	flags.BoolVar(&o.session.Raw, "raw", false, "print what ofproto/trace printed")
	choiceFlag(command, &o.format, "output", "o", "output format: table, json, yaml, svg or html", formatTable, "json", "yaml", "svg", formatHTML)
	o.nodeFlagFor(command, "with --flow: the node of a folder of several where the packet starts; with --recorded: a node whose traces are read")
	command.ValidArgsFunction = o.completeEndpoints
	return command
}

// completeEndpoints returns the names that FROM and TO can be. It returns nothing on error,
// or after a second: completion must stay silent.
func (o *traceOptions) completeEndpoints(command *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 2 {
		return names.Protocols(), cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var found []string
	err := o.withNodes(func(_ context.Context, selected *set.Set, _ []string) (err error) {
		found, err = trace.Complete(ctx, selected.Snapshot, text)
		return err
	})(command, args)
	if err != nil || len(args) > 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(found, func(name string) bool { return !show.IsPlain(name) }), cobra.ShellCompDirectiveNoFileComp
}

func (o *traceOptions) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.recorded && (o.log != "" || o.pcap != "" || o.flow != "" || o.file != "" || len(args) > 0):
		return fmt.Errorf("--recorded takes no FROM and TO, and excludes --flow, --file, --pcap and --log")
	case o.recorded:
		return nil
	case o.log != "" && (o.pcap != "" || o.flow != "" || o.file != "" || len(args) > 0):
		return fmt.Errorf("--log takes no FROM and TO, and excludes --flow, --file and --pcap")
	case o.log != "":
		return nil
	case o.pcap != "" && o.flow == "" && o.file == "" && (len(args) == 1 || len(args) == 2):
		return nil
	case o.pcap == "" && (o.flow != "") != (o.file != "") && len(args) == 0:
		return nil
	case o.pcap != "":
		return fmt.Errorf("--pcap takes FROM, and TO if wanted, and excludes --flow and --file")
	case o.flow != "" || o.file != "":
		return fmt.Errorf("FROM and TO, --flow and --file exclude each other")
	case len(args) == 4 && slices.Contains(names.Protocols(), args[2]):
		return fmt.Errorf("the port of the destination follows its name: %s:%s %s", args[1], args[3], args[2])
	case len(args) < 2 || len(args) > 3:
		return fmt.Errorf("FROM and TO are needed, or --flow; --recorded reads the traces that were pasted")
	case len(args) == 3 && !slices.Contains(names.Protocols(), args[2]):
		return fmt.Errorf("PROTOCOL is one of %s, not %q", strings.Join(names.Protocols(), ", "), args[2])
	}
	return nil
}

func (o *traceOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	if o.recorded {
		return o.runRecorded(ctx, selected)
	}
	session, err := trace.OpenSet(ctx, selected.All(), o.session) // --node only selects where --flow starts
	if err != nil {
		return err
	}
	defer session.Close()
	o.page().WarnEach("", session.Remarks())
	defer warnUnavailable(o.page(), session, o.call)()
	switch {
	case o.log != "":
		return o.runLog(ctx, session)
	case o.file != "":
		return o.runChecks(ctx, session)
	case o.pcap != "":
		return o.runCapture(ctx, session, args)
	}
	found, err := o.ask(ctx, session, args)
	if err == nil {
		err = session.CheckBucket()
	}
	if err != nil {
		return worst(o.printCandidates(err), err)
	}
	if err := o.print(found); err != nil {
		return err
	}
	switch {
	case !o.isExpected(found):
		return exitCode(exitFailed)
	case leavesOpen(found, o.expect):
		return errIncomplete
	}
	return nil
}

// isExpected reports whether an answer, nil for none, has the verdict of --expect.
func (o *traceOptions) isExpected(found *answer.Answer) bool {
	return o.expect == "" || found != nil && strings.EqualFold(o.expect, string(found.Verdict))
}

// leavesOpen reports whether an answer leaves open what a user has to notice. If a verdict was
// expected, this is only doubt about the replicas.
func leavesOpen(found *answer.Answer, expect string) bool {
	return expect == "" && found.IsIncomplete() || found.Trust.InDoubt()
}

// printCandidates prints what an ambiguous name may mean, as a document if one was asked for.
func (o *traceOptions) printCandidates(err error) error {
	document, ok := trace.CandidatesOf(err)
	if !ok || o.format != "json" && o.format != "yaml" {
		return nil
	}
	return o.emit(document, nil)
}

func (o *traceOptions) ask(ctx context.Context, session *trace.Session, args []string) (*answer.Answer, error) {
	if o.flow != "" {
		node := ""
		if len(o.nodes) == 1 {
			node = o.nodes[0]
		}
		return session.Flow(ctx, node, o.flow, o.question.Size)
	}
	question := o.question
	question.From, question.To = args[0], args[1]
	if len(args) == 3 {
		question.Protocol = args[2]
	}
	return session.Ask(ctx, question)
}

func (o *traceOptions) print(found *answer.Answer) error {
	switch o.format {
	case "svg":
		return draw.SVG(o.Out, found)
	case formatHTML:
		return draw.HTML(o.Out, found)
	}
	return o.emit(found, func(page *show.Page) { o.write(page, found) })
}

// write prints an answer for people. Errors of the output are kept by it.
func (o *traceOptions) write(page *show.Page, found *answer.Answer) {
	_ = found.Write(page.Out, answer.Options{Verbose: o.detail, Raw: o.session.Raw, Width: page.Width, Call: page.Call})
}

// writeMore prints the whole of an answer that has a line already, if --detail or --raw asks for it.
func (o *traceOptions) writeMore(found *answer.Answer) {
	if found != nil && (o.detail || o.session.Raw) {
		o.write(o.page(), found)
		o.page().Printf("\n")
	}
}
