package cmd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/whatif"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/show"
	"ovs-offline/replica/set"
	"ovs-offline/snapshot/names"
)

type whatIfOptions struct {
	*options
	detail   bool
	file, nb string
	trace    string
	question whatif.Question
	upgrade  whatif.Upgrade
}

func newWhatIf(shared *options) *cobra.Command {
	o := &whatIfOptions{options: shared}
	command := &cobra.Command{
		Use: "what-if [NODE]... -- ovn-nbctl ARGS", Short: "Compute what a change of the OVN NB database, or an upgrade, does to the nodes",
		Long: "Compute which flows of the nodes a change of the OVN NB database adds, removes and changes, by\n" +
			"the policies, load balancers, routes and ports that they are made from. An ovn-northd and an\n" +
			"ovn-controller of the nodes' own release run on copies of the collected databases, first without\n" +
			"and then with the change. No replica needs to run, and none is changed.\n\n" +
			"Each NODE is one of a folder of several; without any, all are computed. The word ovn-nbctl can\n" +
			"be left out.\n\n" +
			"With --ovn-version, the databases stay, and the programs of that release compute them: what these\n" +
			"refuse, which rows of the NB database have flows in one release only, and which pairs of endpoints\n" +
			"have another verdict or another rule, with a packet that shows it.\n\n" +
			"Exit code 2: the change is not a command of ovn-nbctl.\n" +
			"Exit code 3: the result is undetermined, for example without that release of OVN or with an NB\n" +
			"database of another deployment; the output has the reason.\n" +
			"Exit code 4: the change, or the other release, changes flows.",
		Example: "  ovs-offline -w nodes what-if -- ovn-nbctl acl-add web to-lport 1001 'ip4 && tcp.dst == 80' drop\n" +
			"  ovs-offline -w nodes what-if worker-1 --file changes.sh --trace 'ns1/web-0 svc/ns2/db:5432'\n" +
			"  ovs-offline -w nodes what-if --nb ovnnb_db.db.new -o json\n" +
			"  ovs-offline -w nodes what-if --ovn-version 25.03 --mixed",
		Args:              o.readArgs,
		RunE:              o.withNodes(o.run),
		ValidArgsFunction: shared.completeNodes,
	}
	flags := command.Flags()
	flags.StringVar(&o.file, "file", "", "make the changes in `FILE`, whose lines are commands of ovn-nbctl; - is standard input")
	flags.StringVar(&o.nb, "nb", "", "take the OVN NB database in `FILE` instead of the collected one")
	flags.StringVar(&o.trace, "trace", "", "also follow a packet before and after, as trace does: 'FROM TO [PROTOCOL]'")
	flags.StringVar(&o.upgrade.To.OVN, "ovn-version", "", "rehearse an upgrade to this version of OVN, or one that begins so (25.03)")
	flags.StringVar(&o.upgrade.To.OVS, "ovs-version", "", "with --ovn-version: and to this version of Open vSwitch, instead of the closest to the nodes'")
	flags.BoolVar(&o.upgrade.Mixed, "mixed", false, "with --ovn-version: also the phases in which only ovn-northd, and only ovn-controller, is upgraded")
	flags.StringSliceVar(&o.upgrade.External, "external", nil, "with --ovn-version: also ask about this `ADDRESS` outside as a destination (can be repeated)")
	for _, flag := range []string{"ovs-version", "ovn-version"} {
		_ = command.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	detailFlag(command, &o.detail, "print each flow that changes, and what the change does to packets")
	o.runtimeFlag(command)
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

// readArgs reads the nodes and the change.
func (o *whatIfOptions) readArgs(command *cobra.Command, args []string) (err error) {
	nodes, words := args, []string(nil)
	if dash := command.ArgsLenAtDash(); dash >= 0 {
		nodes, words = args[:dash], args[dash:]
	}
	if slices.Contains(nodes, "ovn-nbctl") {
		return errors.New("-- is needed before ovn-nbctl")
	}
	o.nodes = append(o.nodes, nodes...)
	given := 0
	for _, is := range []bool{len(words) > 0, o.file != "", o.nb != ""} {
		if is {
			given++
		}
	}
	if o.upgrade.To.OVN != "" {
		if given > 0 || o.trace != "" {
			return errors.New("--ovn-version takes no change and no --trace: the databases stay as they are")
		}
		return nil
	}
	if o.upgrade.To.OVS != "" || o.upgrade.Mixed || len(o.upgrade.External) > 0 {
		return errors.New("--ovs-version, --mixed and --external need --ovn-version")
	}
	if given != 1 {
		return errors.New("one of these is needed: -- ovn-nbctl ARGS, --file, --nb or --ovn-version")
	}
	if len(words) > 0 {
		if o.question.Change, err = whatif.Command(words); err != nil {
			return err
		}
	}
	o.question.NB = o.nb
	return o.readTrace()
}

// readTrace reads --trace.
func (o *whatIfOptions) readTrace() error {
	if o.trace == "" {
		return nil
	}
	question, err := readBetween(o.trace)
	o.question.Trace = question
	return err
}

// readBetween reads the packet of --trace: FROM TO [PROTOCOL].
func readBetween(text string) (*trace.Between, error) {
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && !slices.Contains(names.Protocols(), words[2]) {
		return nil, fault.Usagef("--trace takes FROM TO and perhaps one of %s, not %q", strings.Join(names.Protocols(), ", "), text)
	}
	question := &trace.Between{From: words[0], To: words[1]}
	if len(words) == 3 {
		question.Protocol = words[2]
	}
	return question, nil
}

// readFile reads --file.
func (o *whatIfOptions) readFile(ctx context.Context, question *whatif.Question) error {
	if o.file == "" {
		return nil
	}
	file, err := o.openInput(ctx, o.file)
	if err != nil {
		return err
	}
	defer file.Close()
	question.Change, err = whatif.ReadScript(file)
	return err
}

func (o *whatIfOptions) run(ctx context.Context, selected *set.Set, _ []string) error {
	if o.upgrade.To.OVN != "" {
		return o.rehearse(ctx, selected)
	}
	question := o.question
	var err error
	if question.Deployment, err = whatif.Of(ctx, selected.Snapshot); err != nil {
		return err
	}
	if err := o.readFile(ctx, &question); err != nil {
		return err
	}
	progress := o.progress()
	question.Runtime, question.Runtimes, question.Replica, question.Meaning = o.runtime, runtimes(), replicaAt, timeForMeaning(o.detail)
	question.Chosen = func(what string) { progress.note("runtime: %s", what) }
	question.Progress = func(text string) { progress.print("%s", text) }
	result, err := whatif.Answer(ctx, question)
	progress.end()
	if result == nil {
		return err
	}
	return o.report(result, err) // also if only the packet could not be followed
}

// replicaAt returns the replica of the workdir at path.
func replicaAt(path string) whatif.Replica { return set.At(path, version) }

// report prints a result; failed is the error of its trace.
func (o *whatIfOptions) report(result *whatif.Result, failed error) error {
	if err := o.emit(result, func(page *show.Page) { result.Print(page, o.trace, o.detail) }); err != nil {
		return err
	}
	if err := worst(failed, incompleteIf(len(result.Doubts) > 0)); err != nil {
		return err
	}
	return worst(foundIf(result.Differs()), incompleteIf(result.Trace != nil && result.Trace.IsIncomplete()))
}

// rehearse computes an upgrade.
func (o *whatIfOptions) rehearse(ctx context.Context, selected *set.Set) (err error) {
	upgrade := o.upgrade
	if upgrade.Deployment, err = whatif.Of(ctx, selected.Snapshot); err != nil {
		return err
	}
	progress := o.progress()
	upgrade.Runtime, upgrade.Runtimes, upgrade.Replica = o.runtime, runtimes(), replicaAt
	upgrade.Chosen = func(what string) { progress.note("runtime: %s", what) }
	upgrade.Progress = func(text string) { progress.print("%s", text) }
	result, err := whatif.Rehearse(ctx, upgrade)
	progress.end()
	if err != nil {
		return err
	}
	if err := o.emit(result, func(page *show.Page) { result.Print(page, o.detail) }); err != nil {
		return err
	}
	return worst(foundIf(result.Differs()), incompleteIf(result.IsIncomplete()))
}
