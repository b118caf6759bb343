package ovntests

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/answer/trace/follow"
	"ovs-offline/answer/trace/frame"
	"ovs-offline/answer/trace/host"
	"ovs-offline/pkg/openflow/flow"
	"ovs-offline/workdir"
)

// Class is how a trace compares with what came out.
type Class string

// The classes. A wrong trace is one that says without doubt what did not happen.
const (
	Right        Class = "right"
	Undetermined Class = "undetermined"
	Failed       Class = "error"
	Wrong        Class = "wrong"
	NotAsked     Class = "not asked"
)

// Verdict is what a trace of a packet says, compared with what came out.
type Verdict struct {
	Class Class
	Why   string
}

// Asker asks about saved packets.
type Asker struct {
	Program string // the path of ovs-offline
	Work    string // a folder for workdirs, below a short path: it holds sockets
}

// For returns an asker with a folder of its own for a number.
func (a Asker) For(number int) Asker {
	return Asker{a.Program, filepath.Join(a.Work, strconv.Itoa(number))}
}

// Ask replays the nodes of a saved packet and compares what its trace says.
func (a Asker) Ask(ctx context.Context, folder string) (verdict Verdict, err error) {
	packet, err := readPacket(folder)
	if err != nil {
		return Verdict{}, err
	}
	raw, err := hex.DecodeString(packet.Bytes)
	if err != nil {
		return Verdict{NotAsked, "the test gives a flow, not a frame"}, nil
	}
	in, err := frame.Parse(raw)
	if err != nil {
		return Verdict{NotAsked, err.Error()}, nil
	}
	if !exists(filepath.Join(folder, "nodes", packet.Node)) {
		return Verdict{NotAsked, packet.Node + " is no chassis"}, nil
	}
	defer func() { err = errors.Join(err, a.run(context.WithoutCancel(ctx), "stop", "--purge")) }()
	hosts, err := a.start(ctx, folder)
	if err != nil {
		return Verdict{Failed, err.Error()}, nil
	}
	defer func() {
		for _, host := range hosts {
			host.Close()
		}
	}()
	start := follow.Start{Node: packet.Node, InPort: packet.Port, Packet: in.Packet, Size: in.Size, ID: in.ID}
	if in.Quoted != nil {
		start.Quoted, start.QuotedID = &in.Quoted.Packet, in.Quoted.ID
	}
	hop, _, err := follow.New(hosts, follow.Options{}).Packet(ctx, start)
	if err != nil {
		return Verdict{Failed, err.Error()}, nil
	}
	return judge(packet, in, hop), nil
}

func readPacket(folder string) (packet Packet, err error) {
	text, err := os.ReadFile(filepath.Join(folder, PacketFile))
	if err != nil {
		return packet, err
	}
	return packet, json.Unmarshal(text, &packet)
}

func (a Asker) run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, a.Program, append([]string{"-w", a.Work}, args...)...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 { // what was lost is in the report
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, lastLine(out))
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// collectNodes collects the nodes of a saved packet, and returns their names.
func (a Asker) collectNodes(ctx context.Context, folder string) (names []string, err error) {
	names, err = Sandboxes(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		paths := []string{filepath.Join(folder, "nodes", name)}
		for _, database := range []string{"ovn-nb.db", "ovn-sb.db"} {
			if path := filepath.Join(folder, database); exists(path) {
				paths = append(paths, path)
			}
		}
		one := Asker{a.Program, filepath.Join(a.Work, name)}
		if err := one.run(ctx, append([]string{"collect"}, paths...)...); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// start collects and starts the nodes, and opens them.
func (a Asker) start(ctx context.Context, folder string) (hosts []*host.Host, err error) {
	names, err := a.collectNodes(ctx, folder)
	if err != nil {
		return nil, err
	}
	if err := a.run(ctx, "start"); err != nil {
		return nil, err
	}
	for _, name := range names {
		wd, err := workdir.Find(filepath.Join(a.Work, name))
		if err != nil {
			return hosts, err
		}
		opened, err := host.Open(ctx, name, wd)
		if err != nil {
			return hosts, err
		}
		opened.Conntrack.Userspace = true // as the datapath of the tests is
		hosts = append(hosts, opened)
	}
	return hosts, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// place is a packet at an interface.
type place struct {
	node, port string
	packet     flow.Packet
}

func (p place) String() string { return p.node + " " + p.port + " " + p.packet.String() }

// isOnBridge reports whether the interface is the local port of one of the bridges. A bridge is written
// as in follow.Branch.MayReach: "br-ex of node-1".
func (p place) isOnBridge(bridges []string) bool {
	return slices.Contains(bridges, p.port+" of "+p.node)
}

func (p place) in(list []place) bool {
	return slices.ContainsFunc(list, func(o place) bool {
		return o.node == p.node && o.port == p.port && o.packet.Headers().SameHeaders(p.packet.Headers())
	})
}

// missing returns the places of a list that are not in another.
func missing(list, others []place) []place {
	return slices.DeleteFunc(slices.Clone(list), func(p place) bool { return p.in(others) })
}

// judge compares the ends of a trace with what came out.
func judge(packet Packet, in frame.Frame, hop *follow.Hop) Verdict {
	var own, all []place
	for _, output := range packet.Outputs {
		raw, err := hex.DecodeString(output.Bytes)
		if err != nil {
			return Verdict{Failed, err.Error()}
		}
		out, err := frame.Parse(raw)
		if err != nil {
			return Verdict{NotAsked, err.Error()}
		}
		all = append(all, place{output.Node, output.Port, out.Packet})
		if isSame(in.Packet, out.Packet) {
			own = append(own, all[len(all)-1])
		}
	}
	var predicted []place
	var doubts, ends, mayReach []string
	answered := false
	for at, branch := range hop.Ends() {
		ends = append(ends, fmt.Sprintf("%s on %s: %s", branch.Kind, at.Node, branch.Why))
		doubts = append(doubts, branch.Uncertain...)
		mayReach = append(mayReach, branch.MayReach...)
		switch branch.Kind {
		case follow.Delivered:
			if slices.Contains(packet.Watched, at.Node+" "+branch.Port.Name) {
				predicted = append(predicted, place{at.Node, branch.Port.Name, branch.Packet})
			}
		case follow.Generated:
			answered = true
		case follow.Undetermined, follow.Remote:
			doubts = append(doubts, branch.Why)
		}
	}
	lost, extra := missing(own, predicted), missing(predicted, all)
	switch {
	case len(lost) == 0 && len(extra) == 0, answered && len(predicted) == 0:
		return Verdict{Right, strings.Join(ends, " | ")}
	case len(extra) == 0 && !slices.ContainsFunc(lost, func(p place) bool { return !p.isOnBridge(mayReach) }):
		return Verdict{Undetermined, "it is not recorded which wires these bridges are on: " + strings.Join(mayReach, ", ")}
	case len(doubts) > 0:
		return Verdict{Undetermined, strings.Join(doubts, "; ")}
	}
	return Verdict{Wrong, fmt.Sprintf("came out and is not in the trace: %v; in the trace and did not come out: %v; the trace: %s", lost, extra, strings.Join(ends, " | "))}
}

// isTunneled reports whether a packet carries another in Geneve or VXLAN: the trace follows that one.
func isTunneled(p flow.Packet) bool {
	return slices.Contains([]string{"6081", "4789"}, p.Get("tp_dst"))
}

// isSame reports whether a packet that came out may be the one that went in, changed on its way.
// Announcements, answers, errors that quote it and the tunnels that carry it are not.
func isSame(in, out flow.Packet) bool {
	inProtocol, _ := in.Protocol()
	outProtocol, _ := out.Protocol()
	answers := out.Get("dl_dst") == in.Get("dl_src")
	if answers || in.EtherType() != out.EtherType() || inProtocol != outProtocol || isTunneled(out) {
		return false
	}
	for _, field := range in.Fields() {
		switch field.Name {
		case "arp_op", "icmp_type", "icmpv6_type", "tcp_flags", "arp_spa", "arp_tha":
			if out.Get(field.Name) != field.Value {
				return false
			}
		}
	}
	return true
}
