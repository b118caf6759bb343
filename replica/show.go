package replica

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/workdir"
	"ovs-offline/replica/activate"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/daemon"
)

// Sockets are the sockets of a running replica, and the script that activates it.
type Sockets struct {
	Workdir    string            `json:"workdir"`
	Control    string            `json:"ovs_vswitchd_control,omitempty"`
	Databases  map[string]string `json:"databases"` // socket by kind
	Recorded   string            `json:"recorded_ovs,omitempty"`
	Management []string          `json:"bridge_management,omitempty"`
	Activate   string            `json:"activate"`
}

// Show returns the sockets of the workdir's replica.
func Show(wd *workdir.Dir) (Sockets, error) {
	state, err := ReadState(wd)
	if err != nil {
		return Sockets{}, err
	}
	s := Sockets{Workdir: wd.Path(), Databases: map[string]string{}, Activate: activate.Script(wd.Bin())}
	for _, k := range state.Kinds {
		s.Databases[string(k)] = wd.Socket(k)
	}
	if _, err := os.Stat(wd.RecordedSocket()); err == nil {
		s.Recorded = wd.RecordedSocket()
	}
	if control := daemon.ControlSockets(vswitchd(wd)); len(control) > 0 {
		s.Control = control[0]
	}
	s.Management = daemon.InRunDir(vswitchd(wd), "*.mgmt")
	return s, nil
}

// Report reads the report on the workdir's replica.
func Report(wd *workdir.Dir) (*report.Report, error) {
	var r report.Report
	if err := workdir.ReadJSON(wd.ReportFile(), &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Print writes commands for the replica. word quotes a path for a shell.
func (s Sockets) Print(w io.Writer, word func(string) string) {
	fmt.Fprintf(w, "Working directory: %s:\n", word(s.Workdir))
	if s.Control != "" {
		control := word(s.Control)
		fmt.Fprintf(w, "* openvswitch control found at %s\n  You can run ovs-appctl commands as:\n\n    ovs-appctl --target=%s [...]\n\n", control, control)
	}
	tools := map[workdir.Kind]string{workdir.OVS: "ovs-vsctl", workdir.NB: "ovn-nbctl", workdir.SB: "ovn-sbctl"}
	for _, k := range workdir.Kinds() {
		if s.Databases[string(k)] != "" {
			socket := word(s.Databases[string(k)])
			fmt.Fprintf(w, "* %s ovsdb-server socket found at %s\n  You can run commands such as:\n\n    %s --db unix:%s [...]\n  or\n    ovsdb-client [...] unix:%s\n\n", k, socket, tools[k], socket, socket)
		}
	}
	if s.Recorded != "" {
		socket, tool := word(s.Recorded), word(activate.RecordedTool(filepath.Dir(s.Activate)))
		fmt.Fprintf(w, "* ovs database as recorded (statistics, link states, errors; read only) found at %s\n  You can run commands such as:\n\n    ovs-vsctl --db unix:%s list interface\n  or\n    %s list interface\n\n", socket, socket, tool)
	}
	s.printManagement(w, word)
	fmt.Fprintf(w, "* You can also run offline commands directly with the following:\n\n    source %s\n\n  from fish %s; or, in a shell of its own:\n\n    ovs-offline -w %s shell\n\n", word(s.Activate), word(s.Activate+".fish"), word(s.Workdir))
}

func (s Sockets) printManagement(w io.Writer, word func(string) string) {
	if len(s.Management) == 0 {
		return
	}
	var sockets []string
	for _, m := range s.Management {
		sockets = append(sockets, word(m))
	}
	fmt.Fprintf(w, "* openflow bridge management sockets found at %s\n  You can run ofproto commands such as:\n\n", strings.Join(sockets, "\n  "))
	for _, m := range sockets {
		fmt.Fprintf(w, "    ovs-ofctl [...] %s\n", m)
	}
	fmt.Fprintln(w)
}
