package restore

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
)

// Multicast groups
//
// Cause: a bridge with multicast snooping sends a group's packets to the ports
// from which it heard members or a querier, and floods those of groups that it
// knows nothing of. The table is in no database, and no command adds to it.
//
// Remedy: let the replica hear what the live node had heard. For as long as
// that takes, a flow takes packets that come with our own source address for
// ones that came in by the port whose number stands in that address, and gives
// them to NORMAL: so every kind of port can be spoken for, bonds, patch ports
// and tunnels among them. The source address is a multicast one, which no
// bridge learns. Nothing goes out to other bridges meanwhile, nor by bonds,
// which choose a member for each kind of packet when they see the first.
//
// Source: measured, OVS 3.1. A port that was heard a querier from takes no
// groups any more, so groups come first. mdb/show tells neither the versions of
// IGMP and MLD nor members' own addresses, and no trace depends on them.

// group is one line of mdb/show, without its age.
type group struct {
	port    string // OpenFlow number, or LOCAL
	vlan    uint16
	address netip.Addr // of the group; none for a querier's port
}

func (g group) String() string {
	what := "a querier"
	if g.address.IsValid() {
		what = "group " + g.address.String()
	}
	return fmt.Sprintf("%s on port %s in VLAN %d", what, g.port, g.vlan)
}

// mdb reads mdb/show.
func mdb(text string) []group {
	var list []group
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		vlan, err := strconv.ParseUint(words[1], 10, 12)
		if err != nil {
			continue // the heading
		}
		g := group{port: words[0], vlan: uint16(vlan)}
		// A version that tells the protocol as well has it between these two.
		for _, w := range words[2:] {
			if address, err := netip.ParseAddr(w); err == nil {
				g.address = address.Unmap()
			}
		}
		if g.address.IsValid() || slices.Contains(words, "querier") {
			list = append(list, g)
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].address.IsValid() && !list[j].address.IsValid() })
	return list
}

// snooped is a bridge on its way to its live multicast table.
type snooped struct {
	*Bridge
	node    *Node
	version string // of OpenFlow
	tags    portTags
	door    string     // the port that packets are put in by
	undo    []portFlag // what undoes what open changed
}

// portFlag is a flag of a port, as ovs-ofctl mod-port has it.
type portFlag struct {
	number int
	flag   string
}

// restoreMulticast gives each bridge the groups and queriers that it knew.
func restoreMulticast(ctx context.Context, n *Node, o *report.Outcome) error {
	rows, err := n.DB.Select(ctx, "Bridge", "name", "mcast_snooping_enable")
	if err != nil {
		return err
	}
	snooping := map[string]bool{}
	for _, r := range rows {
		snooping[r.String("name")] = r.Bool("mcast_snooping_enable")
	}
	spoke := false
	for _, b := range n.Bridges {
		if !snooping[b.Name] {
			continue
		}
		text, err := n.text(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedMDB))
		if err != nil {
			return err
		}
		if text == "" {
			o.Note(report.Unknown, "%s: no mdb/show was collected: multicast floods", b.Name)
			continue
		}
		want := n.knownGroups(b, mdb(text), o)
		if len(want) == 0 {
			continue
		}
		spoke = true
		if err := n.restoreGroupsHeard(ctx, b, want, o); err != nil {
			return err
		}
	}
	if !spoke {
		return nil
	}
	return n.forgetPackets(ctx, o)
}

// knownGroups leaves out those of ports that the database doesn't have.
func (n *Node) knownGroups(b *Bridge, list []group, o *report.Outcome) []group {
	var known []group
	for _, g := range list {
		if b.portOf(g.port) == nil {
			o.Note(report.Unknown, "%s: %v: the database doesn't have that port", b.Name, g)
			continue
		}
		known = append(known, g)
	}
	return known
}

// portOf finds the port that an interface's OpenFlow number belongs to.
func (b *Bridge) portOf(number string) *Port {
	name, ok := b.portName(number)
	if !ok {
		return nil
	}
	for _, p := range b.Ports {
		for _, i := range p.Interfaces {
			if i.Name == name {
				return p
			}
		}
	}
	return nil
}

// restoreGroupsHeard fills one bridge's table.
func (n *Node) restoreGroupsHeard(ctx context.Context, b *Bridge, want []group, o *report.Outcome) (err error) {
	s := &snooped{Bridge: b, node: n}
	if s.version, err = n.speaks(ctx, b); err != nil {
		return err
	}
	if s.tags, err = n.portTags(ctx); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		o.Note(report.Failed, "%s: multicast groups: %v", b.Name, err)
	} else if err := s.speak(ctx, want); err != nil {
		o.Note(report.Failed, "%s: multicast groups: %v", b.Name, err)
	}
	// Also where ctx has ended, or something failed half way.
	if err := s.close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("%s: removing what multicast groups were restored by: %w", b.Name, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.compare(ctx, want, o)
}

const (
	// ours is the source address of our packets; the last two bytes are a port's number.
	ours = "03:00:6f:76:00:00"
	// impersonate hands our packets to NORMAL as if they had come in by that port.
	impersonateMatch   = "priority=65535,dl_src=" + ours + "/ff:ff:ff:ff:00:00"
	impersonateActions = "actions=move:NXM_OF_ETH_SRC[0..15]->NXM_OF_IN_PORT[],NORMAL"
)

// open makes the bridge ready to hear us.
func (s *snooped) open(ctx context.Context) error {
	out, err := s.node.ofctl(ctx, nil, s.version, s.Bridge, "show")
	if err != nil {
		return err
	}
	config := map[int][]string{}
	for _, p := range openflow.Show(strings.NewReader(string(out))).Ports {
		config[p.Number] = p.Config
	}
	for _, p := range s.Ports {
		for _, i := range p.Interfaces {
			flags := config[s.number(i)]
			if isDevice(i) && !slices.Contains(flags, "NO_RECV") && (s.door == "" || i.Name == s.Name) {
				s.door = i.Name
			}
			if i.Type != "patch" && len(p.Interfaces) == 1 {
				continue
			}
			for _, f := range [][3]string{{"NO_FLOOD", "no-flood", "flood"}, {"NO_FWD", "no-forward", "forward"}} {
				if slices.Contains(flags, f[0]) {
					continue
				}
				if err := s.node.modPort(ctx, s.Bridge, s.number(i), f[1]); err != nil {
					return err
				}
				s.undo = append(s.undo, portFlag{s.number(i), f[2]})
			}
		}
	}
	if s.door == "" {
		return errors.New("no port takes packets in")
	}
	_, err = s.node.ofctl(ctx, nil, s.version, s.Bridge, "add-flow", impersonateMatch+","+impersonateActions)
	return err
}

// number is an interface's OpenFlow number.
func (s *snooped) number(i *Interface) int {
	if i.Name == s.Name {
		return openflow.PortLocal
	}
	return i.OfPort
}

// close undoes what open did.
func (s *snooped) close(ctx context.Context) error {
	_, err := s.node.ofctlOptions(ctx, nil, []string{tables.NoNames, "-O", s.version, "--strict"}, s.Bridge, "del-flows", impersonateMatch)
	for _, u := range s.undo {
		err = errors.Join(err, s.node.modPort(ctx, s.Bridge, u.number, u.flag))
	}
	return err
}

// speak says what is missing, again where it got lost: a dummy port queues a
// hundred packets and drops the rest.
func (s *snooped) speak(ctx context.Context, want []group) error {
	const attempts = 3
	missing := want
	for range attempts {
		for _, g := range missing {
			for _, p := range s.packets(g) {
				if err := s.node.receive(ctx, s.door, p); err != nil {
					return err
				}
			}
		}
		err := s.node.until(ctx, func() (bool, error) {
			have, err := s.have(ctx)
			missing = s.without(want, have)
			return len(missing) == 0, err
		})
		if err != nil || len(missing) == 0 {
			return err
		}
	}
	return nil // compare tells what is missing
}

// packets are those that make the bridge learn a group: one, or for a bond one
// by each member, since a bond takes them in by some of them only.
func (s *snooped) packets(g group) [][]byte {
	var list [][]byte
	port := s.portOf(g.port)
	tag := s.tags.of(port, g.vlan)
	for _, i := range port.Interfaces {
		number := s.number(i)
		source := [6]byte{0x03, 0x00, 0x6f, 0x76, byte(number >> 8), byte(number)}
		switch {
		case !g.address.IsValid():
			list = append(list, igmpQuery(source, tag))
		case g.address.Is4():
			list = append(list, igmpReport(source, tag, g.address))
		default:
			list = append(list, mldReport(source, tag, g.address))
		}
	}
	return list
}

// have asks the replica for the bridge's table.
func (s *snooped) have(ctx context.Context) ([]group, error) {
	out, err := s.node.appctl(ctx, "mdb/show", s.Name)
	return mdb(string(out)), err
}

// without returns the groups of one list that the other one lacks. Any member's
// number stands for its bond.
func (s *snooped) without(list, other []group) []group {
	key := func(g group) string {
		if p := s.portOf(g.port); p != nil {
			g.port = p.UUID
		}
		return fmt.Sprint(g.port, " ", g.vlan, " ", g.address)
	}
	there := map[string]bool{}
	for _, g := range other {
		there[key(g)] = true
	}
	var missing []group
	for _, g := range list {
		if !there[key(g)] {
			missing = append(missing, g)
		}
	}
	return missing
}

// compare reads the table back.
func (s *snooped) compare(ctx context.Context, want []group, o *report.Outcome) error {
	have, err := s.have(ctx)
	if err != nil {
		return err
	}
	missing, extra := s.without(want, have), s.without(have, want)
	for _, g := range missing {
		o.Note(report.Failed, "%s: %v: the replica does not learn it", s.Name, g)
	}
	for _, g := range extra {
		o.Note(report.Failed, "%s: %v: the replica has learned it, the live node had not", s.Name, g)
	}
	if len(missing)+len(extra) == 0 {
		o.Note(report.Restored, "")
	}
	return nil
}
