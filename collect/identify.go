package collect

import (
	"bytes"
	"path"
	"strings"

	"ovs-offline/collect/ticket"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// fileKind is the kind of a single file outside an sos report.
type fileKind int

const (
	unknownFile        fileKind = iota
	databaseFile                // a database, or the end of one whose beginning was cut off
	expectedFile                // something else at the path of a database
	saveScript                  // the script of ovs-save
	dumpFile                    // a dump, known by its text or its name
	mustGatherDump              // a flow dump, known by the name that must-gather gives it
	mustGatherVersion           // the file with the must-gather's version
	mustGatherTime              // the file with the times of its beginning and end
	mustGatherResource          // the YAML of a pod or a node
	clientLog                   // a log of clients of libovsdb, known by its name
	recordedFile                // another recorded output
	ticketFile                  // text into which outputs of several commands were pasted
	clusterStatus               // what cluster/status printed of a server of a clustered database
	antreaFile                  // a file that only the folder of an Antrea support bundle identifies
	logFile                     // a log of a program of Open vSwitch, OVN or the machine
	hostText                    // a file of which a text about the machine is made
)

// identity is the kind of a file, and the node and bridge that its name gives.
type identity struct {
	kind     fileKind
	command  recording.Name // of a dump or recorded output
	openflow openflow.Version
	node     string
	bridge   string // or table, device or network namespace, as the file's name spells it; "" if it is not known
	version  string // of the must-gather
	bare     bool   // the source leaves out the dump's header
	partial  *workdir.Partial
	// whole reports that the beginning of a text does not decide what it is: outputs of commands may stand further below.
	whole  bool
	member *raft.Status // nil for another kind
	log    recording.LogFile
	text   string // in host/, of which the file is a source
}

// isAside reports whether a source can do without the file.
func (id identity) isAside() bool {
	return id.kind == logFile || id.kind == hostText || id.kind == recordedFile && scopeOf(id.command) == recording.OfNamespace
}

// scopeOf returns the scope of a recorded command.
func scopeOf(name recording.Name) recording.Scope {
	command, _ := recording.Find(name)
	return command.Scope
}

var (
	// mustGatherName matches the names that must-gathers give flow dumps: NODE, an
	// optional pod, the command and the bridge, with an underscore for every dash of
	// the command and the bridge.
	mustGatherName = lazyregexp.New(`^([^_]*[^_0-9][^_]*)(?:_[^_]+)?_ovs_ofctl_dump_flows_(.+)$`)
	// databaseName matches names of databases, to identify files without their
	// beginning.
	databaseName = lazyregexp.New(`(?:\.db|[ns]bdb)(?:\.gz|\.tailed)?$`)
	// ovsDatabaseName matches names that only databases of OVS and OVN have.
	ovsDatabaseName = lazyregexp.New(`(?:conf\.db|ovn[ns]b(?:_db)?\.db|_[ns]bdb)(?:\.gz)?$`)
	// expectedDatabase matches the paths at which must-gathers and nodes keep databases of OVS
	// and OVN. What is there instead, an error message for example, is a loss.
	expectedDatabase = lazyregexp.New(`(?:^|/)(?:ovn[ns]b(?:_db)?\.db|[^/]+_[ns]bdb|(?:ovnkube-node|ovs-node|ovnkube-ovs)-[^/_]+_conf\.db|openvswitch/conf\.db)(?:\.gz)?$`)
	// shownSwitch matches the output of ovs-vsctl show.
	shownSwitch = lazyregexp.New(`(?m)^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\r?\n +(?:Bridge|Manager) `)
	// supportconfigFile matches the files of SUSE's supportconfig that have outputs of Open vSwitch.
	supportconfigFile = lazyregexp.New(`(?:^|/)(?:network|openvswitch|plugin-[^/]*)\.txt$`)
	// supportconfigTop matches the folder of a supportconfig: scc_NODE_YYMMDD_HHMM, and in Harvester's
	// support bundles scc_supportconfig_NODE-RANDOM.
	supportconfigTop = lazyregexp.New(`(?:^|/)(?:scc|nts)_(?:supportconfig_([^/]+)-[0-9A-Za-z]{6}|([^/]+?)_[0-9]{6}_[0-9]{4})(?:/|$)`)
	// koLog matches the outputs in the folder that kube-ovn's plugin makes (kubectl ko log) of which there
	// is a recorded command: NODE/linux/addr.log.
	koLog = lazyregexp.New(`(?:^|/)([^/]+)/linux/(addr|route)\.log$`)
	// savedDump matches the dumps of ovs-save and of a workdir.
	savedDump = lazyregexp.New(`\.(flows|groups|meters|tlv)\.dump$`)
)

// identify returns the identity of a file, by its name and its beginning.
func identify(name string, start []byte) identity {
	if isUTF16(start) {
		return identity{whole: !strings.Contains(name, "/") && mayBeTicket(name, decoded(start))}
	}
	id := identifyStart(name, start)
	if !strings.Contains(name, "/") && mayBeTicket(name, start) {
		_, isLog := recording.LogOf(name)
		id.whole = id.kind == unknownFile || id.kind == dumpFile || id.kind == logFile && !isLog
	}
	return id
}

// identifyStart returns the identity of a file: by its content, or by its name if the
// content is not enough (an error message in place of a dump, the end of a database,
// the output of ovs-appctl).
func identifyStart(name string, start []byte) identity {
	base, plain := path.Base(name), undecorated(name)
	kind, version := openflow.Identify(start)
	if match := mustGatherName.FindStringSubmatch(base); match != nil {
		id := identity{kind: mustGatherDump, command: recording.Flows, node: match[1], bridge: strings.ReplaceAll(endings.ReplaceAllString(match[2], ""), "_", "-")}
		if kind == openflow.KindFlows {
			id.openflow = version
		}
		return id
	}
	saved := savedDump.FindStringSubmatch(base)
	if saved != nil && version == 0 {
		version = openflow.OpenFlow14 // ovs-save dumps in that version
	}
	status, isStatus := raft.ParseStatus(string(start))
	log, isLog := recording.LogOf(name)
	if shown, ok := recording.LogOfContent(name, start); ok {
		log, isLog = mergeLog(log, isLog, shown), true
	}
	switch {
	case isLog && log.Sure:
		return identity{kind: logFile, log: log}
	case isStatus:
		return identity{kind: clusterStatus, member: &status}
	case bytes.HasPrefix(start, []byte("OVSDB ")):
		return identity{kind: databaseFile}
	case len(start) == 0 && ovsDatabaseName.MatchString(base), databaseName.MatchString(base) && isRows(start):
		return identity{kind: databaseFile}
	case base == "version" && bytes.Contains(start, []byte("must-gather")) && len(start) < 512:
		_, second, _ := strings.Cut(strings.TrimSpace(string(start)), "\n")
		version, _, _ := strings.Cut(second, "\n")
		return identity{kind: mustGatherVersion, version: strings.TrimSpace(version)}
	case base == "timestamp" && timestamp.Match(start):
		return identity{kind: mustGatherTime}
	case resourceFile.MatchString(name):
		return identity{kind: mustGatherResource}
	case openflow.IsSaveScript(start):
		return identity{kind: saveScript}
	case isTicket(name, start):
		return identity{kind: ticketFile}
	case kind != "":
		return identity{kind: dumpFile, command: recording.Name(kind), openflow: version, bridge: bridgeOf(name)}
	case saved != nil:
		return identity{kind: dumpFile, command: commandOf(workdir.Dump(saved[1])).Name, openflow: version, bridge: bridgeOf(name)}
	}
	if recording.IsClientLog(name) {
		return identity{kind: clientLog}
	}
	if expectedDatabase.MatchString(name) {
		return identity{kind: expectedFile}
	}
	if command, bridge, ok := recording.ByFile(plain); ok {
		return identity{kind: recordedFile, command: command.Name, bridge: bridge}
	}
	if shownSwitch.Match(start) {
		return identity{kind: recordedFile, command: workdir.RecordedSwitchShow}
	}
	if run, ok := recording.ParseFileName(plain); ok {
		return identity{kind: recordedFile, command: run.Command.Name, openflow: run.OpenFlow, bridge: run.Argument}
	}
	if match := koLog.FindStringSubmatch(name); match != nil {
		commands := map[string]recording.Name{"addr": workdir.RecordedLinks, "route": workdir.RecordedKernelRoutes}
		return identity{kind: recordedFile, command: commands[match[2]], node: match[1]}
	}
	if isAntrea(name, start) {
		return identity{kind: antreaFile}
	}
	if text, ok := recording.HostTextOf(name, start); ok {
		return identity{kind: hostText, text: text}
	}
	if isLog {
		return identity{kind: logFile, log: log}
	}
	return identity{}
}

// mergeLog returns the log that the name of a file tells, if it does, and that its content shows.
func mergeLog(named recording.LogFile, isNamed bool, shown recording.LogFile) recording.LogFile {
	if isNamed {
		named.Sure = true
		return named
	}
	return shown
}

// isTicket reports whether a file is text into which outputs of commands were pasted, one of them near its beginning.
func isTicket(name string, start []byte) bool {
	return mayBeTicket(name, start) && (ticket.Mentions(start) || len(raft.Split(string(start))) > 0 || supportconfigFile.MatchString(name) && ticket.IsSectioned(start))
}

// mayBeTicket reports whether a file may be text into which outputs of commands were pasted. Files of
// a report that name commands, such as the history of a shell and logs of services, are not.
func mayBeTicket(name string, start []byte) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".html", ".htm", ".txt", ".text", ".log", ".eml", ".mbox", ".asc", ".out", ".rst", ".adoc", ".asciidoc", ".org", ".textile", ".wiki", ".tst", ".diff", ".patch":
	default:
		if strings.Contains(name, "/") || path.Ext(name) != "" {
			return false
		}
	}
	if strings.Contains("/"+name, "/sos_") || strings.Contains("/"+name, "/var/") {
		return false
	}
	return len(start) > 0 && bytes.IndexByte(start, 0) < 0
}

// isRows reports whether a text is the end of a database whose beginning was cut off.
func isRows(start []byte) bool {
	for _, sign := range []string{`["uuid","`, `["map",[`, `["set",[`, "\nOVSDB "} {
		if bytes.Contains(start, []byte(sign)) {
			return true
		}
	}
	return false
}
