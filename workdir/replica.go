package workdir

import "path/filepath"

// Replica is the files of a replica in a workdir. A replica on another machine has its sockets
// elsewhere.
type Replica struct {
	root    string
	sockets Sockets // nil for a replica on this machine
}

// VarRun returns the folder of the sockets of a kind's daemons while a replica runs.
func (r *Replica) VarRun(kind Kind) string { return filepath.Join(r.VarRuns(), string(kind)) }

// VarRunRecorded returns the folder of the socket of the database as recorded.
func (r *Replica) VarRunRecorded() string { return filepath.Join(r.VarRuns(), "recorded") }

// Socket returns the socket of a kind's ovsdb-server.
func (r *Replica) Socket(kind Kind) string { return filepath.Join(r.VarRun(kind), "db.sock") }

// RecordedSocket returns the socket of the server of the database as recorded.
func (r *Replica) RecordedSocket() string { return filepath.Join(r.VarRunRecorded(), "db.sock") }

// RuntimeFolders returns the folders with all files of a replica's daemons. Where
// these don't share the host's files, they see only these folders of it.
func (r *Replica) RuntimeFolders() []string { return []string{r.Run(), r.VarRuns()} }

// VarRuns returns the folder that holds the folders of the daemons' sockets.
func (r *Replica) VarRuns() string {
	if r.sockets != nil {
		return r.sockets.VarRuns()
	}
	return filepath.Join(r.root, "var-run")
}

// Run returns the folder of working copies and logs while a replica runs.
func (r *Replica) Run() string { return filepath.Join(r.root, "run") }

// WorkingCopy returns the database that a replica's ovsdb-server writes to.
func (r *Replica) WorkingCopy(kind Kind) string {
	return filepath.Join(r.root, "run", string(kind), databaseName(kind))
}

// RecordedCopy returns the served copy of the OVS database as recorded.
func (r *Replica) RecordedCopy() string {
	return filepath.Join(r.root, "run", "recorded", databaseName(OVS))
}

// Tools returns the folder of the files by which a runtime runs tools.
func (r *Replica) Tools() string { return filepath.Join(r.root, "run", "tools") }

// Tracer returns the folder of the files of the ovn-trace that start runs.
func (r *Replica) Tracer() string { return filepath.Join(r.root, "run", "ovn-trace") }

// Log returns the log file of a daemon, by its role.
func (r *Replica) Log(role string) string { return filepath.Join(r.root, "run", "log", role+".log") }

// Bin returns the folder of the activate script and the tool wrappers.
func (r *Replica) Bin() string { return filepath.Join(r.root, "bin") }

// ReplicaFile returns the file that describes the running replica.
func (r *Replica) ReplicaFile() string { return filepath.Join(r.root, "replica.json") }

// ReportFile returns the file that describes how faithful the replica is.
func (r *Replica) ReportFile() string { return filepath.Join(r.root, "report.json") }

// VarRunNamespaces returns the folder of the socket of the process that keeps the network namespaces.
func (r *Replica) VarRunNamespaces() string { return filepath.Join(r.VarRuns(), "namespaces") }

// NamespacesSocket returns the socket of the process that keeps the network namespaces.
func (r *Replica) NamespacesSocket() string {
	return filepath.Join(r.VarRunNamespaces(), "namespaces.sock")
}
