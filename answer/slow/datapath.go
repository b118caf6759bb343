package slow

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"ovs-offline/answer/rule"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/show"
	"ovs-offline/internal/terminal"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Bounds of the numbers of a datapath above which it has a finding.
const (
	fewLost      = 100    // packets: a few are lost at each start
	manyLost     = 10_000 // packets
	lostPercent  = 1      // of the packets for ovs-vswitchd
	leastLost    = 1_000  // packets, for lostPercent
	maxMasks     = 128    // above, a lookup takes longer than the rest of the way of a packet
	maxPerMatch  = 20     // masks that a lookup tries on average
	limitPercent = 90     // of the limit of flows
)

// counters are what a datapath and ovs-vswitchd counted.
type counters struct {
	Datapaths []appctl.DatapathStats `json:"datapaths,omitempty"`
	Upcalls   []appctl.UpcallStats   `json:"upcalls,omitempty"`
	// Connections is how many connections the node tracked, and MaxConnections how many it allows, 0 if that was not recorded.
	Connections    int `json:"connections,omitempty"`
	MaxConnections int `json:"max_connections,omitempty"`

	counted, allowed string            // where the numbers of connections come from
	events           map[string]uint64 // of coverage/show
}

// readCounters reads dpctl/show, upcall/show, coverage/show, and the numbers of connections of a node.
func readCounters(n *rule.Node) (c counters, err error) {
	for name, read := range map[recording.Name]func(text string){
		workdir.RecordedDatapathShow: func(text string) { c.Datapaths = appctl.Datapaths(text) },
		workdir.RecordedUpcalls:      func(text string) { c.Upcalls = appctl.Upcalls(text) },
		workdir.RecordedCoverage:     func(text string) { c.events = appctl.Coverage(text) },
	} {
		text, err := n.Output(name)
		if err != nil {
			return c, err
		}
		read(text)
	}
	if c.Connections, c.counted, err = conntrackNumber(n, workdir.RecordedConntrackCount, "nf_conntrack_count"); err != nil {
		return c, err
	}
	c.MaxConnections, c.allowed, err = conntrackNumber(n, workdir.RecordedConntrackLimit, "nf_conntrack_max")
	return c, err
}

var number = lazyregexp.New(`(?m)^\s*([0-9]+)\s*$`)

// conntrackNumber returns a number of conntrack and where it was read, 0 if it was not recorded: what a command of the datapath printed, or
// else a setting of the kernel. On a node with the kernel's datapath, the command fails.
func conntrackNumber(n *rule.Node, command recording.Name, setting string) (int, string, error) {
	text, err := n.Output(command)
	if err != nil {
		return 0, "", err
	}
	if found := number.FindStringSubmatch(text); found != nil {
		value, _ := strconv.Atoi(found[1]) // the largest for a number that is too large
		return value, strings.Replace(string(command), ".", "/", 1), nil
	}
	text, err = n.HostOutput(workdir.HostSysctl)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); name == "net.netfilter."+setting || name == "net."+setting {
			value, _ := strconv.Atoi(strings.TrimSpace(value))
			return value, name, err
		}
	}
	return 0, "", err
}

// fullFinding returns the finding that the table of connections is full, or nearly so; none for another one. entries is how many were dumped.
func (c counters) fullFinding(entries int) []rule.Finding {
	counted, from := max(entries, c.Connections), "dpctl/dump-conntrack"
	if c.Connections > entries {
		from = c.counted
	}
	if c.MaxConnections == 0 || counted*100 < c.MaxConnections*nearPercent {
		return nil
	}
	f := rule.Finding{Rule: nearLimit, What: fmt.Sprintf("%d connections are recorded, and the limit is %d (%s)", counted, c.MaxConnections, c.allowed),
		Follows: "new connections are dropped when the limit is reached", Weight: counted, Evidence: []string{fmt.Sprintf("%s: %d", from, counted)},
		Next:    []rule.Next{rule.Ask("slow"), rule.OnTheNode("ovs-appctl dpctl/ct-stats-show")},
		Sources: []string{"nf_conntrack-sysctl of Linux", "ovs-vswitchd(8), dpctl/ct-set-maxconns"}}
	if counted >= c.MaxConnections {
		f.Severity, f.What = rule.Error, fmt.Sprintf("the table of connections is full: it has %d of at most %d (%s)", counted, c.MaxConnections, c.allowed)
		f.Follows, f.Causes = "new connections are dropped until others end", []string{"conntrack-full"}
	}
	return []rule.Finding{f}
}

// findings returns the findings about the counters of a node; connections is the number of dumped connections.
func (c counters) findings(node string, connections int) (list []rule.Finding) {
	add := func(f rule.Finding) {
		f.Severity, f.Nodes = cmp.Or(f.Severity, rule.Warning), rule.OnNode(node)
		list = append(list, f)
	}
	for _, d := range c.Datapaths {
		if d.Lost > fewLost {
			add(lostFinding(d))
		}
		if d.Masks > maxMasks || d.PerMatch > maxPerMatch {
			add(rule.Finding{Rule: masked, What: fmt.Sprintf("the datapath%s has %d masks, and tries %.1f for each packet", named(d.Name), d.Masks, d.PerMatch),
				Evidence: []string{"ovs-appctl dpctl/show: masks"}, Follows: "each lookup tries the masks one after the other: every packet takes longer",
				Next: []rule.Next{rule.Ask("slow")}, Sources: []string{"ovs-dpctl(8), show: masks"}})
		}
	}
	for _, u := range c.Upcalls {
		if u.Limit > 0 && u.Current*100 >= u.Limit*limitPercent {
			f := rule.Finding{Rule: limited, What: fmt.Sprintf("the datapath %s has %d flows, and ovs-vswitchd allows %d", u.Datapath, u.Current, u.Limit),
				Evidence: []string{"ovs-appctl upcall/show: flows"}, Follows: "ovs-vswitchd deletes flows that are in use: more packets go through it, and some are lost",
				Next:    []rule.Next{rule.Ask("slow")},
				Sources: []string{"ovs-vswitchd(8), upcall/show: flows", "ovs-vswitchd.conf.db(5), Open_vSwitch, other_config:flow-limit"}}
			if times := c.events["upcall_flow_limit_hit"]; times > 0 {
				f.What += fmt.Sprintf("; the limit was reached for %s", phrase.Count(int(min(times, 1<<40)), "packet"))
				f.Evidence = append(f.Evidence, "ovs-appctl coverage/show: upcall_flow_limit_hit")
			}
			add(f)
		}
	}
	for _, f := range c.fullFinding(connections) {
		add(f)
	}
	return list
}

// lostFinding returns the finding about a datapath that lost packets on their way to ovs-vswitchd.
func lostFinding(d appctl.DatapathStats) rule.Finding {
	f := rule.Finding{Rule: losing, What: fmt.Sprintf("the datapath%s lost %d packets on their way to ovs-vswitchd, of %d", named(d.Name), d.Lost, d.Missed+d.Lost),
		Evidence: []string{"ovs-appctl dpctl/show: lookups"}, Follows: "first packets of connections are lost: the queue to ovs-vswitchd was full",
		Next:   []rule.Next{rule.Ask("slow"), rule.Ask("timeline", "--grep", "lost packet"), rule.Elsewhere("on the node, twice", "ovs-appctl dpctl/show")},
		Weight: int(min(d.Lost, 1<<30)), Sources: []string{"ovs-dpctl(8), show: lost"}}
	if d.Lost >= manyLost || d.Lost >= leastLost && d.Lost*100 >= (d.Missed+d.Lost)*lostPercent {
		f.Severity = rule.Error
	}
	return f
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " " + name
}

// print prints the counters.
func (c counters) print(page *show.Page) {
	for _, d := range c.Datapaths {
		page.Text("\nDatapath%s: %d flows, %d masks, %.1f tried for each packet\n", terminal.Escape(named(d.Name)), d.Flows, d.Masks, d.PerMatch)
		page.Text("Packets: %d matched a flow, %d went to ovs-vswitchd, %d were lost on the way\n", d.Hit, d.Missed, d.Lost)
	}
	for _, u := range c.Upcalls {
		page.Text("Limit of flows of %s: %d\n", terminal.Escape(u.Datapath), u.Limit)
	}
	if c.Connections > 0 {
		page.Printf("Connections: %d (%s)", c.Connections, c.counted)
		if c.MaxConnections > 0 {
			page.Printf(" of at most %d (%s)", c.MaxConnections, c.allowed)
		}
		page.Printf("\n")
	}
}
