package replica

import (
	"time"

	"ovs-offline/replica/activate"
	"ovs-offline/replica/report"
	"ovs-offline/snapshot"
	"ovs-offline/workdir"
)

// Elsewhere is a replica of a workdir that runs on another host: its daemons see a copy of
// the workdir there.
type Elsewhere struct {
	Runtime string   // its name
	Place   Place    // where it runs
	Exec    []string // as in Options
}

// Begin writes replica.json of a start that is not complete, by which Place is known
// even if the start is killed. The error wraps ErrNothing for a workdir without data.
func (e Elsewhere) Begin(wd *workdir.Dir) error {
	if _, err := dataOf(wd); err != nil {
		return err
	}
	return workdir.WriteJSON(wd.ReplicaFile(), e.state())
}

// Complete writes what commands on this host need of the replica once it runs: its report,
// the wrappers, and replica.json.
func (e Elsewhere) Complete(wd *workdir.Dir, report *report.Report) error {
	if err := workdir.WriteJSON(wd.ReportFile(), report); err != nil {
		return err
	}
	state := e.state()
	state.Kinds, state.Recorded, state.Running = snapshot.ServedKinds(wd), report.Recorded, report.Running
	scripts := Scripts(wd, state.Kinds)
	scripts.Exec = e.Exec
	// The tools run where the sockets are: the variables that activate sets name these.
	there := func(path string) string { return e.Place.Path(wd, path) }
	scripts.OVSRunDir, scripts.OVNRunDir = there(scripts.OVSRunDir), there(scripts.OVNRunDir)
	if scripts.NBSocket != "" {
		scripts.NBSocket = there(scripts.NBSocket)
	}
	if scripts.SBSocket != "" {
		scripts.SBSocket = there(scripts.SBSocket)
	}
	if scripts.OVS {
		scripts.Recorded = there(wd.RecordedSocket())
	}
	if err := activate.Write(scripts); err != nil {
		return err
	}
	return workdir.WriteJSON(wd.ReplicaFile(), state)
}

func (e Elsewhere) state() State {
	return State{Runtime: e.Runtime, Started: time.Now().UTC().Truncate(time.Second), Pod: &e.Place}
}
