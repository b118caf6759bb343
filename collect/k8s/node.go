package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// nodeSource is a collect.Source that is a live node of a cluster.
type nodeSource struct {
	transfer
	survey    *survey
	layout    layout
	permitted *permissions
	shared    *shared              // nil if only one node is collected
	target    Target               // the container that runs OVS's tools; see locate
	node      *recording.Recording // what was collected so far
}

// Kinds returns all kinds.
func (s *nodeSource) Kinds() []workdir.Kind { return workdir.Kinds() }

// Read runs the commands in the node's pods and keeps their output in spool.
func (s *nodeSource) Read(ctx context.Context, spool string) (*collect.Found, error) {
	var err error
	if s.target, err = s.survey.ovs(s.layout, s.node.Host); err != nil {
		return nil, err
	}
	if err := s.permitted.exec(ctx, s.target.Namespace); err != nil {
		return nil, err
	}
	s.spool = spool
	if err := s.ask(ctx); err != nil {
		return nil, fmt.Errorf("node %s: %w", s.node.Host, s.permitted.explain(ctx, s.target.Namespace, err))
	}
	return &collect.Found{Nodes: []collect.Named{{Name: s.node.Host, Recording: s.node}}}, nil
}

// ask collects the node's OVS data and OVN databases. An OVN database that fails
// is listed as lost; the OVS data is kept. The flows come after the databases: their ages
// then show what changed in between.
func (s *nodeSource) ask(ctx context.Context) error {
	logs := s.beginLogs(ctx)
	defer logs.end(s.node)
	if err := s.askSwitch(ctx); err != nil {
		return err
	}
	for _, kind := range []workdir.Kind{workdir.NB, workdir.SB} {
		err := s.askOVN(ctx, kind)
		if ctx.Err() != nil || errors.Is(err, errLocal) {
			return err
		}
		if err != nil {
			s.lostDatabase(kind, fmt.Sprintf("the %s database: %v", kind.Title(), err))
		}
	}
	if err := s.askServices(ctx); err != nil {
		return err
	}
	return s.askFlows(ctx)
}

// askSwitch collects the node's OVS database, and the state of its Open vSwitch but for that of each bridge
// and of the datapath.
func (s *nodeSource) askSwitch(ctx context.Context) error {
	frames, err := s.run(ctx, s.locate, nodeText())
	if err != nil {
		return err
	}
	if s.node.Bridges, err = bridgeNames(find(frames, "bridges")); err != nil {
		return fmt.Errorf("%s: %w", s.target, err)
	}
	s.node.Image = s.target.image
	s.node.OVSVersion = find(frames, "version").version(versions.PrintedOVS)
	s.database(s.target, find(frames, "backup"), workdir.OVS)
	s.outputs(frames, "")
	return nil
}

// askFlows collects the flows of each bridge and of the datapath, and the rest of their state.
func (s *nodeSource) askFlows(ctx context.Context) error {
	groups, err := s.runForEach(ctx, s.locate, bridgesText(), s.node.Bridges)
	if err != nil {
		return err
	}
	for i, frames := range groups {
		s.outputs(frames, s.node.Bridges[i])
	}
	frames, err := s.run(ctx, s.locate, datapathText())
	if err != nil {
		return err
	}
	s.outputs(frames, "")
	return nil
}

// locate is a locator of the container that runs OVS's tools. It adds a remark if the
// container was replaced, because Open vSwitch may have been restarted with it.
func (s *nodeSource) locate(ctx context.Context, again bool) (Target, error) {
	if !again {
		return s.target, nil
	}
	if err := s.survey.listAgain(ctx, s.layout, s.layout.ovs...); err != nil {
		return Target{}, err
	}
	found, err := s.survey.ovs(s.layout, s.node.Host)
	if err != nil || found == s.target {
		return found, err
	}
	if found.String() == s.target.String() {
		s.node.Remarks = append(s.node.Remarks, fmt.Sprintf("container %s was restarted during the collection", found))
	} else {
		s.node.Remarks = append(s.node.Remarks, fmt.Sprintf("container %s was replaced by %s during the collection", s.target, found))
	}
	s.target = found
	return found, nil
}

// find returns the frame of a name.
func find(frames []frame, name string) frame {
	i := slices.IndexFunc(frames, func(frame frame) bool { return frame.name == name })
	if i < 0 {
		return frame{code: -1, stderr: "the command was not run"}
	}
	return frames[i]
}

// version returns the version that a command printed, "" if there is none.
func (f frame) version(in func(text []byte) string) string {
	text, _ := os.ReadFile(f.Spooled)
	return in(text)
}

// bridgeNames reads the JSON of ovs-vsctl list Bridge. A name may contain any character.
func bridgeNames(frame frame) ([]string, error) {
	if frame.code != 0 {
		return nil, fmt.Errorf("%w: Open vSwitch's database does not answer: %s", collect.ErrNothing, frame.failure())
	}
	var listed struct{ Data [][]string }
	text, err := os.ReadFile(frame.Spooled)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("the list of bridges: %w", err)
	}
	names := slices.Concat(listed.Data...) // a row has one column
	slices.Sort(names)
	return names, nil
}

// database adds a backup to the node. A failed one is lost.
func (s *nodeSource) database(target Target, frame frame, kind workdir.Kind) {
	origin := target.String() + ": ovsdb-client backup " + kind.Schema()
	if frame.code != 0 {
		s.lostDatabase(kind, origin+": "+frame.failure())
		return
	}
	s.node.Databases = append(s.node.Databases, recording.Database{File: frame.File, Origin: origin, Ran: frame.ran})
}

func (s *nodeSource) lostDatabase(kind workdir.Kind, text string) {
	s.node.Lost = append(s.node.Lost, text)
	s.node.LostDatabases[kind] = append(s.node.LostDatabases[kind], text)
}

// outputs adds the outputs of recorded commands to the node; bridge is "" for
// commands that concern the whole node. A command that failed in every OpenFlow
// version is lost, unless the node does not support it.
func (s *nodeSource) outputs(frames []frame, bridge string) { s.outputsOf(s.target, frames, bridge) }

// outputsOf works like outputs for the frames of a container.
func (s *nodeSource) outputsOf(target Target, frames []frame, bridge string) {
	failed := map[recording.Name][]frame{}
	for _, frame := range frames {
		command, version, known := frame.command()
		line := strings.TrimSuffix(command.WithVersion(version)+" "+bridge, " ")
		switch {
		case strings.HasPrefix(frame.name, logFrame):
			s.logFile(target, frame)
		case !known:
		case frame.code != 0:
			failed[command.Name] = append(failed[command.Name], frame)
		default:
			s.node.All = append(s.node.All, recording.Output{File: frame.File, Command: command.Name, Bridge: bridge, OpenFlow: version, Origin: target.String() + ": " + line})
			if message := frame.firstError(); message != "" {
				s.node.Remarks = append(s.node.Remarks, line+" also printed an error: "+message)
			}
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		command, _ := recording.Find(name)
		if tool, _, _ := strings.Cut(command.Line, " "); failed[name][0].lacksTool() {
			missing = append(missing, tool)
		} else if len(s.node.Outputs(name, bridge)) == 0 {
			s.lost(target, name, failed[name], bridge)
		}
	}
	if missing = slices.Compact(missing); len(missing) > 0 {
		s.node.Remarks = append(s.node.Remarks, fmt.Sprintf("%s: the container lacks %s: what only they tell about the kernel is missing", target, strings.Join(missing, ", ")))
	}
}

// lost adds a failed command to the node's losses. A command that the node does not
// support is not a loss, except for flows, which every bridge has.
func (s *nodeSource) lost(target Target, name recording.Name, failed []frame, bridge string) {
	i := slices.IndexFunc(failed, func(frame frame) bool { return !frame.unsupported() })
	if i < 0 && name != recording.Flows {
		return
	}
	frame := failed[max(i, 0)]
	command, version, _ := frame.command()
	line := strings.TrimSuffix(command.WithVersion(version)+" "+bridge, " ")
	text := target.String() + ": " + line + ": " + frame.failure()
	if command.Host {
		s.node.Remarks = append(s.node.Remarks, text) // no replica needs it
		return
	}
	s.node.Lost = append(s.node.Lost, text)
}

// command returns the recorded command of a frame, and its OpenFlow version, from
// the frame's name: "bfd.show", "dump-flows OpenFlow15". known is false for frames
// whose output is not recorded.
func (f frame) command() (command recording.Command, version openflow.Version, known bool) {
	name, value, _ := strings.Cut(f.name, " ")
	command, known = recording.Find(recording.Name(name))
	return command, openflow.ParseVersion(value), known
}

// failure describes how a command failed.
func (f frame) failure() string {
	return strings.TrimSuffix(fmt.Sprintf("exit code %d: %s", f.code, f.firstError()), ": ")
}

// firstError returns the first line of stderr that is neither a log message nor the
// last line of ovs-appctl ("server returned an error"); else the last log message. Two messages are no
// errors: conntrack prints the number of its entries, and sysctl names the settings that it may not read.
func (f frame) firstError() string {
	logged := ""
	for line := range strings.Lines(f.stderr) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasSuffix(line, "server returned an error"):
		case strings.HasSuffix(line, "flow entries have been shown."), strings.HasPrefix(line, "sysctl: permission denied on key"), strings.HasPrefix(line, "sysctl: reading key"):
		case strings.Contains(line, "|WARN|") || strings.Contains(line, "|ERR|"):
			logged = line
		default:
			return line
		}
	}
	return logged
}

// noConnection reports whether a command failed because its daemon did not answer.
func (f frame) noConnection() bool {
	messages := []string{"failed to connect", "cannot connect", "database connection failed", "Connection refused", "is not a bridge or a socket", "No such file or directory"}
	return slices.ContainsFunc(messages, func(message string) bool { return strings.Contains(f.stderr, message) })
}

// lacksTool reports whether a command failed because the container lacks a program that does not belong to
// OVS or OVN.
func (f frame) lacksTool() bool {
	const notFound = 127 // sh(1)
	command, _, known := f.command()
	return known && f.code == notFound && !strings.HasPrefix(command.Line, "ov")
}

// unsupported reports whether a command failed because this version of OVS, the
// OpenFlow version, the bridge or the datapath does not support it.
func (f frame) unsupported() bool {
	messages := []string{
		"is not a valid command", "unknown command", "unknown table", // an older OVS
		"version negotiation failed", "none of the usable flow formats", "OFPBRC_BAD_TYPE", "OFPBRC_BAD_STAT", // OpenFlow
		"multicast snooping is disabled", "No such RSTP object", "no such stp object", // bridges
		"not a clustered database", "database is not clustered", "is not a clustered", // servers of databases
		"Operation not supported", "retrieving offload statistics", // datapaths
	}
	return slices.ContainsFunc(messages, func(message string) bool { return strings.Contains(f.stderr, message) })
}
