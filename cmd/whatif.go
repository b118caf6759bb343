package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/desired/whatif"
	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/terminal"
	"ovs-offline/internal/workdir"
	"ovs-offline/set"
	"ovs-offline/trace"
	"ovs-offline/trace/answer"
	"ovs-offline/trace/names"
)

type whatIfOptions struct {
	*options
	every    bool
	file, nb string
	trace    string
	question whatif.Question
}

func newWhatIf(shared *options) *cobra.Command {
	o := &whatIfOptions{options: shared}
	c := &cobra.Command{
		Use: "what-if [NODE]... -- ovn-nbctl ARGS", Short: "Compute what a change of the OVN NB database does to the flows of the nodes",
		Long: "Compute which flows of the nodes a change of the OVN NB database adds, removes and changes, by\n" +
			"the policies, load balancers, routes and ports that they are made from. An ovn-northd and an\n" +
			"ovn-controller of the nodes' own release run on copies of the collected databases, first without\n" +
			"and then with the change. No replica needs to run, and none is changed.\n\n" +
			"Each NODE is one of a folder of several; without any, all are computed. The word ovn-nbctl can\n" +
			"be left out.\n\n" +
			"Exit code 2: the change is not one of ovn-nbctl.\n" +
			"Exit code 3: it can't be determined, for example without that release of OVN or with an NB database\n" +
			"of another deployment; the output says why.",
		Example: "  ovs-offline -w nodes what-if -- ovn-nbctl acl-add web to-lport 1001 'ip4 && tcp.dst == 80' drop\n" +
			"  ovs-offline -w nodes what-if worker-1 --file changes.sh --trace 'ns1/web-0 svc/ns2/db:5432'\n" +
			"  ovs-offline -w nodes what-if --nb ovnnb_db.db.new -o json",
		Args: o.readArgs,
		RunE: o.workdirOrSet(func(ctx context.Context, wd *workdir.Dir, _ []string) error {
			d, err := whatif.OfWorkdir(wd)
			return o.answer(ctx, d, err)
		}, func(ctx context.Context, s *set.Set, _ []string) error {
			d, err := whatif.OfSet(ctx, s)
			return o.answer(ctx, d, err)
		}),
		ValidArgsFunction: shared.completeNodes,
	}
	f := c.Flags()
	f.StringVar(&o.file, "file", "", "make the changes in `FILE`, whose lines are commands of ovn-nbctl; - is standard input")
	f.StringVar(&o.nb, "nb", "", "take the OVN NB database in `FILE` instead of the collected one")
	f.StringVar(&o.trace, "trace", "", "also follow a packet before and after, as trace does: 'FROM TO [PROTOCOL]'")
	f.BoolVarP(&o.every, "verbose", "v", false, "print each flow that changes")
	o.nodeFlag(c)
	o.outputFlag(c)
	return c
}

// readArgs reads the nodes and the change.
func (o *whatIfOptions) readArgs(c *cobra.Command, args []string) (err error) {
	nodes, words := args, []string(nil)
	if dash := c.ArgsLenAtDash(); dash >= 0 {
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
	if given != 1 {
		return errors.New("one of these is needed: -- ovn-nbctl ARGS, --file or --nb")
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
	words := strings.Fields(o.trace)
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && !slices.Contains(names.Protocols(), words[2]) {
		return fmt.Errorf("--trace takes FROM TO and perhaps one of %s, not %q", strings.Join(names.Protocols(), ", "), o.trace)
	}
	q := &trace.Between{From: words[0], To: words[1]}
	if len(words) == 3 {
		q.Protocol = words[2]
	}
	o.question.Trace = q
	return nil
}

// readFile reads --file.
func (o *whatIfOptions) readFile(ctx context.Context) (err error) {
	in := interrupt.Pipe(ctx, o.In)
	if o.file == "" {
		return nil
	}
	if o.file != "-" {
		f, err := interrupt.Open(ctx, o.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	o.question.Change, err = whatif.ReadScript(in)
	return err
}

func (o *whatIfOptions) answer(ctx context.Context, d whatif.Deployment, err error) error {
	if err == nil {
		err = o.readFile(ctx)
	}
	var r *whatif.Result
	if err == nil {
		p := o.progress()
		q := o.question
		q.Deployment, q.Runtime, q.Version = d, o.runtime, version
		q.Chosen = func(what string) { fmt.Fprintf(o.Err, "runtime: %s\n", terminal.Escape(what)) }
		q.Progress = func(text string) { p.print("%s", text) }
		r, err = whatif.Answer(ctx, q)
		p.end()
	}
	switch {
	case r != nil: // also if only the packet could not be followed
		return o.report(r, err)
	case ctx.Err() == nil && errors.Is(err, whatif.ErrUndetermined):
		fmt.Fprintf(o.Err, "ovs-offline: %s\n", terminal.EscapeLines(err.Error()))
		return errIncomplete
	case errors.Is(err, whatif.ErrRefused), errors.Is(err, whatif.ErrNodes):
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return questionError(err)
}

// report prints a result. The error is that of its trace.
func (o *whatIfOptions) report(r *whatif.Result, failed error) error {
	if err := o.emit(r, func() { o.print(r) }); err != nil {
		return err
	}
	if failed != nil {
		return questionError(failed)
	}
	return incompleteIf(len(r.Doubts) > 0 || r.Trace != nil && r.Trace.IsIncomplete())
}

func (o *whatIfOptions) print(r *whatif.Result) {
	for _, text := range r.Doubts {
		fmt.Fprintf(o.Out, "UNDETERMINED: %s\n", terminal.Escape(text))
	}
	if r.Trace != nil {
		fmt.Fprintf(o.Out, "%s: %s\n", terminal.Escape(o.trace), r.Trace.Verdict)
	}
	if r.Printed != "" {
		fmt.Fprintf(o.Out, "ovn-nbctl printed:\n%s\n", terminal.EscapeLines(strings.TrimRight(r.Printed, "\n")))
	}
	for _, n := range r.Nodes {
		fmt.Fprintf(o.Out, "%s: %s\n", terminal.Escape(n.Node), n.Summary())
		o.printDifferences("added", n.Added)
		o.printDifferences("removed", n.Removed)
		o.printDifferences("changed", n.Changed)
	}
	if r.Trace != nil {
		o.printAnswer("Without the change, on computed flows", r.Trace.Before, r.Trace.BeforeProblem)
		o.printAnswer("With the change, on computed flows", r.Trace.After, r.Trace.AfterProblem)
	} else {
		o.printAssumed(r.Assumed)
	}
	o.warnEach("", r.Remarks)
}

// maxDifferences is how many lines about one kind of change are printed without --verbose.
const maxDifferences = 25

func (o *whatIfOptions) printDifferences(how string, list []whatif.Difference) {
	for i, d := range list {
		if i == maxDifferences && !o.every {
			fmt.Fprintf(o.Out, "  %s: %d more; --verbose and -o json list them\n", how, len(list)-i)
			return
		}
		fmt.Fprintf(o.Out, "  %s: %s\n", how, terminal.Escape(d.String()))
		if !o.every {
			continue
		}
		for _, e := range d.Entries {
			if e.Before != "" {
				fmt.Fprintf(o.Out, "      - %s\n", terminal.Escape(e.Before))
			}
			if e.After != "" {
				fmt.Fprintf(o.Out, "      + %s\n", terminal.Escape(e.After))
			}
		}
	}
}

// printAssumed prints what is assumed of the nodes. The answers of a trace have it too.
func (o *whatIfOptions) printAssumed(list []string) {
	for i, text := range list {
		if i == maxDifferences && !o.every {
			fmt.Fprintf(o.Out, "assumed: %d more; --verbose and -o json list them\n", len(list)-i)
			return
		}
		fmt.Fprintf(o.Out, "assumed: %s\n", terminal.Escape(text))
	}
}

func (o *whatIfOptions) printAnswer(when string, a *answer.Answer, problem string) {
	o.headline("%s", when)
	if a == nil {
		fmt.Fprintf(o.Out, "%s\n", terminal.EscapeLines(problem))
		return
	}
	if err := a.Write(o.Out, answer.Options{Verbose: o.every, Width: terminalWidth(o.Out)}); err != nil {
		o.warn("%v", err)
	}
}
