// Package drift finds out whether the integration bridge of a node has what it should have:
// it lets the node's own release of ovn-controller compute the flows, groups and meters
// from the collected databases, and compares these with the recorded ones by content.
package drift

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"ovs-offline/answer/flowdiff"
	"ovs-offline/internal/versions"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/replica"
	"ovs-offline/replica/release"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/scratch"
	"ovs-offline/workdir"
)

// Options are the options of Check. Its functions may be nil.
type Options struct {
	Runtime  string         // one of choose.Names
	Runtimes runtime.Finder // where programs are looked for
	Northd   bool           // compare the logical flows with what ovn-northd computes, too
	Meaning  time.Duration  // that may be spent on what the differences do to packets; 0 leaves that out
	Chosen   func(what string)
	Progress func(text string)
}

func (o *Options) progress(text string) {
	if o.Progress != nil {
		o.Progress(text)
	}
}

// ErrNothing is wrapped for a workdir without data.
var ErrNothing = errors.New("nothing to compare")

// Check compares the recorded state of a node with the computed one.
func Check(ctx context.Context, wd *workdir.Dir, options Options) (*Report, error) {
	report := newReport()
	manifest, err := wd.Manifest()
	if err != nil {
		return nil, err
	}
	switch {
	case len(manifest.Collections) == 0 && !wd.Used():
		return nil, fmt.Errorf("%w: %s holds nothing that was collected", ErrNothing, wd.Path())
	case wd.SwitchDatabase() == "" && manifest.Collection(workdir.OVS) != nil:
		return report.undetermined("no OVS database of this node was collected: start makes one where its tables were printed"), nil
	case wd.SwitchDatabase() == "":
		report.Verdict, report.Why = NoOVN, "no Open vSwitch of this node was collected: nothing to compare"
		return report, nil
	}
	options.progress("reading what was recorded")
	node, err := readNode(ctx, wd)
	if err != nil {
		return nil, err
	}
	switch {
	case node.unknown:
		return report.undetermined("whether this node uses OVN is not known: external_ids of the table Open_vSwitch were not recorded"), nil
	case !node.ovn:
		report.Verdict, report.Why = NoOVN, "no OVN on this node: nothing to compare"
		return report, nil
	case !exists(wd.Database(workdir.SB)):
		return report.undetermined(wd.Absence(workdir.SB) + ": what the node's flows should be is not known"), nil
	case options.Northd && !exists(wd.Database(workdir.NB)):
		return report.undetermined(wd.Absence(workdir.NB) + ": what the node's logical flows should be is not known"), nil
	case !node.flows:
		return report.undetermined("the flows of " + node.bridge + " were not collected"), nil
	case node.partial != nil:
		return report.undetermined(fmt.Sprintf("only a part of the flows of %s was collected (%s): what the node lacks is not known", node.bridge, node.partial)), nil
	}
	releases, err := release.Likely(ctx, wd)
	if err != nil {
		return nil, err
	}
	if len(releases) == 0 {
		return report.undetermined("which release of OVN the node ran is not known: neither its databases nor its packages name it"), nil
	}
	if report, err = options.checkReleases(ctx, node, releases); err != nil {
		return nil, err
	}
	return report, report.doubt(ctx, wd)
}

// doubt notes why the differences may come from the collected databases. A database that lost records
// proves neither a difference nor its absence; a database of another moment than the flows may
// differ from them on a node without faults.
func (r *Report) doubt(ctx context.Context, wd *workdir.Dir) (err error) {
	doubts, err := replica.Doubts(ctx, wd)
	if err != nil {
		return err
	}
	r.Doubts = append(doubts, r.Doubts...)
	m, err := wd.Manifest()
	if lost := m.LostDatabases(); len(lost) > 0 && r.Verdict != Undetermined {
		r.undetermined("what the flows should be is computed from a database that is not whole")
	}
	return err
}

// newReport returns a report without differences.
func newReport() *Report {
	return &Report{Verdict: None, Missing: []Difference{}, Extra: []Difference{}, Altered: []Difference{}}
}

// checkReleases compares with each release that the node may have run, until one computes the
// recorded state.
func (o *Options) checkReleases(ctx context.Context, n *recordedNode, releases []versions.Pair) (first *Report, err error) {
	for _, recorded := range releases {
		report, err := o.checkRelease(ctx, n, recorded)
		if err != nil || report.Verdict == None {
			return report, err
		}
		if first == nil {
			first = report
		}
	}
	if len(releases) == 1 || first.Verdict != Found {
		return first, nil
	}
	uncertain := newReport()
	uncertain.Bridge, uncertain.Recorded, uncertain.Running = first.Bridge, first.Recorded, first.Running
	return uncertain.undetermined(fmt.Sprintf("the databases are of OVN %s, and the node's package is of OVN %s: which of them its ovn-controller was is not known, and OVN %s does not compute what was recorded",
		releases[0].OVN, releases[1].OVN, first.Running.OVN)), nil
}

func (o *Options) checkRelease(ctx context.Context, node *recordedNode, recorded versions.Pair) (*Report, error) {
	report := newReport()
	report.Bridge, report.Recorded = node.bridge, recorded
	dir, err := scratch.Lock(node.wd)
	if err != nil {
		return nil, err
	}
	defer scratch.Release(dir)
	rt, running, err := release.Programs(ctx, node.wd, dir, recorded, release.Options{Runtime: o.Runtime, Runtimes: o.Runtimes, Chosen: o.Chosen})
	if errors.Is(err, release.ErrMissing) {
		return report.undetermined(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	report.Running = running
	report.Remarks = append(report.Remarks, versionRemarks(recorded, running)...)
	comparing := comparison{node: node, options: o, report: report, dir: dir, runtime: rt}
	if err := comparing.open(ctx); err != nil {
		return nil, err
	}
	defer comparing.close()
	if err := comparing.flows(ctx); err != nil {
		return nil, err
	}
	if err := comparing.explain(ctx); err != nil {
		return nil, err
	}
	if o.Northd && report.Verdict != Undetermined {
		if err := comparing.logicalFlows(ctx); err != nil {
			return nil, err
		}
	}
	return report, nil
}

// versionRemarks returns remarks on the programs whose versions are not the recorded ones.
func versionRemarks(recorded, running versions.Pair) (remarks []string) {
	if versions.Compare(recorded.OVN, running.OVN) != 0 {
		remarks = append(remarks, fmt.Sprintf("the node ran OVN %s, and OVN %s computed: what changed between them may be a difference", recorded.OVN, running.OVN))
	}
	if recorded.OVS != "" && versions.Minor(recorded.OVS) != versions.Minor(running.OVS) {
		remarks = append(remarks, fmt.Sprintf("the node ran Open vSwitch %s, and Open vSwitch %s computed: it may print the same flow differently", recorded.OVS, running.OVS))
	}
	return remarks
}

// comparison compares a node with what one release computes.
type comparison struct {
	node    *recordedNode
	options *Options
	report  *Report
	dir     *workdir.Dir // of the Scratch
	runtime runtime.Runtime
	nb, sb  *file.Index // nb is nil if it was not collected

	routerPorts func() (map[string]routerPort, error) // of sb, by the UUIDs of their rows

	recordedNames, computedNames *flowdiff.Names
}

func (c *comparison) open(ctx context.Context) (err error) {
	wd := c.node.wd
	if c.sb, err = wd.Index(ctx, wd.Database(workdir.SB)); err != nil {
		return err
	}
	c.routerPorts = sync.OnceValues(func() (map[string]routerPort, error) { return readRouterPorts(c.sb) })
	if exists(wd.Database(workdir.NB)) {
		if c.nb, err = wd.Index(ctx, wd.Database(workdir.NB)); err != nil {
			c.sb.Close()
		}
	}
	return err
}

func (c *comparison) close() {
	c.sb.Close()
	if c.nb != nil {
		c.nb.Close()
	}
}

// run starts a Scratch, waits for it, and ends it after use.
func (c *comparison) run(ctx context.Context, o scratch.Options, use func(*scratch.Scratch) error) (err error) {
	o.Dir, o.Runtime, o.SB = c.dir, c.runtime, c.node.wd.Database(workdir.SB)
	running, err := scratch.Start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, running.Stop(context.WithoutCancel(ctx))) }()
	if err := running.Wait(ctx); err != nil {
		return err
	}
	c.report.Remarks = append(c.report.Remarks, running.Remarks()...)
	return use(running)
}

// flows compares the integration bridge.
func (c *comparison) flows(ctx context.Context) error {
	n := c.node
	c.options.progress("ovn-controller computes the flows")
	err := c.run(ctx, scratch.Options{Nodes: []scratch.Recorded{{Name: nodeName, Conf: n.wd.SwitchDatabase(), Lists: n.wd.Recorded("")}}},
		func(running *scratch.Scratch) error {
			computed, err := c.computed(ctx, running)
			if err != nil {
				return err
			}
			c.remarkUncollected()
			c.options.progress("comparing")
			return c.compare(ctx, running, computed)
		})
	if errors.Is(err, scratch.ErrNoChassis) || errors.Is(err, scratch.ErrNotReady) {
		c.report.undetermined(err.Error())
		return nil
	}
	return err
}

// nodeName is the name of the node in its Scratch.
const nodeName = "node"

// computed returns what ovn-controller has installed, in the OpenFlow versions of the recorded dumps.
func (c *comparison) computed(ctx context.Context, running *scratch.Scratch) (flowdiff.State, error) {
	texts := map[openflow.Version]scratch.Dump{}
	part := func(dump workdir.Dump, text func(scratch.Dump) string) (*strings.Reader, error) {
		version := c.node.dumpVersion(dump)
		if _, known := texts[version]; !known {
			var err error
			if texts[version], err = running.Dump(ctx, nodeName, version); err != nil {
				return nil, err
			}
		}
		return strings.NewReader(text(texts[version])), nil
	}
	flows, err := part(workdir.Flows, func(d scratch.Dump) string { return d.Flows })
	if err != nil {
		return flowdiff.State{}, err
	}
	groups, err := part(workdir.Groups, func(d scratch.Dump) string { return d.Groups })
	if err != nil {
		return flowdiff.State{}, err
	}
	meters, err := part(workdir.Meters, func(d scratch.Dump) string { return d.Meters })
	if err != nil {
		return flowdiff.State{}, err
	}
	state, lost := flowdiff.Read(flows, groups, meters)
	state.OfFlows, state.OfGroups = c.node.dumpVersion(workdir.Flows), c.node.dumpVersion(workdir.Groups)
	c.withoutUncollected(&state)
	if len(lost) > 0 {
		return state, fmt.Errorf("the computed flows can't be read: %s", lost[0])
	}
	return state, nil
}

// dumpVersion returns the OpenFlow version of a recorded dump, or ovs-save's default.
func (n *recordedNode) dumpVersion(dump workdir.Dump) openflow.Version {
	if v := openflow.ParseVersion(n.manifest.OpenFlow(n.wd.Relative(n.wd.DumpFile(n.bridge, dump)))); v != 0 {
		return v
	}
	return openflow.OpenFlow14
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
