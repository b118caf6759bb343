package cmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/answer/cluster"
	"ovs-offline/collect/ticket"
	"ovs-offline/internal/daemonlog"
	"ovs-offline/internal/fault"
	"ovs-offline/replica/set"
)

type clusterOptions struct{ *options }

func newCluster(shared *options) *cobra.Command {
	o := &clusterOptions{options: shared}
	command := &cobra.Command{
		Use: "cluster [FILE]...", Short: "Find out what is wrong with a clustered database, and how to repair it",
		Long: "Read the files of the members of clustered OVN databases: who led in which term,\n" +
			"what each member has and lacks, which servers count, what is wrong, and which\n" +
			"commands repair it, in order. Nothing is changed, and no replica needs to run.\n" +
			"Where only cluster/status is known: who leads, which servers reach a majority,\n" +
			"who does not answer, who does not join, and what is not known.\n\n" +
			"Without FILE, the collected databases are read, with the files of other members\n" +
			"that were collected beside them. A FILE is the database of a member, or what\n" +
			"`ovs-appctl cluster/status` printed on a server, also among other text of a\n" +
			"ticket. The more are given, the more is known.\n\n" +
			"Exit code 3: a file can't be read, or nothing tells about a cluster. Exit code\n" +
			"4: something is wrong.",
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
			members, logs, err := givenMembers(args)
			if err != nil {
				return err
			}
			return o.report(command.Context(), members, logs)
		},
	}
	o.nodeFlag(command)
	o.outputFlag(command)
	return command
}

// ofNodes examines the databases of a set.
func (o *clusterOptions) ofNodes(ctx context.Context, selected *set.Set, _ []string) error {
	report, err := cluster.OfNodes(ctx, selected.Snapshot)
	if err != nil {
		return err
	}
	return o.print(report)
}

// givenMembers returns the members and the logs of files that a user names: databases, and texts of tickets.
func givenMembers(paths []string) (all []cluster.Member, logs []cluster.Log, err error) {
	for _, name := range paths {
		text, err := pasted(name)
		if err != nil {
			return nil, nil, err
		}
		found, lines := pastedMembers(name, text), text.Log
		if lines != "" {
			logs = append(logs, cluster.Log{Name: name, Server: name, Open: func(ctx context.Context) (*daemonlog.Reader, error) {
				return daemonlog.NewReader(ctx, strings.NewReader(lines), "ovsdb-server", daemonlog.Options{})
			}})
		}
		if len(found) == 0 && lines == "" {
			found, err = cluster.Given([]string{name})
		}
		if err != nil {
			return nil, nil, err
		}
		all = append(all, found...)
	}
	return all, logs, nil
}

// pasted reads a file as the text of a ticket. It is empty for a database, and for a file that is too long.
func pasted(name string) (text ticket.Text, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > ticket.MaxBytes {
		return text, err
	}
	content, err := os.ReadFile(name)
	if err != nil || bytes.HasPrefix(content, []byte("OVSDB ")) {
		return text, err
	}
	return ticket.Read(string(content)), nil
}

// pastedMembers returns a member for each output of cluster/status in a text.
func pastedMembers(name string, text ticket.Text) (all []cluster.Member) {
	for _, piece := range text.Pieces {
		from := fmt.Sprintf("%s, line %d", name, piece.Line)
		if piece.Host != "" {
			from = piece.Host + ": " + from
		}
		all = append(all, cluster.StatusesIn(from, piece.Text)...)
	}
	return all
}

func (o *clusterOptions) report(ctx context.Context, members []cluster.Member, logs []cluster.Log) error {
	report, err := cluster.Examine(ctx, members)
	if err != nil {
		return err
	}
	if err := report.AddLogs(ctx, logs); err != nil {
		return err
	}
	return o.print(report)
}

func (o *clusterOptions) print(report *cluster.Report) error {
	errs := []error{o.emit(report, report.Print)}
	if report.IsEmpty() {
		errs = append(errs, fault.Wrap(fault.Undetermined, fmt.Errorf("nothing tells about a clustered database: give the database files of the servers (/var/lib/ovn/ovnnb_db.db, ovnsb_db.db), "+
			"or what `ovs-appctl -t /var/run/ovn/ovnsb_db.ctl cluster/status OVN_Southbound` printed on each")))
	}
	return worst(append(errs, incompleteIf(len(report.Unjudged) > 0), foundIf(report.Found()))...)
}
