package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ovs-offline/answer/cluster"
	"ovs-offline/internal/fault"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/set"
)

type clusterOptions struct{ *options }

func newCluster(shared *options) *cobra.Command {
	o := &clusterOptions{options: shared}
	command := &cobra.Command{
		Use: "cluster [FILE]...", Short: "Find out what is wrong with a clustered database, and how to repair it",
		Long: "Read the files of the members of clustered OVN databases: who led in which term,\n" +
			"what each member has and lacks, which servers count, what is wrong, and which\n" +
			"commands repair it, in order. Nothing is changed, and no replica needs to run.\n\n" +
			"Without FILE, the collected databases are read, with the files of other members\n" +
			"that were collected beside them. A FILE is the database of a member, or what\n" +
			"`ovs-appctl cluster/status` printed on a server. The more are given, the more\n" +
			"is known.\n\n" +
			"Exit code 3: a file can't be read. Exit code 4: something is wrong.",
		Example: "  ovs-offline cluster ctl-1/ovnnb_db.db ctl-2/ovnnb_db.db ctl-3/ovnnb_db.db\n" +
			"  ovs-offline cluster ovnsb_db.db status-of-ctl-1.txt\n" +
			"  ovs-offline -w nodes cluster -o json | jq '.clusters[].problems[].repair'",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.withNodes(o.ofNodes)(command, nil)
			}
			if len(o.nodes) > 0 {
				return fault.Usagef("--node selects from the working directory, and files are given")
			}
			members, err := cluster.Given(args)
			if err != nil {
				return err
			}
			return o.report(command.Context(), members)
		},
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

// ofNodes examines the databases of a set.
func (o *clusterOptions) ofNodes(ctx context.Context, selected *set.Set, _ []string) error {
	var dirs []*workdir.Dir
	for _, node := range selected.Nodes() {
		wd, err := node.Workdir()
		if err != nil {
			return err
		}
		dirs = append(dirs, wd)
	}
	members, err := cluster.Files(dirs...)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return fmt.Errorf("%s holds no OVN database: collect one, for example with ovs-offline collect", o.workdir)
	}
	return o.report(ctx, members)
}

func (o *clusterOptions) report(ctx context.Context, members []cluster.Member) error {
	report, err := cluster.Examine(ctx, members)
	if err != nil {
		return err
	}
	errs := []error{o.emit(report, report.Print)}
	if len(report.Unjudged) > 0 {
		errs = append(errs, errIncomplete)
	}
	if report.Found() {
		errs = append(errs, errFound)
	}
	return worst(errs...)
}
