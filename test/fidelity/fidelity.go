// Package fidelity measures how alike a replica and the live node are from which
// it was made: it replays a capture, runs the packets whose live traces were
// recorded, and compares. Tests and scripts/fidelity stand on it.
package fidelity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/command"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/trace"
)

// Node is a running replica.
type Node struct {
	Workdir *workdir.Dir
	Report  *report.Report
	runtime runtime.Runtime
}

// Replay collects a sos report into dir and starts a replica of it. End it with Close.
func Replay(ctx context.Context, report, dir string, opts replica.Options) (*Node, error) {
	wd, err := workdir.Lock(dir)
	if err != nil {
		return nil, err
	}
	return ReplayIn(ctx, report, wd, process.New(process.Options{}), opts)
}

// ReplayIn is Replay in a runtime and a workdir that is locked; Close unlocks it.
func ReplayIn(ctx context.Context, report string, wd *workdir.Dir, rt runtime.Runtime, opts replica.Options) (*Node, error) {
	n := &Node{Workdir: wd, runtime: rt}
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

// Adopt starts a replica of what the workdir at dir holds, whoever collected
// it. End it with Close.
func Adopt(ctx context.Context, dir string, opts replica.Options) (*Node, error) {
	wd, err := workdir.Lock(dir)
	if err != nil {
		return nil, err
	}
	n := &Node{Workdir: wd, runtime: process.New(process.Options{})}
	if err := n.Restart(ctx, opts); err != nil {
		wd.Unlock()
		return nil, err
	}
	return n, nil
}

// Restart starts the replica again, with other options.
func (n *Node) Restart(ctx context.Context, opts replica.Options) error {
	report, err := replica.Start(ctx, n.Workdir, n.runtime, opts)
	if err == nil {
		n.Report = report
	}
	return err
}

// Close ends the replica.
func (n *Node) Close(ctx context.Context) error {
	defer n.Workdir.Unlock()
	return replica.Stop(ctx, n.Workdir, n.runtime)
}

// Tool runs one of the replica's wrappers, as a person's script would, and
// returns what it printed, errors included: live traces were recorded so, too.
func (n *Node) Tool(ctx context.Context, name string, args ...string) (string, error) {
	out, err := command.Run(ctx, command.Command{Argv: append([]string{filepath.Join(n.Workdir.Bin(), name)}, args...)})
	var failed *command.Error
	var exit *exec.ExitError
	if errors.As(err, &failed) && errors.As(err, &exit) {
		return failed.Stderr + failed.Stdout, nil
	}
	return string(out), err
}

// Figures sum up comparisons.
type Figures struct {
	Packets, Whole, Results, Actions int // packets, and those equal in that respect
	Balanced                         int // packets whose results differ only in the member that a balancing bond chose
	Refused                          int // packets that the live node did not trace: their text is an error
	Equal, Lines                     int // lines of the live traces, and those equal
	Differences                      []string
}

// Percent is n of all as a percentage.
func Percent(n, all int) float64 { return 100 * float64(n) / float64(max(all, 1)) }

// String is a line of the table that Header begins.
func (f Figures) String() string {
	return fmt.Sprintf("%7d  %7d  %8d  %9.1f %%  %10.1f %%  %14.1f %%  %7.2f %%", f.Packets, f.Refused, f.Balanced, Percent(f.Whole, f.Packets), Percent(f.Results, f.Packets), Percent(f.Actions, f.Packets), Percent(f.Equal, f.Lines))
}

// Header names the columns of String.
const Header = "packets  refused  balanced  whole text  result lines  datapath actions   all lines"

// Compare runs the packets listed in a file on the replica, and compares what
// they answer with the live traces, files in packet order in the folder live.
func (n *Node) Compare(ctx context.Context, packets, live string) (Figures, error) {
	var f Figures
	list, err := readPackets(packets)
	if err != nil {
		return f, err
	}
	names, err := filepath.Glob(filepath.Join(live, "[0-9]*"))
	if err != nil || len(names) != len(list) || len(list) == 0 {
		return f, fmt.Errorf("%d packets in %s, %d traces in %s (%w)", len(list), packets, len(names), live, err)
	}
	asOne, err := n.balancing()
	if err != nil {
		return f, err
	}
	for i, p := range list {
		want, err := os.ReadFile(names[i])
		if err != nil {
			return f, err
		}
		have, err := n.Tool(ctx, "ovs-appctl", p.Args()...)
		if err != nil {
			return f, err
		}
		c := trace.Compare(string(want), have)
		if !c.Results && trace.Compare(asOne(string(want)), asOne(have)).Results {
			f.Balanced++
		}
		f.add(c, filepath.Base(names[i])+": "+p.Bridge+" "+p.Flow+" "+strings.Join(p.Options, " "))
	}
	return f, nil
}

// balancing returns a function that gives the members of each balance-slb or
// balance-tcp bond the same name. The member that such a bond chooses for a
// hash it has not seen depends on all the hashes it saw before, which no
// capture tells.
func (n *Node) balancing() (func(string) string, error) {
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

// Recording is a live node's capture and what it answered.
type Recording struct {
	Name, Report, Packets, Live string
}

// Capture finds a recording in a folder of captures; its traces are unpacked
// into dir.
func Capture(ctx context.Context, folder, dir string) (Recording, error) {
	r := Recording{Name: filepath.Base(folder), Packets: filepath.Join(folder, "packets"), Live: filepath.Join(dir, "live")}
	var err error
	if r.Report, err = only(filepath.Join(folder, "sosreport-*.tar.xz")); err != nil {
		return r, err
	}
	_, err = command.Run(ctx, command.Command{Argv: []string{"tar", "-C", dir, "-xf", filepath.Join(folder, "live-traces.tar.xz")}})
	return r, err
}

// Lab brings a topology of the lab up, records it into dir and takes it down.
func Lab(ctx context.Context, lab, topology, dir string) (Recording, error) {
	if _, err := command.Run(ctx, command.Command{Argv: []string{lab, "run", topology, dir}}); err != nil {
		return Recording{}, fmt.Errorf("lab run %s: %w", topology, err)
	}
	return Recorded(dir)
}

// Recorded finds the recording that the lab wrote into dir.
func Recorded(dir string) (Recording, error) {
	r := Recording{Name: filepath.Base(dir), Packets: filepath.Join(dir, "packets"), Live: filepath.Join(dir, "live")}
	var err error
	r.Report, err = only(filepath.Join(dir, "sosreport-*.tar.xz"))
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
