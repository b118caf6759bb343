package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/internal/workdir"
	"ovs-offline/set"
	"ovs-offline/trace"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/draw"
	"ovs-offline/trace/names"
)

type traceOptions struct {
	*options
	question   trace.Between
	flow       string
	ct         string
	expect     string
	session    trace.Options
	every      bool
	file, pcap string
	families
}

func newTrace(shared *options) *cobra.Command {
	o := &traceOptions{options: shared}
	c := &cobra.Command{
		Use: "trace FROM TO [PROTOCOL] | trace --flow FLOW | trace --file CHECKS | trace FROM [TO] --pcap FILE", Short: "Follow a packet over all nodes, and name the rule that decides",
		Args: o.checkArgs,
		Long: "Follow a packet from one endpoint to another over the running replicas of all nodes, and the\n" +
			"reply to it; say whether it arrives, and else where it is dropped and by which rule.\n\n" +
			"FROM and TO are NAMESPACE/POD, svc/NAMESPACE/NAME[:PORT], node/NAME, external/ADDRESS, the name\n" +
			"of a port in OVN or neutron, of an instance, a MAC or IP address, or the beginning of a UUID.\n" +
			"PROTOCOL is tcp, udp, sctp, icmp or icmp6; TO:PORT names the destination port. Without both,\n" +
			"the packet is a ping. TCP is asked with the SYN that opens a connection. A typed address is\n" +
			"asked as it is; between names that have both, IPv4 is, or with -6 IPv6. The shell completes\n" +
			"names (ovs-offline completion --help).\n\n" +
			"The state of connections is what conntrack had recorded; --ct changes that.\n\n" +
			"Exit code 1: --expect expects another verdict. Exit code 2: a name is unknown or ambiguous.\n" +
			"Exit code 3: the verdict is UNDETERMINED, also that of the reply. So is what becomes of a\n" +
			"packet that gets to a node whose replica does not run; a warning names the node.",
		Example: "  ovs-offline -w nodes trace ns1/web-0 svc/ns2/db:5432\n" +
			"  ovs-offline -w nodes trace vm-17 external/8.8.8.8 icmp --size 1500\n" +
			"  ovs-offline -w nodes trace --node compute1 --flow 'br-int in_port=3,icmp,nw_ttl=64'",
		RunE: o.oneOrSet(func(c *cobra.Command, args []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			session, err := trace.OpenWorkdir(c.Context(), wd, o.session)
			return o.answer(c.Context(), session, err, args)
		}, func(ctx context.Context, s *set.Set, args []string) error {
			all, err := set.Open(s.Folder(), version, nil) // --node only selects where --flow starts
			if err != nil {
				return err
			}
			session, err := trace.OpenSet(ctx, all, o.session)
			return o.answer(ctx, session, err, args)
		}),
	}
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		o.session.Raw = o.session.Raw || o.format == "html" // the page has everything
		return o.checkFlags(c.Flags())
	}
	f := c.Flags()
	f.StringVar(&o.flow, "flow", "", "`FLOW` to follow, as ofproto/trace takes it: 'BRIDGE in_port=PORT,...'")
	f.StringVar(&o.file, "file", "", "run the checks in `FILE`, a list in YAML or JSON; - is standard input")
	f.StringVar(&o.pcap, "pcap", "", "follow the packets of FROM in a capture `FILE` of tcpdump")
	f.StringVar(&o.ct, "ct", "recorded", "state of connections: recorded, new, or the ct_state of each lookup: est,rpl new")
	f.StringVar(&o.session.Bucket, "bucket", "", "`ID` of the bucket that groups choose (default: all that differ)")
	f.IntVar(&o.question.Size, "size", 0, "size of the frame in `bytes` (default: one that fits everywhere)")
	f.IntVar(&o.question.TTL, "ttl", 0, "TTL or hop limit of the packet (default 64)")
	f.Uint16Var(&o.question.SrcPort, "source-port", 0, "source port (default 40000)")
	f.StringVar(&o.question.Network, "network", "", "network or logical switch of names that several have")
	o.families.add(c)
	f.StringVar(&o.expect, "expect", "", "exit with code 1 for another verdict: reachable or unreachable")
	f.BoolVarP(&o.every, "verbose", "v", false, "print every stage")
	f.BoolVar(&o.session.Raw, "raw", false, "print what ofproto/trace printed")
	choiceFlag(c, &o.format, "output", "o", "table, json, yaml, svg or html", formatTable, "json", "yaml", "svg", "html")
	o.nodeFlag(c)
	c.ValidArgsFunction = o.completeEndpoints
	return c
}

// completeEndpoints returns the names that FROM and TO can be. It returns nothing on error,
// or after a second: completion must stay silent.
func (o *traceOptions) completeEndpoints(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 2 {
		return names.Protocols(), cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var found []string
	err := o.workdirOrSet(func(_ context.Context, wd *workdir.Dir, _ []string) (err error) {
		found, err = trace.CompleteWorkdir(ctx, wd, text)
		return err
	}, func(_ context.Context, s *set.Set, _ []string) (err error) {
		found, err = trace.CompleteSet(ctx, s, text)
		return err
	})(c, args)
	if err != nil || len(args) > 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(found, func(name string) bool { return !plainWord.MatchString(name) }), cobra.ShellCompDirectiveNoFileComp
}

func (o *traceOptions) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.pcap != "" && o.flow == "" && o.file == "" && (len(args) == 1 || len(args) == 2):
		return nil
	case o.pcap == "" && (o.flow != "") != (o.file != "") && len(args) == 0:
		return nil
	case o.pcap != "":
		return fmt.Errorf("--pcap takes FROM, and TO if wanted, and excludes --flow and --file")
	case o.flow != "" || o.file != "":
		return fmt.Errorf("FROM and TO, --flow and --file exclude each other")
	case len(args) < 2 || len(args) > 3:
		return fmt.Errorf("FROM and TO are needed, or --flow")
	case len(args) == 3 && !slices.Contains(names.Protocols(), args[2]):
		return fmt.Errorf("PROTOCOL is one of %s, not %q", strings.Join(names.Protocols(), ", "), args[2])
	}
	return nil
}

func (o *traceOptions) answer(ctx context.Context, session *trace.Session, err error, args []string) error {
	if err != nil {
		return o.unavailable(err, o.workdir)
	}
	defer session.Close()
	o.warnEach("", session.Remarks())
	defer o.warnUnavailable(session, o.workdir)()
	switch {
	case o.file != "":
		return o.runChecks(ctx, session)
	case o.pcap != "":
		return o.runCapture(ctx, session, args)
	}
	a, err := o.ask(ctx, session, args)
	if err != nil {
		return worst(o.printCandidates(err), o.unavailable(questionError(err), o.workdir))
	}
	if err := o.print(a); err != nil {
		return err
	}
	switch {
	case !o.isExpected(a):
		return exitCode(exitFailed)
	case o.leavesOpen(a):
		return errIncomplete
	}
	return nil
}

// isExpected reports whether an answer, nil for none, has the verdict of --expect.
func (o *traceOptions) isExpected(a *answer.Answer) bool {
	return o.expect == "" || a != nil && strings.EqualFold(o.expect, string(a.Verdict))
}

// leavesOpen reports whether an answer leaves open what a user has to notice: with --expect
// only that its replicas are in doubt.
func (o *traceOptions) leavesOpen(a *answer.Answer) bool {
	return o.expect == "" && a.IsIncomplete() || a.Trust.InDoubt()
}

// candidate is an endpoint that an ambiguous name may mean.
type candidate struct {
	Name    string       `json:"name"`
	Kind    names.Kind   `json:"kind"`
	Port    string       `json:"port,omitempty"` // the name of a logical port is not ambiguous
	MAC     string       `json:"mac,omitempty"`
	IPs     []netip.Addr `json:"ips,omitempty"`
	Network string       `json:"network,omitempty"`
	Node    string       `json:"node,omitempty"`
}

// printCandidates prints what an ambiguous name may mean, as a document if one was asked for.
func (o *traceOptions) printCandidates(err error) error {
	ambiguous, ok := errors.AsType[*names.AmbiguousError](err)
	if !ok || o.format != "json" && o.format != "yaml" {
		return nil
	}
	document := struct {
		Ambiguous  string      `json:"ambiguous"`
		Candidates []candidate `json:"candidates"`
	}{Ambiguous: ambiguous.Name}
	for _, e := range ambiguous.Candidates {
		document.Candidates = append(document.Candidates, candidate{e.Name, e.Kind, e.LogicalPort, e.MAC, e.IPs, cmp.Or(e.Network, e.Switch), e.Node})
	}
	return o.emit(document, func() {})
}

// questionError makes an error about the words of a question a usage error.
func questionError(err error) error {
	var ambiguous *names.AmbiguousError
	var unknown *names.UnknownError
	var protocol *names.ProtocolError
	if errors.As(err, &ambiguous) || errors.As(err, &unknown) || errors.As(err, &protocol) || errors.Is(err, trace.ErrQuestion) || errors.Is(err, names.ErrFamily) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

func (o *traceOptions) ask(ctx context.Context, s *trace.Session, args []string) (*answer.Answer, error) {
	if o.flow != "" {
		node := ""
		if len(o.nodes) == 1 {
			node = o.nodes[0]
		}
		return s.Flow(ctx, node, o.flow, o.question.Size)
	}
	q := o.question
	q.From, q.To = args[0], args[1]
	if len(args) == 3 {
		q.Protocol = args[2]
	}
	return s.Ask(ctx, q)
}

func (o *traceOptions) print(a *answer.Answer) error {
	switch o.format {
	case "svg":
		return draw.SVG(o.Out, a)
	case "html":
		return draw.HTML(o.Out, a)
	}
	var err error
	if emitErr := o.emit(a, func() { err = o.write(a) }); emitErr != nil {
		return emitErr
	}
	return err
}

// write prints an answer for people.
func (o *traceOptions) write(a *answer.Answer) error {
	return a.Write(o.Out, answer.Options{Verbose: o.every, Raw: o.session.Raw, Width: terminalWidth(o.Out)})
}

// writeMore prints the whole of an answer that has a line already, if -v or --raw asks for it.
func (o *traceOptions) writeMore(a *answer.Answer) error {
	if a == nil || !o.every && !o.session.Raw {
		return nil
	}
	if err := o.write(a); err != nil {
		return err
	}
	_, err := fmt.Fprintln(o.Out)
	return err
}
