package scratch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
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
func (s *Scratch) Sessions(node string) []Session { return slices.Clone(s.places[node].sessions) }

// watch is what decides the state of sessions.
type watch struct {
	titles map[string]string // of chassis, by name
	passed map[string]bool   // the names of chassis with a higher priority than the active gateway of a group
}

// readWatch reads what the recorded SB database says of gateways.
func (s *Scratch) readWatch(ctx context.Context) (err error) {
	s.watch = watch{titles: map[string]string{}}
	names := map[string]string{} // by UUID
	rows, err := s.sb.Select(ctx, "Chassis", "name", "hostname")
	if err != nil {
		return err
	}
	for _, r := range rows {
		names[r.UUID] = r.String("name")
		s.watch.titles[r.String("name")] = cmp.Or(r.String("hostname"), r.String("name"))
	}
	s.watch.passed, err = s.passedOver(ctx, names)
	return err
}

// passedOver returns the names of the chassis with a higher priority than the active
// gateway of a group: they did not answer. names has those of all chassis by UUID.
func (s *Scratch) passedOver(ctx context.Context, names map[string]string) (map[string]bool, error) {
	priorities := map[string]map[string]int{} // of the chassis of a group
	groups, err := s.groups(ctx)
	if err != nil {
		return nil, err
	}
	for group, members := range groups {
		priorities[group] = map[string]int{}
		for _, m := range members {
			priority, _ := m.Int("priority")
			for _, chassis := range m.UUIDs("chassis") {
				priorities[group][chassis] = priority
			}
		}
	}
	passed := map[string]bool{}
	bindings, err := s.sb.Select(ctx, "Port_Binding", "type", "chassis", "ha_chassis_group")
	for _, b := range bindings {
		members := priorities[groupOf(b)]
		for _, active := range b.UUIDs("chassis") {
			lowest, isMember := members[active]
			for chassis, priority := range members {
				if b.String("type") == "chassisredirect" && isMember && priority > lowest {
					passed[names[chassis]] = true
				}
			}
		}
	}
	return passed, err
}

// groups returns the members of each group of gateways by groupOf. Before OVN 19.03, each
// port lists its Gateway_Chassis.
func (s *Scratch) groups(ctx context.Context) (map[string][]ovsdb.Row, error) {
	found := map[string][]ovsdb.Row{}
	for _, source := range []struct{ table, column, members string }{
		{"HA_Chassis_Group", "ha_chassis", "HA_Chassis"}, {"Port_Binding", "gateway_chassis", "Gateway_Chassis"},
	} {
		members, err := rowsByID(ctx, s.sb, source.members, "chassis", "priority")
		if err != nil {
			return nil, err
		}
		rows, err := s.sb.Select(ctx, source.table, source.column)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			for _, id := range r.UUIDs(source.column) {
				found[r.UUID] = append(found[r.UUID], members[id])
			}
		}
	}
	return found, nil
}

// groupOf returns the UUID of the group of a gateway port: that of the port itself where
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
func (p *place) watched(ctx context.Context) ([]tunnel, error) {
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
			if i := interfaces[id]; peer != "" && i.Map("bfd")["enable"] == "true" {
				found = append(found, tunnel{i, peer})
			}
		}
	}
	slices.SortFunc(found, func(a, b tunnel) int { return strings.Compare(a.String("name"), b.String("name")) })
	return found, nil
}

// readSessions reads which chassis answered the recorded sessions of a node, and which did
// not.
func (p *place) readSessions(ctx context.Context) error {
	tunnels, err := p.watched(ctx)
	p.answered = map[string]bool{}
	for _, t := range tunnels {
		if state := t.Map("bfd_status")["state"]; state != "" {
			p.answered[t.peer] = p.answered[t.peer] || state == "up"
		}
	}
	return err
}

// silent reports whether a chassis did not answer: of the recorded sessions with an end at
// it none was up, or none was recorded and a gateway of a lower priority is active.
func (s *Scratch) silent(chassis string) bool {
	recorded, up := false, false
	for _, p := range s.places {
		for peer, answered := range p.answered {
			if peer == chassis || p.Chassis == chassis {
				recorded, up = true, up || answered
			}
		}
	}
	return recorded && !up || !recorded && s.watch.passed[chassis]
}

// assumeSessions gives each BFD session of a node that has no state one: it is up, unless
// one of its ends did not answer. It returns how many there are.
func (s *Scratch) assumeSessions(ctx context.Context, p *place) (assumed int, err error) {
	tunnels, err := p.watched(ctx)
	if err != nil {
		return 0, err
	}
	var changes []ovsdb.Change
	for _, t := range tunnels {
		if t.Map("bfd_status")["state"] != "" {
			continue
		}
		one := Session{t.UUID, t.String("name"), cmp.Or(s.watch.titles[t.peer], t.peer), !s.silent(t.peer) && !s.silent(p.Chassis)}
		p.sessions = append(p.sessions, one)
		changes = append(changes, ovsdb.Update("Interface", t.UUID, ovsdb.Columns{"bfd_status": one.status()}))
	}
	return len(changes), p.db.Transact(ctx, changes...)
}

// status returns bfd_status of the session's interface.
func (s Session) status() map[string]string {
	if s.Up {
		return map[string]string{"state": "up", "forwarding": "true"}
	}
	return map[string]string{"state": "down", "forwarding": "false"}
}

// DescribeSessions says of sessions of one node what is assumed, "" without any.
func DescribeSessions(sessions []Session) string {
	with := func(up bool) (peers []string) {
		for _, s := range sessions {
			if s.Up == up && !slices.Contains(peers, s.Peer) {
				peers = append(peers, s.Peer)
			}
		}
		slices.Sort(peers)
		return peers
	}
	var parts []string
	if up := with(true); len(up) > 0 {
		parts = append(parts, "up with "+list(up))
	}
	if down := with(false); len(down) > 0 {
		parts = append(parts, "down with "+list(down)+", since an end did not answer before")
	}
	if len(parts) == 0 {
		return ""
	}
	return "BFD sessions whose state was not recorded are " + strings.Join(parts, ", and ")
}

// list joins names, the first few of many.
func list(names []string) string {
	const most = 5
	if len(names) > most+1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
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
	f, ok, err := workdir.OpenCollected(path)
	if !ok {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// withSessions puts the state of sessions into the records of their interfaces, and adds
// records for interfaces that have none.
func withSessions(text string, sessions []Session) string {
	left := map[string]Session{}
	for _, s := range sessions {
		left[s.Interface] = s
	}
	var b strings.Builder
	of := ""
	for line := range strings.Lines(text) {
		column, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(column) {
		case "_uuid":
			of = strings.TrimSpace(value)
		case "bfd_status":
			if s, ok := left[of]; ok {
				line = s.line()
				delete(left, of)
			}
		}
		b.WriteString(line)
	}
	for _, s := range sessions {
		if _, missing := left[s.Interface]; missing {
			fmt.Fprintf(&b, "\n_uuid               : %s\n%sname                : %s\n", s.Interface, s.line(), s.Name)
		}
	}
	return b.String()
}

func (s Session) line() string {
	status := s.status()
	return fmt.Sprintf("bfd_status          : {forwarding=%q, state=%s}\n", status["forwarding"], status["state"])
}
