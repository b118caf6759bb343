package cmd

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/reach"
	"ovs-offline/reach/draw"
	"ovs-offline/trace"
)

type reachOptions struct {
	*options
	reach.Options
	by    string
	ports []string
	families
}

func newReach(shared *options) *cobra.Command {
	o := &reachOptions{options: shared}
	c := &cobra.Command{
		Use: "reach [OLD NEW]", Short: "Show who reaches whom: a matrix of all endpoints",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return fmt.Errorf("reach takes no arguments, or OLD and NEW (%d given)", len(args))
			}
			return nil
		},
		Long: "Ask a trace for each pair of groups of endpoints and each port, on the running replicas\n" +
			"of a workdir or a folder of several, and show the verdicts as a matrix.\n\n" +
			"A group is endpoints that behave alike: they are on one kind of switch, and the same port\n" +
			"groups, address sets and rules are about them. One member of each node stands for it.\n" +
			"The ports are those of ACLs and load balancers, and ICMP. Pairs that have both families\n" +
			"are asked over IPv4; -6 asks over IPv6.\n\n" +
			"With OLD and NEW, two folders with running replicas, only what changed its verdict is shown,\n" +
			"with the rule before and after.\n\n" +
			"Exit code 3: a verdict is UNDETERMINED. Verdicts that depend on a node whose replica does\n" +
			"not run are UNDETERMINED too; a warning names the node.",
		Example: "  ovs-offline -w nodes reach\n" +
			"  ovs-offline -w nodes reach --from 'ns1/*' --port tcp/80,icmp --services\n" +
			"  ovs-offline reach monday tuesday",
		PreRunE: func(*cobra.Command, []string) (err error) {
			if o.Family, err = o.family(); err != nil {
				return err
			}
			return o.readPorts()
		},
		RunE: o.run,
	}
	f := c.Flags()
	choiceFlag(c, &o.by, "by", "", "group by namespace, group (port groups), network or port; fitting takes what fits the deployment", "fitting", string(reach.ByNamespace), string(reach.ByGroup), string(reach.ByNetwork), string(reach.ByPort))
	f.BoolVar(&o.Each, "all-members", false, "ask every member of a group")
	f.StringSliceVar(&o.ports, "port", nil, "`PORTS` to ask: tcp/80,udp/53,icmp")
	f.StringSliceVar(&o.From, "from", nil, "only these senders: a glob `PATTERN` of groups or endpoints (can be repeated)")
	f.StringSliceVar(&o.To, "to", nil, "only these destinations: a glob `PATTERN` of groups, endpoints or services (can be repeated)")
	f.BoolVar(&o.Services, "services", false, "services are destinations too")
	f.StringSliceVar(&o.External, "external", nil, "an `ADDRESS` outside is a destination too (can be repeated)")
	o.families.add(c)
	choiceFlag(c, &o.format, "output", "o", "table, json, yaml, csv or html", formatTable, "json", "yaml", "csv", "html")
	return c
}

func (o *reachOptions) readPorts() error {
	if o.by != "fitting" {
		o.By = reach.By(o.by)
	}
	for _, text := range o.ports {
		p, err := reach.ParsePort(text)
		if err != nil {
			return fmt.Errorf("%w: --port: %w", errUsage, err)
		}
		o.Ports = append(o.Ports, p)
	}
	return nil
}

func (o *reachOptions) run(c *cobra.Command, args []string) error {
	if len(args) == 2 {
		return o.compare(c.Context(), args[0], args[1])
	}
	session, err := o.open(c.Context(), o.workdir)
	if err != nil {
		return err
	}
	defer session.Close()
	defer o.warnUnavailable(session, o.workdir)()
	m, err := reach.New(c.Context(), session, o.Options)
	if err != nil {
		return reachError(err)
	}
	return worst(o.matrix(c.Context(), m), inDoubt(session))
}

// inDoubt returns errIncomplete if the answers of a session may be wrong as a whole.
func inDoubt(session *trace.Session) error {
	if len(session.Doubts()) > 0 {
		return errIncomplete
	}
	return nil
}

func (o *reachOptions) open(ctx context.Context, folder string) (*trace.Session, error) {
	session, err := trace.OpenFolder(ctx, folder, version, trace.Options{})
	if err != nil {
		return nil, o.unavailable(err, folder)
	}
	o.warnEach("", session.Doubts())
	o.warnEach("", session.Remarks())
	return session, nil
}

// reachError makes an error about the words of the command line a usage error.
func reachError(err error) error {
	var unknown *reach.UnknownError
	if errors.As(err, &unknown) {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// matrix asks the questions of a matrix and prints the answers, also if it is interrupted.
func (o *reachOptions) matrix(ctx context.Context, m *reach.Matrix) error {
	o.warnEach("", m.Remarks)
	d := reach.Document{Matrix: m, Cells: []reach.Cell{}}
	lines, err := o.newLines()
	if err != nil {
		return err
	}
	p := o.progress()
	for c := range m.Cells(ctx) {
		d.Count(c)
		if o.format == "csv" {
			err = lines.write(c)
		} else {
			d.Cells = append(d.Cells, c)
		}
		if err != nil {
			return err
		}
		p.print("asked %d of %d questions", d.Answered, m.Questions)
	}
	p.end()
	if ctx.Err() != nil {
		o.warn("interrupted after %d of %d questions: the other cells are empty", d.Answered, m.Questions)
	}
	if err := o.printMatrix(&d); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case d.Undetermined > 0:
		return errIncomplete
	}
	return nil
}

func (o *reachOptions) printMatrix(d *reach.Document) error {
	switch o.format {
	case "csv": // printed as the answers came
		return nil
	case "html":
		return draw.HTML(o.Out, d)
	}
	return o.emit(d, func() { o.printTable(d) })
}

// cellLines prints a line of CSV for each pair of members and port.
type cellLines struct{ *csv.Writer }

// newLines returns cellLines, and prints their header if they are asked for.
func (o *reachOptions) newLines() (cellLines, error) {
	w := cellLines{csv.NewWriter(o.Out)}
	if o.format != "csv" {
		return w, nil
	}
	return w, w.Write([]string{"from", "to", "port", "verdict", "sender", "receiver", "member_verdict", "reply", "reason", "rule", "family"})
}

func (w cellLines) write(c reach.Cell) error {
	for _, a := range c.Asked {
		_ = w.Write(plainCells(c.From, c.To, c.Port.String(), string(c.Verdict), a.From, a.To, string(a.Verdict), string(a.Reply), a.Reason, a.Rule, familyText(a.Family)))
	}
	w.Flush()
	return w.Error()
}

// plainCells returns texts for a file that a spreadsheet reads: without control characters,
// and none that a spreadsheet takes for a formula.
func plainCells(texts ...string) []string {
	for i, text := range texts {
		text = escapedLine(text)
		if strings.ContainsAny(text[:min(1, len(text))], "=+-@") {
			text = "'" + text
		}
		texts[i] = text
	}
	return texts
}

// compare asks the questions at two moments and prints what changed.
func (o *reachOptions) compare(ctx context.Context, before, after string) error {
	if o.format == "csv" || o.format == "html" {
		return fmt.Errorf("%w: OLD and NEW take -o table, json or yaml", errUsage)
	}
	sessions := [2]*trace.Session{}
	for i, folder := range []string{before, after} {
		session, err := o.open(ctx, folder)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		defer session.Close()
		defer o.warnUnavailable(session, folder)()
		sessions[i] = session
	}
	m, err := reach.Compare(ctx, sessions[0], sessions[1], o.Options)
	if err != nil {
		return reachError(err)
	}
	o.warnEach("", m.Remarks)
	changes := reach.Changes{Changed: []reach.Change{}, Remarks: m.Remarks}
	p, asked := o.progress(), 0
	for was, is := range m.Cells(ctx) {
		changes.Add(was, is)
		asked += len(is.Asked)
		p.print("asked %d of %d questions, at both moments", asked, m.Questions)
	}
	p.end()
	if ctx.Err() != nil {
		o.warn("interrupted after %d of %d questions", asked, m.Questions)
	}
	if err := o.emit(&changes, func() { o.printChanges(&changes) }); err != nil {
		return err
	}
	if changes.Undetermined > 0 {
		o.warn("%d cells have answers that are undetermined before or after", changes.Undetermined)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case changes.Undetermined > 0:
		return errIncomplete
	}
	return worst(inDoubt(sessions[0]), inDoubt(sessions[1]))
}
