package synth

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
)

// Gateways of a group watch each other, and other nodes watch them, by BFD in their
// tunnels. ovn-controller takes the highest gateway that answers as the active one. No
// database has the sessions, but the southbound one has the gateway that was active.

// watches reports whether gateways of a group watch each other.
func (s *Southbound) watches() bool {
	for _, members := range s.groups {
		if len(members) > 1 {
			return true
		}
	}
	return false
}

// silent returns the chassis that did not answer: those with a higher priority than the
// active gateway of a group.
func (s *Southbound) silent() map[string]bool {
	found := map[string]bool{}
	for _, b := range s.bindings {
		if b.kind != "chassisredirect" || len(b.chassis) == 0 {
			continue
		}
		members := s.groups[b.group]
		active := slices.IndexFunc(members, func(m member) bool { return m.chassis == b.chassis[0] })
		for _, m := range members {
			if active >= 0 && m.priority > members[active].priority {
				found[m.chassis] = true
			}
		}
	}
	return found
}

// writeSessions writes what `ovs-vsctl list interface` would print of the sessions of a
// node whose OVS database has tunnels: each is up, but for those with gateways that are not
// active although they have the highest priority.
func (s *Southbound) writeSessions(ctx context.Context, n *node, conf, folder string) error {
	content, _, err := file.Read(ctx, conf, "Interface", "Port")
	if err != nil {
		return err
	}
	silent := s.silentAddresses(n)
	var text strings.Builder
	for _, row := range content.Rows("Interface") {
		if row.Map("bfd")["enable"] != "true" {
			continue
		}
		state, forwarding := "up", "true"
		if remote := row.Map("options")["remote_ip"]; silent[remote] {
			state, forwarding = "down", "false"
		}
		fmt.Fprintf(&text, "_uuid               : %s\nbfd_status          : {forwarding=\"%s\", state=%s}\nname                : %s\n\n", row.UUID, forwarding, state, row.String("name"))
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, workdir.RecordedListInterface), []byte(text.String()), 0o600)
}

// silentAddresses returns the tunnel addresses of the chassis that did not answer, and
// lists what is assumed of sessions.
func (s *Southbound) silentAddresses(n *node) map[string]bool {
	silent := s.silent()
	addresses := map[string]bool{}
	var names []Chassis
	for _, c := range s.chassis {
		if !silent[c.uuid] || c.uuid == n.uuid {
			continue
		}
		names = append(names, c)
		for _, e := range c.encaps {
			addresses[e.ip] = true
		}
	}
	n.assume("BFD sessions: all are up")
	if len(names) > 0 {
		n.assumed[len(n.assumed)-1] = fmt.Sprintf("BFD sessions: all are up but those with %s, since a gateway of a lower priority is active", titles(names))
	}
	return addresses
}
