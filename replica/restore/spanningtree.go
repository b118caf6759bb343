package restore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// Spanning trees
//
// Cause: in a replica every port of a bridge with STP or RSTP begins blocked,
// and hears no other bridge.
//
// Remedy: the BPDUs that the neighbours of the live bridge sent, put together
// from what is recorded (bpdu.go), received by the ports that had heard one
// (netdev-dummy/receive), while time/warp moves the clock second by second
// until each port is in its recorded state; then the clock stands still. A port
// that was on its way (listening, learning) gets its link last, so that it
// stops half way. This comes before flows and MACs, which a warp would age and
// a topology change flush.
//
// Sources: rstp/show and stp/show where they were collected, else ovs-vsctl
// list port and list bridge (rstp_status and status, which sos collects), else
// the STP flags of ovs-ofctl show, which tell states but no roles. Measured
// (OVS 3.1): after it rstp/show, stp/show and traces equal the live ones.

// treePort is what is known of a port in a spanning tree.
type treePort struct {
	name     string
	role     string // root, designated, alternate, backup, disabled; "" unknown
	state    string // forwarding, learning, listening, blocking, discarding, disabled
	neighbor vector
}

// hears tells whether a port keeps what it is by what a neighbour sends.
func (p treePort) hears() bool {
	return p.role == "root" || p.role == "alternate" || p.role == "backup"
}

// onItsWay tells states that last for a forward delay only.
func (p treePort) onItsWay() bool {
	return p.state == "listening" || p.state == "learning" || p.state == "discarding" && p.role == "designated"
}

// tree is a bridge with a spanning tree.
type tree struct {
	bridge *Bridge
	rapid  bool
	ports  []treePort
	times  treeTimes
	source string // of the ports' states, "" where nothing tells
}

func (t *tree) protocol() string {
	if t.rapid {
		return "rstp"
	}
	return "stp"
}

// column is where the database, and so ovs-vsctl list, has the tree's state.
func (t *tree) column() string {
	if t.rapid {
		return "rstp_status"
	}
	return "status"
}

// restoreSpanningTrees brings each port of a spanning tree into its state.
func restoreSpanningTrees(ctx context.Context, n *Node, o *report.Outcome) error {
	trees, err := n.trees()
	if err != nil || len(trees) == 0 {
		return err
	}
	if err := n.turnOn(ctx, trees); err != nil {
		return err
	}
	if err := n.holdClock(ctx); err != nil {
		o.Note(report.Failed, "the clock can't be stopped, so spanning trees don't stay as they are: %v", err)
		return ctx.Err()
	}
	for _, t := range trees {
		if t.source == "" {
			o.Note(report.Unknown, "%s: nothing that was collected tells the states of its ports in the spanning tree: all forward", t.bridge.Name)
		}
	}
	if err := n.converge(ctx, trees, o); err != nil {
		return err
	}
	for _, t := range trees {
		if err := n.judgeTree(ctx, t, o); err != nil {
			return err
		}
	}
	return n.forgetPackets(ctx, o)
}

// trees are the bridges that have a spanning tree, with what was recorded of them.
func (n *Node) trees() ([]*tree, error) {
	var list []*tree
	for _, b := range n.Bridges {
		if b.tree == "" {
			continue
		}
		t := &tree{bridge: b, rapid: b.tree == "rstp_enable", times: defaultTimes()}
		if err := n.readTree(t); err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// turnOn turns the trees on that were held back until the ports were there.
func (n *Node) turnOn(ctx context.Context, trees []*tree) error {
	var changes []ovsdb.Change
	for _, t := range trees {
		changes = append(changes, ovsdb.Update("Bridge", t.bridge.UUID, ovsdb.Columns{t.bridge.tree: true}))
	}
	return n.reconfigure(ctx, changes)
}

// readTree takes from each source what the better ones don't tell.
func (n *Node) readTree(t *tree) error {
	shown := workdir.RecordedSTP
	if t.rapid {
		shown = workdir.RecordedRSTP
	}
	text, err := n.text(n.Workdir.BridgeRecorded(t.bridge.Name, shown))
	if err != nil {
		return err
	}
	t.readShow(text)
	ports, err := n.listed(workdir.RecordedListPort, t.column())
	if err != nil {
		return err
	}
	bridges, err := n.listed(workdir.RecordedListBridge, t.column())
	if err != nil {
		return err
	}
	t.readLists(ports, pairs(bridges[t.bridge.Name]))
	if t.source != "" || t.rapid { // of RSTP the flags tell too little
		return nil
	}
	show, ok, err := n.show(t.bridge)
	if ok {
		t.readFlags(show)
	}
	return err
}

// longestWay bounds how many seconds are warped: twice the longest forward delay
// (30 s), and some for the protocol.
const longestWay = 80

// converge moves the clock until the ports are in their states: first those
// that forward, then those that were on their way, the furthest first, and with
// them those that are blocked because of them.
func (n *Node) converge(ctx context.Context, trees []*tree, o *report.Outcome) error {
	if err := n.setLinks(ctx, trees, treePort.onItsWay, "down", o); err != nil {
		return err
	}
	phases := []struct {
		rise    func(treePort) bool
		reached func(treePort) bool
		step    int // seconds: a neighbour's word lasts six at least, a forward delay four
	}{
		{nil, func(p treePort) bool { return p.state == "forwarding" }, 4},
		{func(p treePort) bool { return p.state == "learning" }, func(p treePort) bool { return p.state == "forwarding" || p.state == "learning" }, 1},
		{func(p treePort) bool { return p.onItsWay() && p.state != "learning" }, func(treePort) bool { return true }, 1},
	}
	for _, phase := range phases {
		if phase.rise != nil {
			if err := n.setLinks(ctx, trees, phase.rise, "up", o); err != nil {
				return err
			}
		}
		if err := n.passTime(ctx, trees, phase.reached, phase.step); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) setLinks(ctx context.Context, trees []*tree, which func(treePort) bool, state string, o *report.Outcome) error {
	for _, t := range trees {
		for _, p := range t.ports {
			if !which(p) {
				continue
			}
			if _, err := n.appctl(ctx, "netdev-dummy/set-admin-state", p.name, state); err != nil {
				o.Note(report.Failed, "%s: port %q can't be taken %s: %v", t.bridge.Name, p.name, state, err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// passTime lets neighbours speak and some seconds pass, one by one as RSTP
// counts them, again and again, until the ports asked for are in their states.
func (n *Node) passTime(ctx context.Context, trees []*tree, which func(treePort) bool, step int) error {
	for passed := 0; passed < longestWay; passed += step {
		if err := n.speak(ctx, trees); err != nil {
			return err
		}
		there := true
		for _, t := range trees {
			differ, err := n.treeDifferences(ctx, t, which)
			if err != nil {
				return err
			}
			there = there && len(differ) == 0
		}
		if there {
			return nil
		}
		if _, err := n.appctl(ctx, "time/warp", strconv.Itoa(1000*step), "1000"); err != nil {
			return err
		}
	}
	return nil
}

// speak makes each port that heard a neighbour hear it again.
func (n *Node) speak(ctx context.Context, trees []*tree) error {
	for _, t := range trees {
		for _, p := range t.ports {
			if !p.hears() {
				continue
			}
			if err := n.receive(ctx, p.name, t.bpdu(p.neighbor)); err != nil {
				return fmt.Errorf("%s: a neighbour's packet on %q: %w", t.bridge.Name, p.name, err)
			}
		}
	}
	return nil
}

// treeDifferences asks the replica which of the ports are not in their states.
func (n *Node) treeDifferences(ctx context.Context, t *tree, which func(treePort) bool) ([]string, error) {
	out, err := n.appctl(ctx, t.protocol()+"/show", t.bridge.Name)
	if err != nil {
		return nil, err
	}
	have := tree{bridge: t.bridge, rapid: t.rapid}
	have.readShow(string(out))
	states := map[string]treePort{}
	for _, p := range have.ports {
		states[p.name] = p
	}
	wanted := t.ports
	if t.source == "" {
		wanted = nil
		for _, p := range have.ports {
			if p.role != "disabled" {
				wanted = append(wanted, treePort{name: p.name, state: "forwarding"})
			}
		}
	}
	var list []string
	for _, p := range wanted {
		h := states[p.name]
		if which(p) && (h.state != p.state || p.role != "" && h.role != p.role) {
			list = append(list, fmt.Sprintf("port %q was %s %s, in the replica %s %s", p.name, p.role, p.state, h.role, h.state))
		}
	}
	return list, nil
}

// judgeTree says how alike the replica's tree is.
func (n *Node) judgeTree(ctx context.Context, t *tree, o *report.Outcome) error {
	var differ []string
	err := n.until(ctx, func() (done bool, err error) {
		differ, err = n.treeDifferences(ctx, t, func(treePort) bool { return true })
		return len(differ) == 0, err
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		o.Note(report.Failed, "%s: its spanning tree can't be read back: %v", t.bridge.Name, err)
		return nil
	}
	for _, d := range differ {
		o.Note(report.Failed, "%s: %s", t.bridge.Name, d)
	}
	if len(differ) == 0 && t.source != "" {
		o.Note(report.Restored, "")
	}
	if outside := t.outside(); len(outside) > 0 && t.source != "" {
		o.Note(report.Approximated, "%s: NORMAL floods to ports that have no part in a spanning tree (here %q) only if they were there before it was turned on, "+
			"or before ovs-vswitchd started; that is not recorded, and taken as so", t.bridge.Name, outside)
	}
	return nil
}

// outside are the ports that have no part in the tree.
func (t *tree) outside() []string {
	var list []string
	for _, p := range t.bridge.Ports {
		inside := slices.ContainsFunc(t.ports, func(q treePort) bool { return q.name == p.Name })
		if p.Name != t.bridge.Name && !inside {
			list = append(list, p.Name)
		}
	}
	return list
}
