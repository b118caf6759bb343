// Package recording holds everything a source recorded about one node, independent of
// where the source kept it, and the table of the commands whose output is recorded.
package recording

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	dbfile "ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
)

// Output is what one command printed on the node.
type Output struct {
	archive.File
	Command Name
	Bridge  string // "" if the command does not concern one bridge
	Table   string // of a database, as the command line spells it; "" for other commands
	Device  string // of the kernel; "" if the command does not concern one
	// Namespace is a named network namespace; "" if the command does not concern one.
	Namespace string
	OpenFlow  openflow.Version // zero for a command without -O
	Origin    string           // its path in the source
	Ran       time.Time        // when the command began; zero if that is not known
	Bare      bool             // the source leaves out the dump's header
	// Truncated reports that the source kept only the end of the output.
	Truncated bool
	// Partial says why the output is only a part of what the command would print, nil if nothing shows that it is.
	Partial *workdir.Partial
}

// Database is a file that holds a database, or that is found at the path of one, or what commands
// printed of a database.
type Database struct {
	archive.File
	Origin string    // its path in the source
	Ran    time.Time // when the command that copied it began; zero if that is not known
	// Printed is the kind of the database of which the file holds printed tables
	// (dbfile.InspectPrinted), "" for a database file.
	Printed workdir.Kind
	// Tail is the end of the database's file, whose beginning is missing, beside what was printed;
	// the zero value for none.
	Tail      archive.File
	Truncated bool
	// Unusual reports that the file is not where nodes keep their databases:
	// a copy, or a deployment that the source does not know.
	Unusual bool
	// Foreign reports that the file comes from another source than the node. It is used
	// only if the node has no database of its kind.
	Foreign bool
	// Unfit is the reason to use the file only if the node has no other of its kind.
	Unfit   string
	Shared  bool            // other nodes get it too
	Source  *workdir.Source // nil for the node's own
	Holder  string          // the name of the node in whose report an OVN database is; "" where there is none
	Remarks []string

	inspect func() (dbfile.Info, error) // nil until Inspect
}

// Inspect returns the description of the file. It reads the file only the first time.
func (d *Database) Inspect(ctx context.Context) (dbfile.Info, error) {
	if d.inspect == nil {
		info, err := d.inspectFile(ctx)
		d.inspect = func() (dbfile.Info, error) { return info, err }
	}
	return d.inspect()
}

func (d *Database) inspectFile(ctx context.Context) (dbfile.Info, error) {
	if d.Printed != "" {
		info, err := dbfile.InspectPrinted(ctx, d.Spooled, d.Printed.Schema())
		if d.Tail.Size > 0 {
			info.Form = dbfile.FormTail
		}
		return info, err
	}
	f, err := os.Open(d.Spooled)
	if err != nil {
		return dbfile.Info{}, err
	}
	defer f.Close()
	return dbfile.Inspect(ctx, f)
}

// Read returns the rows of the named tables.
func (d *Database) Read(ctx context.Context, tables ...string) (*dbfile.Content, error) {
	if d.Printed != "" {
		return dbfile.PrintedContent(ctx, d.Spooled)
	}
	content, _, err := dbfile.Read(ctx, d.Spooled, tables...)
	return content, err
}

// Kind returns the kind of the database, "" for one that cannot be read and for
// other schemas (local-config, hardware_vtep).
func (d *Database) Kind(ctx context.Context) workdir.Kind {
	info, err := d.Inspect(ctx)
	if err != nil {
		return ""
	}
	return workdir.KindOfSchema(info.Name)
}

// Member is the file of a member of a clustered database.
type Member struct {
	Database
	Of      workdir.Kind
	Server  string // its UUID
	Cluster string // its UUID, "" if the server has not joined and was not given it
	Host    string // the host or the pod that it was read on, "" if that is not known
}

// Log is a log file, present or rotated: of a program, or of clients of libovsdb, which write what
// they ask of OVN's databases.
type Log struct {
	archive.File
	Program   string // as in LogFile; "" for clients of libovsdb
	Name      string // of the file on the node
	Origin    string // its path in the source
	Truncated bool   // the source kept only its end
}

// Services is a file with the services of a cluster, as package services writes it.
type Services struct {
	archive.File
	Origin string // where they are from
}

// clientLog matches the names of the log that OVN-Kubernetes makes on OpenShift: libovsdb.log,
// and libovsdb-TIME.log.gz when lumberjack has rotated it. sos and must-gather copy them
// by the pattern libovsdb*log*.
var clientLog = lazyregexp.New(`^libovsdb[^/]*\.log(?:\.gz)?$`)

// IsClientLog reports whether a file has the name of a log of clients of libovsdb.
func IsClientLog(file string) bool { return clientLog.MatchString(path.Base(file)) }

// Recording holds everything that is known about one node.
type Recording struct {
	// Host is the node's name in the source, "" if the source has none.
	Host string
	// HostOfArchive reports that Host is from the name of an archive, in which a
	// label of `sos report --label` may follow the node's name.
	HostOfArchive bool
	// Taken is when the source was recorded.
	Taken Moment
	// Mixed reports that outputs are of another source, which was recorded at another time.
	Mixed      bool
	Source     workdir.Source
	OVSVersion string // from the output of commands and lists of packages
	OVNVersion string // likewise
	Image      string // reference of the container image of the node's OVN or OVS pods, "" if unknown
	// Bridges are in the order in which the node listed them.
	Bridges   []string
	Databases []Database
	// Dangling are the links to databases whose targets the source lacks.
	Dangling []string
	// All holds the outputs of every command, the best of each first.
	All []Output
	// Parts are the rows of tables of which some rows or some columns were printed, in the order in which they stand in the source.
	Parts []Rows
	// Logs are logs of clients of libovsdb.
	Logs []Log
	// HostLogs are the logs of programs, and HostFiles the files of which texts about the machine
	// are made.
	HostLogs  []Log
	HostFiles []HostFile
	// HostTexts are the texts that were made of HostFiles.
	HostTexts []Output
	// Services are the services of the node's cluster; the zero value where they were not asked for.
	Services Services
	// Unused are the paths of outputs of Open vSwitch and OVN in the source that nothing uses.
	Unused []string
	// Remarks are findings for the user; Lost names data that could not be read.
	Remarks []string
	Lost    []string
	// LostDatabases holds the entries of Lost that concern a database, by its kind.
	LostDatabases map[workdir.Kind][]string
	// NoOVN is why the node gets no OVN databases of other sources.
	NoOVN string
	// LacksOVN reports that the node uses OVN and has no database of one of its kinds.
	LacksOVN bool
}

// LoseDatabase adds a loss that concerns the database of a kind.
func (n *Recording) LoseDatabase(kind workdir.Kind, text string) {
	if n.LostDatabases == nil {
		n.LostDatabases = map[workdir.Kind][]string{}
	}
	n.Lost = append(n.Lost, text)
	n.LostDatabases[kind] = append(n.LostDatabases[kind], text)
}

// Outputs returns every output of a command for a bridge ("" for commands that
// concern the whole node), the best first.
func (n *Recording) Outputs(command Name, bridge string) []Output {
	return n.BySubject()[Subject{Command: command, Bridge: bridge}]
}

// Subject is a command and the bridge, the table, the device or the network namespace that it ran for,
// "" for none.
type Subject struct {
	Command   Name
	Bridge    string
	Table     string
	Device    string
	Namespace string
}

// Subject returns what the output is of.
func (o Output) Subject() Subject {
	return Subject{o.Command, o.Bridge, o.Table, o.Device, o.Namespace}
}

// BySubject returns all outputs by their subject, the best of each first.
func (n *Recording) BySubject() map[Subject][]Output {
	found := map[Subject][]Output{}
	for _, output := range n.All {
		found[output.Subject()] = append(found[output.Subject()], output)
	}
	return found
}

// maxBridges is more than any node has. Every bridge costs one look-up per command and
// OpenFlow version, and a hostile source can list any number of names.
const maxBridges = 4096

// LimitBridges drops the bridges beyond maxBridges and adds their number to Lost.
func (n *Recording) LimitBridges() {
	if len(n.Bridges) > maxBridges {
		n.Lost = append(n.Lost, fmt.Sprintf("%d bridges are listed: only the first %d are taken", len(n.Bridges), maxBridges))
		n.Bridges = n.Bridges[:maxBridges]
	}
}

// AddBridge adds a bridge that is not yet known.
func (n *Recording) AddBridge(name string) {
	if !slices.Contains(n.Bridges, name) {
		n.Bridges = append(n.Bridges, name)
	}
}
