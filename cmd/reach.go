package cmd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/answer/prove"
	"ovs-offline/answer/reach"
	"ovs-offline/answer/reach/draw"
	"ovs-offline/answer/trace"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/snapshot/names"
)

type reachOptions struct {
	*options
	reach.Options
	by    string
	ports []string
	prove bool
	ct    string
	families
}

func newReach(shared *options) *cobra.Command {
	o := &reachOptions{options: shared}
	command := &cobra.Command{
		Use: "reach [OLD NEW]", Short: "Show who reaches whom: a matrix of all endpoints, or a proof for two",
		Args: o.checkArgs,
		Long: "Trace a packet for each pair of groups of endpoints and each port, on the running replicas\n" +
			"of a workdir or a folder of several, and show the verdicts as a matrix.\n\n" +
			"Endpoints that behave alike are a group: they are on switches of the same kind, and in the same\n" +
			"port groups, address sets and rules. One member on each node stands for the group.\n" +
			"The default ports are the ports of ACLs and load balancers, and ICMP. Pairs that have both\n" +
			"families are asked about over IPv4, or with -6 over IPv6.\n\n" +
			"With OLD and NEW, two folders with running replicas, only the pairs whose verdict changed are\n" +
			"shown, with the rule before and after.\n\n" +
			"--prove [FROM] TO[:PORT] [PROTOCOL] follows all packets at once that FROM can send to open a\n" +
			"connection: IMPOSSIBLE if none gets to TO, or POSSIBLE with the sets of those that do. With a port\n" +
			"or a protocol, only packets count that arrive for TO's own address. FROM may be a glob pattern;\n" +
			"with TO alone, the answer is about every sender. Packets of each set, and others, are asked of the\n" +
			"replicas; if one has another end, the verdict is UNDETERMINED. Where no replica runs, the verdict\n" +
			"rests on the recorded flows alone, and says so. --ct est and --ct est,rpl ask about further packets\n" +
			"and answers of connections, and --ct recorded about all packets, with the recorded connections.\n\n" +
			"Exit code 3: a verdict is UNDETERMINED, or a proof is not witnessed. Verdicts that depend on a node\n" +
			"whose replica does not run are UNDETERMINED too; a warning names the node.\n" +
			"Exit code 4: a verdict of NEW differs from that of OLD.",
		Example: "  ovs-offline -w nodes reach\n" +
			"  ovs-offline -w nodes reach --from 'ns1/*' --port tcp/80,icmp --services\n" +
			"  ovs-offline -w nodes reach --prove vm-17 vm-18:22\n" +
			"  ovs-offline reach monday tuesday",
		PreRunE: func(command *cobra.Command, _ []string) (err error) {
			if o.Family, err = o.family(); err != nil {
				return err
			}
			if command.Flags().Changed("ct") && !o.prove {
				return fault.Usagef("--ct goes with --prove")
			}
			return o.readPorts()
		},
		RunE: o.run,
	}
	flags := command.Flags()
	choiceFlag(command, &o.by, "by", "", "group endpoints by namespace, group (their port groups), network or port; auto chooses what fits the deployment", "auto", string(reach.ByNamespace), string(reach.ByGroup), string(reach.ByNetwork), string(reach.ByPort))
	flags.BoolVar(&o.Each, "all-members", false, "ask about every member of a group")
	flags.StringSliceVar(&o.ports, "port", nil, "`PORTS` to ask about: tcp/80,udp/53,icmp")
	flags.StringSliceVar(&o.From, "from", nil, "only these senders: a glob `PATTERN` for groups or endpoints (can be repeated)")
	flags.StringSliceVar(&o.To, "to", nil, "only these destinations: a glob `PATTERN` for groups, endpoints or services (can be repeated)")
	flags.BoolVar(&o.Services, "services", false, "also ask about services as destinations")
	flags.StringSliceVar(&o.External, "external", nil, "also ask about this `ADDRESS` outside as a destination (can be repeated)")
	flags.BoolVar(&o.prove, "prove", false, "prove which packets of FROM get to TO[:PORT], or that none does")
	flags.StringVar(&o.ct, "ct", "new", "with --prove: state of connections: new, recorded, or the ct_state that each lookup finds: est,rpl")
	o.families.add(command)
	o.nodeFlagFor(command, "only senders on these nodes of a folder of several (can be repeated)")
	choiceFlag(command, &o.format, "output", "o", "output format: table, json, yaml, csv or html", formatTable, "json", "yaml", "csv", formatHTML)
	for _, flag := range []string{"by", "all-members", "port", "from", "to", "services", "external", "node"} {
		command.MarkFlagsMutuallyExclusive("prove", flag)
	}
	return command
}

func (o *reachOptions) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.prove && (len(args) == 1 || len(args) == 2 || len(args) == 3 && slices.Contains(names.Protocols(), args[2])):
		return nil
	case o.prove:
		return fmt.Errorf("reach --prove takes TO[:PORT], or FROM, TO[:PORT], and if wanted a protocol: %s", strings.Join(names.Protocols(), ", "))
	case len(args) != 0 && len(args) != 2:
		return fmt.Errorf("reach takes no arguments, or OLD and NEW (%d given)", len(args))
	}
	return nil
}

func (o *reachOptions) readPorts() error {
	if o.by != "auto" {
		o.By = reach.By(o.by)
	}
	for _, text := range o.ports {
		port, err := reach.ParsePort(text)
		if err != nil {
			return fault.Usagef("--port: %w", err)
		}
		o.Ports = append(o.Ports, port)
	}
	return nil
}

func (o *reachOptions) run(command *cobra.Command, args []string) error {
	if err := o.chooseSenders(args); err != nil {
		return err
	}
	if o.prove {
		return o.proof(command.Context(), args)
	}
	if len(args) == 2 && !isFolder(args[0]) && !isFolder(args[1]) {
		return show.Advise(fault.Usagef("neither %s nor %s is a folder, and reach compares two; to ask about endpoints", args[0], args[1]), "", "reach", "--from", args[0], "--to", args[1])
	}
	if len(args) == 2 {
		return o.compare(command.Context(), args[0], args[1])
	}
	session, err := o.open(command.Context(), o.workdir, trace.Options{})
	if err != nil {
		return err
	}
	defer session.Close()
	defer warnUnavailable(o.page(), session, o.call)()
	matrix, err := reach.New(command.Context(), session, o.Options)
	if err != nil {
		return err
	}
	return worst(o.matrix(command.Context(), matrix), inDoubt(session))
}

// proof proves which packets of an endpoint get to another one.
func (o *reachOptions) proof(ctx context.Context, args []string) error {
	if o.format == "csv" || o.format == formatHTML {
		return fault.Usagef("--prove takes -o table, json or yaml")
	}
	if len(args) == 1 {
		args = []string{"*", args[0]}
	}
	question := trace.Between{From: args[0], To: args[1], Question: names.Question{Family: o.Family}}
	if len(args) == 3 {
		question.Protocol = args[2]
	}
	options := trace.Options{Absent: true}
	if err := readStates(o.ct, &options.Options); err != nil {
		return err
	}
	const lookups = 64 // more than a packet has
	switch len(options.States) {
	case 0:
	case 1:
		options.States = slices.Repeat(options.States, lookups)
	default:
		return fault.Usagef("--prove takes one state of --ct, which every lookup finds, not %q", o.ct)
	}
	session, err := o.open(ctx, o.workdir, options)
	if err != nil {
		return err
	}
	defer session.Close()
	defer warnUnavailable(o.page(), session, o.call)()
	progress := o.progress()
	document, err := prove.Ask(ctx, session, question, func(done, all int) { progress.print("proved %d of %s", done, phrase.Count(all, "sender")) })
	progress.end()
	if err != nil {
		return err
	}
	if err := o.emit(document, document.Print); err != nil {
		return err
	}
	return worst(incompleteIf(document.Doubtful()), inDoubt(session))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// chooseSenders reads --node.
func (o *reachOptions) chooseSenders(args []string) error {
	if len(o.nodes) == 0 {
		return nil
	}
	folder := o.workdir
	if len(args) == 2 {
		folder = args[1]
	}
	selected, err := o.openNodes(folder)
	if err != nil {
		return err
	}
	for _, node := range selected.Nodes() {
		o.Nodes = append(o.Nodes, node.Name)
	}
	return nil
}

// inDoubt returns errIncomplete if the answers of a session may be wrong as a whole.
func inDoubt(session *trace.Session) error { return incompleteIf(len(session.Doubts()) > 0) }

func (o *reachOptions) open(ctx context.Context, folder string, options trace.Options) (*trace.Session, error) {
	session, err := trace.OpenFolder(ctx, folder, options)
	if err != nil {
		return nil, o.caller(folder).advise(err)
	}
	o.page().WarnEach("", session.Doubts())
	o.page().WarnEach("", session.Remarks())
	return session, nil
}

// matrix asks the questions of a matrix and prints the answers, also if it is interrupted.
func (o *reachOptions) matrix(ctx context.Context, matrix *reach.Matrix) error {
	o.page().WarnEach("", matrix.Remarks)
	document := reach.Document{Matrix: matrix, Cells: []reach.Cell{}}
	var lines draw.Lines
	var err error
	if o.format == "csv" {
		if lines, err = draw.NewLines(o.Out); err != nil {
			return err
		}
	}
	progress := o.progress()
	for cell := range matrix.Cells(ctx) {
		document.Count(cell)
		if o.format == "csv" {
			err = lines.Add(cell)
		} else {
			document.Cells = append(document.Cells, cell)
		}
		if err != nil {
			return err
		}
		progress.print("asked %d of %d questions", document.Answered, matrix.Questions)
	}
	progress.end()
	if ctx.Err() != nil {
		o.page().Warn("interrupted after %d of %d questions: the other cells are empty", document.Answered, matrix.Questions)
	}
	if err := o.printMatrix(&document); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case document.Undetermined > 0:
		return errIncomplete
	}
	return nil
}

func (o *reachOptions) printMatrix(document *reach.Document) error {
	switch o.format {
	case "csv": // printed as the answers came
		return nil
	case formatHTML:
		return draw.HTML(o.Out, document)
	}
	return o.emit(document, func(page *show.Page) { draw.Table(page, document) })
}

// compare asks the questions at two moments and prints what changed.
func (o *reachOptions) compare(ctx context.Context, before, after string) error {
	if o.format == "csv" || o.format == formatHTML {
		return fault.Usagef("OLD and NEW take -o table, json or yaml")
	}
	sessions := [2]*trace.Session{}
	for i, folder := range []string{before, after} {
		session, err := o.open(ctx, folder, trace.Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		defer session.Close()
		defer warnUnavailable(o.page(), session, o.caller(folder).call())()
		sessions[i] = session
	}
	comparison, err := reach.Compare(ctx, sessions[0], sessions[1], o.Options)
	if err != nil {
		return err
	}
	o.page().WarnEach("", comparison.Remarks)
	progress := o.progress()
	changes := comparison.Changes(ctx, func(questions int) {
		progress.print("asked %d of %d questions, at both moments", questions, comparison.Questions)
	})
	progress.end()
	if ctx.Err() != nil {
		o.page().Warn("interrupted after %d of %d questions", changes.Answered, comparison.Questions)
	}
	if err := o.emit(changes, func(page *show.Page) { draw.Changes(page, changes) }); err != nil {
		return err
	}
	if changes.Undetermined > 0 {
		o.page().Warn("%d cells have answers that are undetermined before or after", changes.Undetermined)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := worst(inDoubt(sessions[0]), inDoubt(sessions[1])); err != nil {
		return err
	}
	return worst(foundIf(len(changes.Changed) > 0), incompleteIf(changes.Undetermined > 0))
}
