// Package tickets has tests alone: they replay tickets in every form in which people paste them, and compare what a
// replica says about packets with what it says of the whole node.
package tickets

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/trace"
	"ovs-offline/answer/trace/answer"
	"ovs-offline/internal/command"
	"ovs-offline/snapshot"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/generate/tickets"
	"ovs-offline/test/oracle/fidelity"
)

// whole is a node of which all was recorded, with the ends of some packets.
type whole struct {
	tickets.Node
	packets []packet
}

// packet is a packet, and what becomes of it on the whole node.
type packet struct {
	flow string // BRIDGE in_port=PORT,..., as `trace --flow` takes it
	end  string
}

// endOf returns the verdict of an answer and where the packet ends: at which ports, or in which table of which bridge.
func endOf(a *answer.Answer) string {
	var places []string
	for _, o := range a.Outcomes {
		places = append(places, o.Bridge+" "+o.Port)
	}
	if a.Drop != nil && len(a.Outcomes) == 0 {
		places = append(places, fmt.Sprintf("%s table %d", cmp.Or(a.Drop.OnBridge, a.Drop.Bridge), a.Drop.Table))
	}
	slices.Sort(places)
	return string(a.Verdict) + " " + strings.Join(slices.Compact(places), ", ")
}

// outputsOf are the outputs of a ticket: their kind, how the recorded output is named in a report, and the command of
// a person. V stands for the version of OpenFlow.
func outputsOf() []struct{ kind, file, command string } {
	return []struct{ kind, file, command string }{
		{tickets.SwitchShow, "ovs-vsctl_-t_5_show", "ovs-vsctl show"},
		{tickets.Show, "ovs-ofctl_-O_V_show_", "ovs-ofctl -O V show "},
		{tickets.Flows, "ovs-ofctl_-O_V_dump-flows_", "ovs-ofctl -O V dump-flows "},
		{tickets.Groups, "ovs-ofctl_-O_V_dump-groups_", "ovs-ofctl -O V dump-groups "},
		{tickets.Meters, "ovs-ofctl_-O_V_dump-meters_", "ovs-ofctl -O V dump-meters "},
		{tickets.TLVMap, "ovs-ofctl_-O_V_dump-tlv-map_", "ovs-ofctl -O V dump-tlv-map "},
		{tickets.FDB, "ovs-appctl_fdb.show_", "ovs-appctl fdb/show "},
		{tickets.Conntrack, "ovs-appctl_dpctl.dump-conntrack_-m_*", "ovs-appctl dpctl/dump-conntrack -m"},
	}
}

// recordedNode returns the node of a report, whose packets are the flows. Only some of these are kept, each of which
// ends elsewhere.
func recordedNode(t *testing.T, name, version, report string, flows []string) *whole {
	t.Helper()
	extracted := t.TempDir()
	if _, err := command.Run(t.Context(), command.Command{Argv: []string{"tar", "-C", extracted, "--strip-components=1",
		"-xf", report}}); err != nil {
		t.Fatal(err)
	}
	w := &whole{Node: tickets.Node{Name: name, Version: version}}
	for _, o := range outputsOf() {
		perBridge := strings.HasSuffix(o.command, " ")
		pattern := filepath.Join(extracted, "sos_commands/openvswitch", strings.Replace(o.file, "_V_", "_"+version+"_", 1))
		if perBridge {
			pattern += "*"
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			bridge := ""
			if perBridge {
				bridge = file[len(pattern)-1:]
			}
			if len(text) > 0 {
				w.Outputs = append(w.Outputs, tickets.Output{Kind: o.kind, Bridge: bridge,
					Command: strings.Replace(o.command, " V ", " "+version+" ", 1) + bridge, Text: string(text)})
			}
		}
	}
	if !slices.ContainsFunc(w.Outputs, func(o tickets.Output) bool { return o.Kind == tickets.Flows }) {
		t.Fatalf("%s has no flows of %s", report, version)
	}
	n := fidelity.Replayed(t, report)
	w.nameFlows(func(args ...string) string {
		text, err := n.Tool(t.Context(), "ovs-ofctl", args...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
	w.ask(t, n, flows)
	return w
}

// namesAlike reports whether a bridge has interfaces whose names ovs-ofctl show prints alike: it prints 15 characters
// (OFP_MAX_PORT_NAME_LEN of openflow/openflow-common.h, without the end).
func (w *whole) namesAlike() bool {
	for _, o := range w.Outputs {
		if o.Kind != tickets.Show {
			continue
		}
		printed := map[string]bool{}
		for _, found := range shownPort.FindAllStringSubmatch(o.Text, -1) {
			if printed[found[1]] {
				return true
			}
			printed[found[1]] = true
		}
	}
	return false
}

// shownPort matches the line of a port in ovs-ofctl show: its name.
var shownPort = regexp.MustCompile(`(?m)^ +\S+\((.+)\): addr:`)

// nameFlows adds the flows with the names of ports, and finds the bridge that others need.
func (w *whole) nameFlows(ofctl func(args ...string) string) {
	for _, o := range w.Outputs {
		if o.Kind != tickets.Flows {
			continue
		}
		words := []string{"-O", w.Version, "--names", "dump-flows", o.Bridge}
		w.Named = append(w.Named, tickets.Output{Kind: tickets.Flows, Bridge: o.Bridge,
			Command: "ovs-ofctl " + strings.Join(words, " "), Text: settled(ofctl(words...))})
	}
	if len(w.Named) > 1 {
		w.Peer = w.Named[len(w.Named)-1].Bridge
	}
}

var (
	durations = regexp.MustCompile(`\bduration=[0-9.]+s`)
	packets   = regexp.MustCompile(`\bn_packets=\d+, n_bytes=\d+`)
	pid       = regexp.MustCompile(`\bxid=0x[0-9a-f]+`)
)

// settled returns a dump with the same times and counters each time: every third flow has no packets.
func settled(text string) string {
	i := 0
	text = packets.ReplaceAllStringFunc(text, func(string) string {
		i++
		return fmt.Sprintf("n_packets=%d, n_bytes=%d", i%3*17, i%3*1666)
	})
	return durations.ReplaceAllString(pid.ReplaceAllString(text, "xid=0x2"), "duration=8123.456s")
}

// ask asks the replica of the whole node for each flow, and keeps some of those that end differently.
func (w *whole) ask(t *testing.T, n *fidelity.Replica, flows []string) {
	t.Helper()
	session, err := trace.OpenSet(t.Context(), snapshot.Of(n.Workdir), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	seen := map[string]bool{}
	var all []packet
	for _, flow := range flows {
		a, err := session.Flow(t.Context(), "", flow, 0)
		if errors.Is(err, trace.ErrQuestion) {
			continue // it enters by a device that is a port of no bridge
		}
		if err != nil {
			t.Fatalf("%s: %v", flow, err)
		}
		if a.Verdict != answer.Reachable && len(a.Outcomes) > 0 {
			continue // the databases of OVN, which no ticket has, know whether its destination is where it comes out
		}
		if end := endOf(a); !seen[end] {
			seen[end] = true
			all = append(all, packet{flow, end})
		}
	}
	if len(all) == 0 {
		t.Fatalf("the whole node has no answer for any of %d packets", len(flows))
	}
	most := sweep.Count(10, 8)
	for i := range min(most, len(all)) {
		w.packets = append(w.packets, all[i*len(all)/min(most, len(all))])
	}
}
