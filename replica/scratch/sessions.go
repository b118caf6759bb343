package scratch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// Gateways of a group watch each other, and other nodes watch them, by BFD in their
// tunnels. ovn-controller takes the highest gateway whose session is up as the active one;
// a gateway none of whose sessions is up takes itself as cut off. On a node ovs-vswitchd
// keeps the state in bfd_status of the tunnel's interface. Here no ovs-vswitchd has these
// tunnels, so a session that a change makes would have no state for ever.

// Session is a BFD session of a tunnel whose state was not recorded, and the state that is
// assumed instead.
type Session struct {
	Interface string // the UUID of the tunnel's interface
	Name      string // of the interface
	Peer      string // the title of the chassis at the other end
	Up        bool
}

// Sessions returns the sessions of a node whose state is assumed, in the order in which
// they were met.
func (s *Scratch) Sessions(node string) []Session { return slices.Clone(s.nodes[node].sessions) }

// watch holds the facts that decide the state of sessions.
type watch struct {
	titles map[string]string // of chassis, by name
	passed map[string]bool   // the names of chassis with a higher priority than the active gateway of a group
}

// readWatch reads the gateways from the recorded SB database.
func (s *Scratch) readWatch(ctx context.Context) (err error) {
	s.watch = watch{titles: map[string]string{}}
	names := map[string]string{} // by UUID
	rows, err := s.sb.Select(ctx, "Chassis", "name", "hostname")
	if err != nil {
		return err
	}
	for _, row := range rows {
		names[row.UUID] = row.String("name")
		s.watch.titles[row.String("name")] = cmp.Or(row.String("hostname"), row.String("name"))
	}
	s.watch.passed, err = unansweredChassis(ctx, s.sb, names)
	return err
}

// unansweredChassis returns the names of the chassis with a higher priority than the active
// gateway of a group: they did not answer. names maps the UUIDs of all chassis to their names.
func unansweredChassis(ctx context.Context, sb *ovsdb.Client, names map[string]string) (map[string]bool, error) {
	priorities := map[string]map[string]int{} // of the chassis of a group
	groups, err := gatewayGroups(ctx, sb)
	if err != nil {
		return nil, err
	}
	for group, members := range groups {
		priorities[group] = map[string]int{}
		for _, row := range members {
			priority, _ := row.Int("priority")
			for _, chassis := range row.UUIDs("chassis") {
				priorities[group][chassis] = priority
			}
		}
	}
	passed := map[string]bool{}
	bindings, err := sb.Select(ctx, "Port_Binding", "type", "chassis", "ha_chassis_group")
	for _, row := range bindings {
		members := priorities[groupOf(row)]
		for _, active := range row.UUIDs("chassis") {
			lowest, isMember := members[active]
			for chassis, priority := range members {
				if row.String("type") == "chassisredirect" && isMember && priority > lowest {
					passed[names[chassis]] = true
				}
			}
		}
	}
	return passed, err
}

// gatewayGroups returns the members of each group of gateways by groupOf. Before OVN 19.03, each
// port lists its Gateway_Chassis.
func gatewayGroups(ctx context.Context, sb *ovsdb.Client) (map[string][]ovsdb.Row, error) {
	found := map[string][]ovsdb.Row{}
	for _, source := range []struct{ table, column, members string }{
		{"HA_Chassis_Group", "ha_chassis", "HA_Chassis"}, {"Port_Binding", "gateway_chassis", "Gateway_Chassis"},
	} {
		rows, err := sb.Select(ctx, source.table, source.column)
		if err != nil {
			return nil, err
		}
		members, err := rowsByID(ctx, sb, source.members, "chassis", "priority")
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			for _, id := range row.UUIDs(source.column) {
				if member, ok := members[id]; ok { // ovn-northd may have deleted it meanwhile
					found[row.UUID] = append(found[row.UUID], member)
				}
			}
		}
	}
	return found, nil
}

// groupOf returns the UUID of the group of a gateway port: the UUID of the port itself where
// it lists its members.
func groupOf(binding ovsdb.Row) string {
	for _, group := range binding.UUIDs("ha_chassis_group") {
		return group
	}
	return binding.UUID
}

// tunnel is the interface of a tunnel with BFD.
type tunnel struct {
	ovsdb.Row
	peer string // the name of the chassis at the other end
}

// watched returns the tunnels of the integration bridge on which ovn-controller has
// enabled BFD.
func (p *nodeDaemons) watched(ctx context.Context) ([]tunnel, error) {
	interfaces, err := rowsByID(ctx, p.db, "Interface", "name", "bfd", "bfd_status")
	if err != nil {
		return nil, err
	}
	ports, err := p.db.Select(ctx, "Port", "interfaces", "external_ids")
	if err != nil {
		return nil, err
	}
	var found []tunnel
	for _, port := range ports {
		peer, _, _ := strings.Cut(port.Map("external_ids")["ovn-chassis-id"], "@") // CHASSIS@IP
		for _, id := range port.UUIDs("interfaces") {
			if row := interfaces[id]; peer != "" && row.Map("bfd")["enable"] == "true" {
				found = append(found, tunnel{row, peer})
			}
		}
	}
	slices.SortFunc(found, func(a, b tunnel) int { return strings.Compare(a.String("name"), b.String("name")) })
	return found, nil
}

// readSessions reads which chassis answered the recorded sessions of a node, and which did
// not.
func (p *nodeDaemons) readSessions(ctx context.Context) error {
	tunnels, err := p.watched(ctx)
	p.answered = map[string]bool{}
	for _, tunnel := range tunnels {
		if state := tunnel.Map("bfd_status")["state"]; state != "" {
			p.answered[tunnel.peer] = p.answered[tunnel.peer] || state == "up"
		}
	}
	return err
}

// isSilent reports whether a chassis did not answer: of the recorded sessions with an end at
// it none was up, or none was recorded and a gateway of a lower priority is active.
func (s *Scratch) isSilent(chassis string) bool {
	recorded, up := false, false
	for _, daemons := range s.nodes {
		for peer, answered := range daemons.answered {
			if peer == chassis || daemons.Chassis == chassis {
				recorded, up = true, up || answered
			}
		}
	}
	return recorded && !up || !recorded && s.watch.passed[chassis]
}

// assumeSessions gives each BFD session of a node that has no state one: it is up, unless
// one of its ends did not answer. It returns how many there are.
func (s *Scratch) assumeSessions(ctx context.Context, daemons *nodeDaemons) (assumed int, err error) {
	tunnels, err := daemons.watched(ctx)
	if err != nil {
		return 0, err
	}
	var changes []ovsdb.Change
	for _, tunnel := range tunnels {
		if tunnel.Map("bfd_status")["state"] != "" {
			continue
		}
		one := Session{tunnel.UUID, tunnel.String("name"), cmp.Or(s.watch.titles[tunnel.peer], tunnel.peer), !s.isSilent(tunnel.peer) && !s.isSilent(daemons.Chassis)}
		daemons.sessions = append(daemons.sessions, one)
		changes = append(changes, ovsdb.Update("Interface", tunnel.UUID, ovsdb.Columns{"bfd_status": one.status()}))
	}
	return len(changes), daemons.db.Transact(ctx, changes...)
}

// status returns bfd_status of the session's interface.
func (s Session) status() map[string]string {
	if s.Up {
		return map[string]string{"state": "up", "forwarding": "true"}
	}
	return map[string]string{"state": "down", "forwarding": "false"}
}

// DescribeSessions returns what is assumed about the sessions of one node, "" without any.
func DescribeSessions(sessions []Session) string {
	with := func(up bool) (peers []string) {
		for _, session := range sessions {
			if session.Up == up && !slices.Contains(peers, session.Peer) {
				peers = append(peers, session.Peer)
			}
		}
		slices.Sort(peers)
		return peers
	}
	var parts []string
	if up := with(true); len(up) > 0 {
		parts = append(parts, "up with "+joinFirst(up))
	}
	if down := with(false); len(down) > 0 {
		parts = append(parts, "down with "+joinFirst(down)+", since an end did not answer before")
	}
	if len(parts) == 0 {
		return ""
	}
	return "BFD sessions whose state was not recorded are " + strings.Join(parts, ", and ")
}

// joinFirst joins names, the first few of many.
func joinFirst(names []string) string {
	const maxNames = 5
	if len(names) > maxNames+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}

// WriteSessions writes the output of `ovs-vsctl list interface` with the state of sessions
// to a file. from is the recorded output, which need not exist.
func WriteSessions(from, to string, sessions []Session) error {
	text, err := readCollected(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, []byte(withSessions(text, sessions)), 0o600)
}

func readCollected(path string) (string, error) {
	file, ok, err := workdir.OpenCollected(path)
	if !ok {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	return string(text), err
}

// withSessions puts the state of sessions into the records of their interfaces, and adds
// records for interfaces that have none.
func withSessions(text string, sessions []Session) string {
	left := map[string]Session{}
	for _, session := range sessions {
		left[session.Interface] = session
	}
	var b strings.Builder
	of := ""
	for line := range strings.Lines(text) {
		column, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(column) {
		case "_uuid":
			of = strings.TrimSpace(value)
		case "bfd_status":
			if session, ok := left[of]; ok {
				line = session.text()
				delete(left, of)
			}
		}
		b.WriteString(line)
	}
	for _, session := range sessions {
		if _, missing := left[session.Interface]; missing {
			fmt.Fprintf(&b, "\n_uuid               : %s\n%sname                : %s\n", session.Interface, session.text(), session.Name)
		}
	}
	return b.String()
}

func (s Session) text() string {
	status := s.status()
	return fmt.Sprintf("bfd_status          : {forwarding=%q, state=%s}\n", status["forwarding"], status["state"])
}
