// Package fidelity measures how closely a replica behaves like the live node that it
// was made from. It replays a capture, traces the packets whose live traces were
// recorded, and compares the traces. Tests and scripts/fidelity use it.
package fidelity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/command"
	"ovs-offline/internal/portmap"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/oracle/trace"
	"ovs-offline/workdir"
)

// Replica is a running replica.
type Replica struct {
	Workdir *workdir.Dir
	Report  *report.Report
	runtime runtime.Runtime
}

// Replay collects an sos report into dir and starts a replica of it, which Close ends.
func Replay(ctx context.Context, report, dir string, opts replica.Options) (*Replica, error) {
	wd, err := workdir.Lock(dir)
	if err != nil {
		return nil, err
	}
	return ReplayIn(ctx, report, wd, process.New(process.Options{}), opts)
}

// ReplayIn works like Replay, with a runtime and a locked workdir, which Close unlocks.
func ReplayIn(ctx context.Context, report string, wd *workdir.Dir, rt runtime.Runtime, opts replica.Options) (*Replica, error) {
	n := &Replica{Workdir: wd, runtime: rt}
	var err error
	if _, _, err = collect.Collect(ctx, wd, collect.SosReport{Path: report}, collect.Options{}); err == nil {
		n.Report, err = replica.Start(ctx, wd, n.runtime, opts)
	}
	if err != nil {
		wd.Unlock()
		return nil, err
	}
	return n, nil
}

// Adopt starts a replica of the collected data in the workdir at dir. Close ends it.
func Adopt(ctx context.Context, dir string, opts replica.Options) (*Replica, error) {
	return AdoptIn(ctx, "", dir, opts)
}

// AdoptIn works like Adopt, with the programs of a root file system; "" for this host's.
func AdoptIn(ctx context.Context, root, dir string, opts replica.Options) (*Replica, error) {
	wd, err := workdir.Lock(dir)
	if err != nil {
		return nil, err
	}
	var options process.Options
	if root != "" {
		options = process.Options{Root: root, Folders: wd.RuntimeFolders()}
	}
	n := &Replica{Workdir: wd, runtime: process.New(options)}
	if err := n.Restart(ctx, opts); err != nil {
		wd.Unlock()
		return nil, err
	}
	return n, nil
}

// Running returns the replica that runs in a workdir. Whoever started it ends it.
func Running(wd *workdir.Dir) *Replica {
	return &Replica{Workdir: wd, runtime: process.New(process.Options{})}
}

// Restart starts the replica again, with other options.
func (n *Replica) Restart(ctx context.Context, opts replica.Options) error {
	report, err := replica.Start(ctx, n.Workdir, n.runtime, opts)
	if err == nil {
		n.Report = report
	}
	return err
}

// Close ends the replica.
func (n *Replica) Close(ctx context.Context) error {
	defer n.Workdir.Unlock()
	return replica.Stop(ctx, n.Workdir, n.runtime)
}

// Tool runs one of the replica's wrappers and returns its output. If the tool fails,
// the output includes standard error, as in the live traces.
func (n *Replica) Tool(ctx context.Context, name string, args ...string) (string, error) {
	out, err := command.Run(ctx, command.Command{Argv: append([]string{filepath.Join(n.Workdir.Bin(), name)}, args...)})
	var failed *command.Error
	var exit *exec.ExitError
	if errors.As(err, &failed) && errors.As(err, &exit) {
		return failed.Stderr + failed.Stdout, nil
	}
	return string(out), err
}

// Program works like Tool, with the program of the replica's release and not its wrapper,
// which needs ovs-offline for a root file system. It has no default for a database.
func (n *Replica) Program(ctx context.Context, name string, args ...string) (string, error) {
	out, err := n.runtime.Tool(ctx, n.Workdir.VarRun(workdir.OVS), nil, append([]string{name}, args...)...)
	var failed *command.Error
	if errors.As(err, &failed) {
		return failed.Stderr + failed.Stdout, nil
	}
	return string(out), err
}

// Figures holds the sums of comparisons.
type Figures struct {
	Packets, Whole, Results, Actions int // number of packets, and number of packets that are equal in this respect
	Balanced                         int // packets whose results differ only in the member that a balancing bond chose
	Refused                          int // packets whose live trace is an error message
	Equal, Lines                     int // number of equal lines, and of all lines of the live traces
	Differences                      []string
}

// Percent returns n as a percentage of all.
func Percent(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }

// String returns a line of the table whose heading is Header.
func (f Figures) String() string {
	return fmt.Sprintf("%7d  %7d  %8d  %9.1f %%  %10.1f %%  %14.1f %%  %7.2f %%", f.Packets, f.Refused, f.Balanced, Percent(f.Whole, f.Packets), Percent(f.Results, f.Packets), Percent(f.Actions, f.Packets), Percent(f.Equal, f.Lines))
}

// Header names the columns of String.
const Header = "packets  refused  balanced  whole text  result lines  datapath actions   all lines"

// Compare traces the packets of a file on the replica, and compares the traces with
// the live ones: files in the folder live, in the order of the packets.
func (n *Replica) Compare(ctx context.Context, packets, live string) (Figures, error) {
	return n.CompareRecording(ctx, Recording{Packets: packets, Live: live})
}

// CompareRecording works like Compare, also for a node that could not print the names
// of ports.
func (n *Replica) CompareRecording(ctx context.Context, r Recording) (Figures, error) {
	var f Figures
	list, err := readPackets(r.Packets)
	if err != nil {
		return f, err
	}
	names, err := filepath.Glob(filepath.Join(r.Live, "[0-9]*"))
	if err != nil || len(names) != len(list) || len(list) == 0 {
		return f, fmt.Errorf("%d packets in %s, %d traces in %s (%w)", len(list), r.Packets, len(names), r.Live, err)
	}
	unify, err := n.balancing()
	if err != nil {
		return f, err
	}
	liveNames, replicaNames := portmap.Ports{}, portmap.Ports{}
	if r.Numbers {
		if liveNames, replicaNames, err = n.portNames(ctx); err != nil {
			return f, err
		}
	}
	daemon, err := unixctl.Connect(ctx, n.Workdir.VarRun(workdir.OVS), "ovs-vswitchd")
	if err != nil {
		return f, err
	}
	defer daemon.Close()
	for i, p := range list {
		raw, err := os.ReadFile(names[i])
		if err != nil {
			return f, err
		}
		args := p.Args()
		if r.Numbers {
			args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--names" })
		}
		have, err := n.traced(ctx, daemon, args, i == 0)
		if err != nil {
			return f, err
		}
		want := translate(liveNames, string(raw))
		have = translate(replicaNames, have)
		c := trace.Compare(want, have)
		if !c.Results && trace.Compare(unify(want), unify(have)).Results {
			f.Balanced++
		}
		f.add(c, filepath.Base(names[i])+": "+p.Bridge+" "+p.Flow+" "+strings.Join(p.Options, " "))
	}
	return f, nil
}

// traced returns what ovs-appctl prints for a command. It asks the daemon itself, which takes a tenth of the processor
// time, and ovs-appctl where the daemon refuses the command, or to compare the two.
func (n *Replica) traced(ctx context.Context, daemon *unixctl.Conn, args []string, both bool) (string, error) {
	asked, err := daemon.Run(ctx, args...)
	if _, refused := unixctl.Refused(err); err != nil && !refused {
		return "", err
	}
	if err == nil && !both {
		return string(asked), nil
	}
	printed, toolErr := n.Tool(ctx, "ovs-appctl", args...)
	if toolErr == nil && err == nil && !trace.Compare(printed, string(asked)).Whole {
		return "", fmt.Errorf("ovs-appctl %q prints\n%s\nand its daemon answers\n%s", args, printed, asked)
	}
	return printed, toolErr
}

// portNames returns the names of the datapath ports of the node and of the replica by
// their numbers.
func (n *Replica) portNames(ctx context.Context) (live, have portmap.Ports, err error) {
	recorded, err := os.ReadFile(n.Workdir.Recorded(workdir.RecordedDatapathShow))
	if err != nil {
		return nil, nil, err
	}
	shown, err := n.Tool(ctx, "ovs-appctl", "dpctl/show")
	live, have = portmap.Ports{}, portmap.Ports{}
	for p := range appctl.DatapathPorts(string(recorded)) {
		live[p.Number] = p.Name
	}
	for p := range appctl.DatapathPorts(shown) {
		have[p.Number] = p.Name
	}
	return live, have, err
}

// translate replaces the numbers of datapath ports in a trace.
func translate(names portmap.Ports, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		b.WriteString(names.Translate(bare) + line[len(bare):])
	}
	return b.String()
}

// balancing returns a function that gives all members of balance-slb and balance-tcp
// bonds the same name in a trace. Which member such a bond chooses for a new hash
// depends on all earlier hashes, and no capture holds those.
func (n *Replica) balancing() (func(string) string, error) {
	raw, err := os.ReadFile(n.Workdir.Recorded(workdir.RecordedBond))
	if err != nil {
		return func(text string) string { return text }, nil
	}
	var members []string
	balances := false
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if mode, ok := strings.CutPrefix(line, "bond_mode: "); ok {
			balances = strings.HasPrefix(mode, "balance-")
		}
		if name, ok := strings.CutPrefix(line, "member "); ok && balances {
			members = append(members, regexp.QuoteMeta(name[:strings.LastIndexByte(name, ':')]))
		}
	}
	if len(members) == 0 {
		return func(text string) string { return text }, nil
	}
	pattern, err := regexp.Compile(`\b(` + strings.Join(members, "|") + `)\b`)
	if err != nil {
		return nil, err
	}
	return func(text string) string { return pattern.ReplaceAllString(text, "member") }, nil
}

func (f *Figures) add(c trace.Comparison, packet string) {
	f.Packets++
	if c.Refused {
		f.Refused++
	}
	f.Equal += c.Equal
	f.Lines += c.Lines
	if c.Whole {
		f.Whole++
	} else {
		f.Differences = append(f.Differences, packet+"\n"+c.First)
	}
	if c.Results {
		f.Results++
	}
	if c.Actions {
		f.Actions++
	}
}

func readPackets(path string) ([]trace.Packet, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return trace.ReadPackets(f)
}

// Recording is the capture of a live node and its traces.
type Recording struct {
	Name, Report, Packets, Live string
	OVS, OVN                    string // the versions of a node of the lab, "" if it has none
	Numbers                     bool   // the traces show numbers of ports: the node could not print names
}

// Capture returns the recording in a folder of testdata. It unpacks the traces into dir.
func Capture(ctx context.Context, folder, dir string) (Recording, error) {
	r := Recording{Name: filepath.Base(folder), Packets: filepath.Join(folder, "packets"), Live: filepath.Join(dir, "live")}
	var err error
	if r.Report, err = only(filepath.Join(folder, "sosreport-*.tar.xz")); err != nil {
		return r, err
	}
	_, err = command.Run(ctx, command.Command{Argv: []string{"tar", "-C", dir, "-xf", filepath.Join(folder, "live-traces.tar.xz")}})
	return r, err
}

// Lab starts a topology of the lab, records it into dir and ends it.
func Lab(ctx context.Context, lab, topology, dir string) (Recording, error) {
	return LabIn(ctx, "", lab, topology, dir)
}

// LabIn works like Lab, with the programs of the root file system in the folder root; ""
// means this host's.
func LabIn(ctx context.Context, root, lab, topology, dir string) (Recording, error) {
	argv := []string{lab}
	if root != "" {
		argv = append(argv, "--root", root)
	}
	if _, err := command.Run(ctx, command.Command{Argv: append(argv, "run", topology, dir)}); err != nil {
		return Recording{}, fmt.Errorf("lab run %s: %w", topology, err)
	}
	return Recorded(dir)
}

// Recorded returns the recording that the lab wrote into dir.
func Recorded(dir string) (Recording, error) {
	r := Recording{Name: filepath.Base(dir), Packets: filepath.Join(dir, "packets"), Live: filepath.Join(dir, "live")}
	var err error
	if r.Report, err = only(filepath.Join(dir, "sosreport-*.tar.xz")); err != nil {
		return r, err
	}
	release, err := os.ReadFile(filepath.Join(dir, "release"))
	for line := range strings.Lines(string(release)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key {
		case "ovs":
			r.OVS = value
		case "ovn":
			r.OVN = value
		case "names":
			r.Numbers = value == "no"
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil // `lab run` wrote none before
	}
	return r, err
}

func only(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s matches %d files, not one", pattern, len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}
