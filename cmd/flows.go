package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/answer/flows"
	"ovs-offline/internal/fault"
	"ovs-offline/replica/set"
)

type flowsOptions struct {
	*options
	query flows.Query
	sort  string
	match string
	tree  bool

	datapath bool
}

func newFlows(shared *options) *cobra.Command {
	o := &flowsOptions{options: shared}
	command := &cobra.Command{
		Use: "flows [BRIDGE]", Short: "List the recorded flows in names, with their counters",
		Long: "List the recorded flows of a node or of a set, one on a line: the packets, the table and its\n" +
			"stage, the priority, the match with the names of ports, switches and routers, and what the\n" +
			"flow is for: a NetworkPolicy, a security group, a route, a port. No replica needs to run.\n\n" +
			"With --datapath, the recorded flows of the datapath (dpctl/dump-flows) are listed. The running\n" +
			"replica traces a packet of each: a flow whose actions differ was stale, or the OpenFlow tables\n" +
			"changed between the two dumps. A flow that matches too few bits is flapping: ovs-vswitchd\n" +
			"deletes it whenever it revalidates it, and the rule that is the reason is named.\n\n" +
			"Exit code 3: a line of the dump can't be read, or a datapath flow can't be traced.\n" +
			"Exit code 4: a datapath flow is stale or flapping.",
		Example: "  ovs-offline flows --acl web --never-hit\n" +
			"  ovs-offline flows br-int --table ls_in_acl_eval --match tcp,tp_dst=443\n" +
			"  ovs-offline -w nodes flows --sort packets --limit 20\n" +
			"  ovs-offline flows --datapath",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("flows takes one BRIDGE, or none for all (%d given)", len(args))
			}
			return nil
		},
		RunE: o.withNodes(o.run),
	}
	query, flags := &o.query, command.Flags()
	flags.StringVar(&query.Filter.Table, "table", "", "only flows of this table: its number, or the name of its `STAGE`")
	flags.StringVar(&o.match, "match", "", "only flows with these fields: `FIELD[=VALUE],...`, or with a part of the match")
	flags.StringVar(&query.Filter.Cookie, "cookie", "", "only flows with this `COOKIE[/MASK]`")
	flags.StringVar(&query.Filter.Port, "port", "", "only flows that match this `PORT`: a logical one, an interface, or a name that trace takes")
	flags.StringVar(&query.Filter.Switch, "switch", "", "only flows of this logical `SWITCH`")
	flags.StringVar(&query.Filter.Router, "router", "", "only flows of this logical `ROUTER`")
	flags.StringVar(&query.Filter.Policy, "policy", "", "only flows for a rule whose description contains `TEXT`")
	flags.StringVar(&query.Filter.ACL, "acl", "", "only flows for an ACL whose description contains `TEXT`")
	flags.BoolVar(&query.Filter.Hit, "hit", false, "only flows that matched packets")
	flags.BoolVar(&query.Filter.NeverHit, "never-hit", false, "only flows that matched no packet")
	flags.IntVar(&query.Limit, "limit", 0, "list at most `N` flows, with --tree of each stage; 0 for all")
	flags.BoolVar(&o.tree, "tree", false, "list the stages with their counts, each with its flows")
	flags.BoolVar(&o.datapath, "datapath", false, "list the recorded flows of the datapath, each compared with what the running replica does")
	choiceFlag(command, &o.sort, "sort", "", "sort flows as recorded, or by packets, bytes or table", "recorded", "packets", "bytes", "table")
	for _, name := range []string{"table", "match", "cookie", "port", "switch", "router", "policy", "acl", "hit", "never-hit", "tree", "sort"} {
		command.MarkFlagsMutuallyExclusive("datapath", name)
	}
	o.outputFlag(command)
	o.nodeFlag(command)
	return command
}

func (o *flowsOptions) run(ctx context.Context, selected *set.Set, args []string) error {
	sources, err := flows.Sources(selected.Snapshot)
	if err != nil {
		return err
	}
	if err := checkLimit(o.query.Limit); err != nil {
		return err
	}
	if o.query.Filter.Hit && o.query.Filter.NeverHit {
		return fault.Usagef("--hit excludes --never-hit")
	}
	if o.datapath {
		return o.runDatapath(ctx, sources, args)
	}
	query := o.query
	if len(args) == 1 {
		query.Bridge = args[0]
	}
	if o.match != "" {
		query.Filter.Match = strings.Split(o.match, ",")
	}
	if o.sort != "recorded" {
		query.Sort = flows.Order(o.sort)
	}
	listed, err := flows.Print(ctx, o.page(), o.format, sources, query, o.tree)
	o.page().WarnEach("", listed.Remarks)
	if err == nil && listed.Lost > 0 {
		err = errIncomplete
	}
	return err
}

// runDatapath lists the recorded flows of the datapath.
func (o *flowsOptions) runDatapath(ctx context.Context, sources []flows.Source, args []string) error {
	if len(args) > 0 {
		return fault.Usagef("--datapath takes no BRIDGE, because a datapath serves all bridges")
	}
	replayed, err := flows.Replay(ctx, sources)
	if err != nil {
		return err
	}
	if most := o.query.Limit; most > 0 && len(replayed.Flows) > most {
		replayed.Flows = replayed.Flows[:most]
	}
	err = o.emit(replayed, replayed.Print)
	o.page().WarnEach("", replayed.Remarks)
	return worst(err, foundIf(replayed.Stale+replayed.Flapping > 0), incompleteIf(replayed.Untraced+replayed.Lost > 0))
}
