package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// Sockets are the sockets of a running replica, and the script that activates it.
type Sockets struct {
	Workdir    string            `json:"workdir"`
	Control    string            `json:"ovs_vswitchd_control,omitempty"`
	Databases  map[string]string `json:"databases"` // socket by kind
	Recorded   string            `json:"recorded_ovs,omitempty"`
	Counters   string            `json:"recorded_counters,omitempty"` // the folder of dumps with the node's counters
	Management []string          `json:"bridge_management,omitempty"`
	Activate   string            `json:"activate"`
	// Own lists columns of the OVS database with values of the replica's own.
	Own []string `json:"own_columns"`
	// Pod is the pod in which the sockets are; "" for those on this machine.
	Pod string `json:"pod,omitempty"`
}

// InPod returns sockets that ovs-offline in a pod has shown as the sockets of the replica of a
// workdir: the script that activates the replica is the one on this machine.
func (s Sockets) InPod(wd *workdir.Dir, place Place) Sockets {
	s.Workdir, s.Activate, s.Pod = wd.Path(), activate.Script(wd.Bin()), place.Namespace+"/"+place.Pod
	if s.Counters != "" {
		s.Counters = wd.RestoreFlows()
	}
	return s
}

// Show returns the sockets of the workdir's replica.
func Show(wd *workdir.Dir) (Sockets, error) {
	state, err := ReadState(wd)
	if err != nil {
		return Sockets{}, err
	}
	sockets := Sockets{Workdir: wd.Path(), Databases: map[string]string{}, Activate: activate.Script(wd.Bin()), Own: ownColumns(state)}
	for _, kind := range state.Kinds {
		sockets.Databases[string(kind)] = wd.Socket(kind)
	}
	if _, err := os.Stat(wd.RecordedSocket()); err == nil {
		sockets.Recorded = wd.RecordedSocket()
	}
	if hasCounters(wd) {
		sockets.Counters = wd.RestoreFlows()
	}
	if control := daemon.ControlSockets(vswitchd(wd)); len(control) > 0 {
		sockets.Control = control[0]
	}
	sockets.Management = daemon.InRunDir(vswitchd(wd), "*.mgmt")
	return sockets, nil
}

// ownColumns returns the columns that users look at and in which a replica has
// values of its own: it forwards no packets, has no peers, and start changes some.
func ownColumns(state State) []string {
	columns := []string{"bfd_status", "mac_in_use", "statistics", "status"}
	for _, column := range []string{"controller", "datapath_type", "fail_mode", "other_config"} {
		if slices.Contains(state.Changed["Bridge"], column) {
			columns = append(columns, column)
		}
	}
	slices.Sort(columns)
	return columns
}

// hasCounters reports whether a dump of flows has the counters of the flows: that
// of ovs-save has none.
func hasCounters(wd *workdir.Dir) bool {
	const start = 4096 // bytes of a dump that are read
	bridges, _ := wd.DumpedBridges(workdir.Flows)
	for _, bridge := range bridges {
		file, err := os.Open(wd.DumpFile(bridge, workdir.Flows))
		if err != nil {
			continue
		}
		head, _ := io.ReadAll(io.LimitReader(file, start))
		file.Close()
		if bytes.Contains(head, []byte("n_packets=")) {
			return true
		}
	}
	return false
}

// Report reads the report on the workdir's replica.
func Report(wd *workdir.Dir) (*report.Report, error) {
	var report report.Report
	err := workdir.ReadUnsynced(wd.ReportFile(), &report)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: no replica was started", ErrNoReport, wd.Path())
	}
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// ErrNoReport is wrapped by the error of a workdir whose replica was never started.
var ErrNoReport = errors.New("no report")

// PrintNotes writes where the node's values are that the replica has of its own.
func (s Sockets) PrintNotes(p *show.Page) {
	if s.Recorded != "" {
		text := fmt.Sprintf("ovs-vsctl shows the replica's own %s; ovs-vsctl-recorded shows the node's.", terminal.Escape(strings.Join(s.Own, ", ")))
		p.Printf("%s\n", show.Fold(text, p.Width, ""))
	}
	if s.Counters != "" {
		text := fmt.Sprintf("Flow counters (n_packets, n_bytes) are 0 here; the node's are in %s.", show.Word(filepath.Join(s.Counters, "BRIDGE.flows.dump")))
		p.Printf("%s\n", show.Fold(text, p.Width, ""))
	}
}

// Print writes commands for the replica.
func (s Sockets) Print(w io.Writer) {
	fmt.Fprintf(w, "Working directory: %s:\n", show.Word(s.Workdir))
	if s.Pod != "" {
		s.printPod(w)
		return
	}
	if s.Control != "" {
		control := show.Word(s.Control)
		fmt.Fprintf(w, "* openvswitch control found at %s\n  You can run ovs-appctl commands as:\n\n    ovs-appctl --target=%s [...]\n\n", control, control)
	}
	for _, kind := range workdir.Kinds() {
		if s.Databases[string(kind)] != "" {
			socket := show.Word(s.Databases[string(kind)])
			fmt.Fprintf(w, "* %s ovsdb-server socket found at %s\n  You can run commands such as:\n\n    %s --db unix:%s [...]\n  or\n    ovsdb-client [...] unix:%s\n\n", kind, socket, toolOf(kind), socket, socket)
		}
	}
	if s.Recorded != "" {
		socket, tool := show.Word(s.Recorded), show.Word(activate.RecordedTool(filepath.Dir(s.Activate)))
		fmt.Fprintf(w, "* ovs database as recorded (statistics, link states, errors; read only) found at %s\n  You can run commands such as:\n\n    ovs-vsctl --db unix:%s list interface\n  or\n    %s list interface\n\n", socket, socket, tool)
	}
	s.printManagement(w)
	s.printActivate(w)
}

// toolOf returns the tool for a kind of database.
func toolOf(kind workdir.Kind) string {
	return map[workdir.Kind]string{workdir.OVS: "ovs-vsctl", workdir.NB: "ovn-nbctl", workdir.SB: "ovn-sbctl"}[kind]
}

// printPod writes commands for a replica in a pod.
func (s Sockets) printPod(w io.Writer) {
	fmt.Fprintf(w, "* the replica runs in the pod %s\n  Its sockets are in the pod. You can run commands such as:\n\n", show.Word(s.Pod))
	command := func(tool string) { fmt.Fprintf(w, "    ovs-offline -w %s exec %s [...]\n", show.Word(s.Workdir), tool) }
	if s.Control != "" {
		command("ovs-appctl")
		command("ovs-ofctl")
	}
	for _, kind := range workdir.Kinds() {
		if s.Databases[string(kind)] != "" {
			command(toolOf(kind))
		}
	}
	fmt.Fprintln(w)
	if s.Recorded != "" {
		fmt.Fprintf(w, "* ovs database as recorded (statistics, link states, errors; read only)\n  You can run commands such as:\n\n    %s list interface\n\n", show.Word(activate.RecordedTool(filepath.Dir(s.Activate))))
	}
	s.printActivate(w)
}

func (s Sockets) printActivate(w io.Writer) {
	fmt.Fprintf(w, "* You can also run offline commands directly with the following:\n\n    source %s\n\n  from fish %s; or, in a shell of its own:\n\n    ovs-offline -w %s shell\n\n", show.Word(s.Activate), show.Word(s.Activate+".fish"), show.Word(s.Workdir))
}

func (s Sockets) printManagement(w io.Writer) {
	if len(s.Management) == 0 {
		return
	}
	var sockets []string
	for _, manager := range s.Management {
		sockets = append(sockets, show.Word(manager))
	}
	fmt.Fprintf(w, "* openflow bridge management sockets found at %s\n  You can run ofproto commands such as:\n\n", strings.Join(sockets, "\n  "))
	for _, socket := range sockets {
		fmt.Fprintf(w, "    ovs-ofctl [...] %s\n", socket)
	}
	fmt.Fprintln(w)
}
