package collect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/lines"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Plan holds the data of a node that a workdir gets, chosen by the files' content.
type Plan struct {
	Named
	Bridges   []Bridge
	Databases []Database
	// Recorded has, for each command, the first output that is not an error message.
	Recorded []recording.Output
	// HostOutputs has the outputs and texts about the machine likewise.
	HostOutputs []recording.Output
	// Broken lists files at the path of a database that hold none, with the reason.
	Broken []string
	// Members are the files of the other members of the clusters of Databases, and Statuses what servers
	// of these printed of themselves.
	Members  []recording.Member
	Statuses []Status
	// Versions are the node's versions, from its databases or else from what was printed.
	Versions versions.Pair
	// substitute describes what the recorded output replaces of a missing OVS database, "" for
	// nothing but the dumps of the bridges.
	substitute string
}

// Database is a database file of the node.
type Database struct {
	recording.Database
	Kind    workdir.Kind // "" for local-config, hardware_vtep and the like
	Info    file.Info
	Used    bool // it is the database of its kind that is collected
	Remarks []string
}

// judge reads every output and database of a node once, and decides which are used.
// It looks for the references of flows and groups only on demand: describe uses them.
func judge(ctx context.Context, named Named, references bool) (*Plan, error) {
	plan := &Plan{Named: named}
	var beside errgroup.Group
	beside.Go(func() error { return plan.judgeDatabases(ctx) })
	outputs := named.BySubject()
	err := plan.judgeBridges(ctx, outputs, references)
	if err == nil {
		err = plan.judgeRecorded(outputs)
	}
	if err == nil {
		err = plan.judgeNamespaces(outputs)
	}
	if err == nil {
		err = plan.judgeHost(outputs)
	}
	if err := cmp.Or(beside.Wait(), err); err != nil {
		return nil, err
	}
	if plan.Database(workdir.OVS) == nil {
		plan.substitute, err = plan.replaceDatabase()
	}
	return plan, cmp.Or(err, ctx.Err())
}

// judgeBridges judges the dumps of all bridges.
func (p *Plan) judgeBridges(ctx context.Context, outputs map[recording.Subject][]recording.Output, references bool) error {
	for _, name := range p.Named.Bridges {
		bridge, err := judgeBridge(ctx, outputs, name, references)
		if err != nil {
			return err
		}
		p.Bridges = append(p.Bridges, bridge)
	}
	return nil
}

// judgeRecorded takes the recorded state: of each bridge, then of the node. A bridge
// without any dump is a fake bridge, and has no recorded state.
func (p *Plan) judgeRecorded(outputs map[recording.Subject][]recording.Output) error {
	var subjects []string
	for _, bridge := range p.Bridges {
		subjects = append(subjects, bridge.Name)
	}
	commands := recording.Recorded()
	for _, bridge := range append(subjects, "") {
		for _, command := range commands {
			if (command.Scope == recording.OfBridge) != (bridge != "") {
				continue
			}
			if err := p.record(&p.Recorded, outputs[recording.Subject{Command: command.Name, Bridge: bridge}]); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeNamespaces takes the outputs of each named network namespace.
func (p *Plan) judgeNamespaces(outputs map[recording.Subject][]recording.Output) error {
	namespaces := map[string]bool{}
	for subject := range outputs {
		if subject.Namespace != "" {
			namespaces[subject.Namespace] = true
		}
	}
	commands := recording.OfNamespaces()
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		for _, command := range commands {
			if err := p.record(&p.Recorded, outputs[recording.Subject{Command: command.Name, Namespace: namespace}]); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeHost takes the outputs and texts about the machine, and about each of its devices.
func (p *Plan) judgeHost(outputs map[recording.Subject][]recording.Output) error {
	devices := map[recording.Name][]string{}
	for subject := range outputs {
		devices[subject.Command] = append(devices[subject.Command], subject.Device)
	}
	for _, command := range recording.OfHost() {
		for _, device := range slices.Sorted(slices.Values(devices[command.Name])) {
			if err := p.record(&p.HostOutputs, outputs[recording.Subject{Command: command.Name, Device: device}]); err != nil {
				return err
			}
		}
	}
	p.HostOutputs = append(p.HostOutputs, p.HostTexts...)
	return nil
}

// record adds the first output that is not an error message to a list.
func (p *Plan) record(list *[]recording.Output, outputs []recording.Output) error {
	for _, output := range outputs {
		file, err := os.Open(output.Spooled)
		if err != nil {
			return err
		}
		bad := openflow.HasError(file)
		file.Close()
		refused, err := isRefused(output)
		if err != nil {
			return err
		}
		if bad || refused {
			continue
		}
		skipped, err := lines.Skipped(output.Spooled)
		if skipped > 0 {
			p.Lost = append(p.Lost, fmt.Sprintf("%s: %s longer than %d MiB: not read", output.Origin, phrase.Count(skipped, "line"), lines.Longest>>20))
		}
		*list = append(*list, output)
		return err
	}
	return nil
}

// refusal matches what a tool prints that is missing, or that a daemon refuses or does not answer.
var refusal = lazyregexp.New(`(?m)server returned an error|^\S*ov[sn]-appctl: cannot |command not found|No such file or directory$`)

// isRefused reports whether an output about the machine or a network namespace is the message of a tool that got no answer.
// Answers that are longer than any such message are not read.
func isRefused(output recording.Output) (bool, error) {
	const longest = 1024
	if output.Size > longest || !isOfHost(output) && output.Namespace == "" {
		return false, nil
	}
	text, err := os.ReadFile(output.Spooled)
	return refusal.Match(text), err
}

// replaceDatabase describes what replaces a missing OVS database: its printed tables, or else
// ovs-vsctl show, or "".
func (p *Plan) replaceDatabase() (string, error) {
	recorded, lists := map[recording.Name]string{}, map[string]string{}
	for _, output := range p.Recorded {
		recorded[output.Command] = output.Spooled
	}
	for _, table := range workdir.ListedTables() {
		if path, ok := recorded[recording.Name(workdir.RecordedList(table))]; ok {
			lists[table] = path
		}
	}
	if _, ok, err := file.ReadPrinted(recorded[workdir.RecordedDatabaseDump], lists); ok && err == nil {
		return rebuilt, nil
	}
	if outline, err := ovsdb.ShownIn(recorded[workdir.RecordedSwitchShow]); outline == nil || err != nil {
		return "", err
	}
	return outlined, nil
}

// judgeDatabases takes the largest sound file of each kind. A file of another
// source, or outside the usual folders, is taken only if the node has no other. The error is
// an error about a file that could not be written: a compressed database is unpacked.
func (p *Plan) judgeDatabases(ctx context.Context) error {
	best := map[workdir.Kind]int{}
	for i := range p.Recording.Databases {
		db := &p.Recording.Databases[i]
		info, err := db.Inspect(ctx)
		if archive.CannotWrite(err) {
			return err
		}
		if err != nil {
			if !db.Unusual {
				p.Broken = append(p.Broken, fmt.Sprintf("%s: %v", db.Origin, err))
			}
			continue
		}
		kind := workdir.KindOfSchema(info.Name)
		p.Databases = append(p.Databases, Database{Database: *db, Kind: kind, Info: info, Remarks: append(databaseRemarks(info), db.Remarks...)})
		if kind == "" {
			p.Remarks = append(p.Remarks, otherDatabase(db.Origin, info.Name))
			continue
		}
		next := len(p.Databases) - 1
		if old, exists := best[kind]; exists {
			next = p.prefer(old, next)
		}
		best[kind] = next
	}
	p.Broken = append(p.Broken, p.Dangling...)
	var used []file.Info
	for _, i := range best {
		if err := p.loseDamaged(ctx, &p.Databases[i]); err != nil {
			return err
		}
		p.Databases[i].Used = true
		used = append(used, p.Databases[i].Info)
	}
	p.Versions = versions.Of(versions.Pair{OVS: p.OVSVersion, OVN: p.OVNVersion}, used...)
	if p.Versions.OVS == "" {
		p.Versions.OVS = printedVersion(p.Recording)
	}
	return nil
}

// loseDamaged adds the damaged places of a database that can't be read, or that contradict the
// rest of it, to what was lost. The replica serves the rest.
func (p *Plan) loseDamaged(ctx context.Context, db *Database) error {
	text := fmt.Sprintf("%s: %d places can't be read, whose transactions are missing, and all later ones if the file was cut off: %s", db.Origin, db.Info.Lost, db.Info.Loss)
	if db.Info.Lost == 0 {
		if db.Info.Damaged == 0 {
			return nil
		}
		left, err := file.Contradictions(ctx, db.Spooled)
		if err != nil || len(left) == 0 {
			return err
		}
		text = fmt.Sprintf("%s: %s: %s", db.Origin, db.Info.Damage, strings.Join(left, "; "))
	}
	p.LoseDatabase(db.Kind, text)
	return nil
}

// printedVersion returns the version of Open vSwitch in the printed OVS database, "" for
// none.
func printedVersion(node *recording.Recording) string {
	rows := printedSwitches(node)
	for _, output := range node.Outputs(workdir.RecordedSwitchShow, "") {
		if outline, err := ovsdb.ShownIn(output.Spooled); outline != nil && err == nil {
			rows = append(rows, outline.Records()[ovsdb.OVS]...)
		}
	}
	for _, row := range rows {
		if version := row.Column("ovs_version"); version != "" {
			return version
		}
	}
	return ""
}

// prefer returns the better of two databases of one kind, with a remark on the other. Printed tables
// are of no use beside a file.
func (p *Plan) prefer(old, next int) int {
	taken, left, why := &p.Databases[old], &p.Databases[next], "it is smaller"
	if (taken.Printed == "") != (left.Printed == "") {
		if taken.Printed != "" {
			return next
		}
		return old
	}
	switch {
	case taken.Unfit != "" && left.Unfit == "":
		taken, left, old = left, taken, next
		why = left.Unfit
	case left.SHA256 == taken.SHA256:
		why = "it is a copy"
	case left.Foreign && !taken.Foreign:
		why = "the node's own is taken"
	case left.Unusual && !taken.Unusual:
		why = "it is not where nodes keep their databases"
	case left.Size > taken.Size:
		taken, left, old = left, taken, next
	}
	if kept := taken.Info.Cluster; kept != "" && kept == left.Info.Cluster && left.Info.Server != taken.Info.Server {
		why += "; it is kept as the file of another member of the cluster"
	}
	taken.Remarks = append(taken.Remarks, fmt.Sprintf("%s holds the same database and was not taken: %s", left.Origin, why))
	return old
}

// databaseRemarks returns the sentences for the user about a collected database.
func databaseRemarks(info file.Info) []string {
	var remarks []string
	if n := info.Damaged - info.Lost; n > 0 {
		remarks = append(remarks, fmt.Sprintf("%d damaged records, repaired for the replica: %s", n, info.Damage))
	}
	switch info.Form {
	case file.FormClustered:
		remarks = append(remarks, "clustered (RAFT) database; converted to standalone")
	case file.FormPrinted:
		remarks = append(remarks, "no file of this database was collected: it is made from its printed tables")
	}
	return remarks
}

// Database returns the database of a kind that is collected, nil for none.
func (p *Plan) Database(kind workdir.Kind) *Database {
	if i := slices.IndexFunc(p.Databases, func(db Database) bool { return db.Kind == kind && db.Used }); i >= 0 {
		return &p.Databases[i]
	}
	return nil
}

// HasOVS reports whether the node has data of Open vSwitch that a replica can use: its database, what that is made from, or the dump of
// a bridge.
func (p *Plan) HasOVS() bool {
	return p.Database(workdir.OVS) != nil || p.substitute != "" && len(p.Bridges) > 0 ||
		slices.ContainsFunc(p.Bridges, func(bridge Bridge) bool { return len(bridge.Dumps) > 0 })
}
