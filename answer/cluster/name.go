package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"ovs-offline/internal/phrase"
)

// short returns the beginning of a UUID, as ovsdb-server prints it.
func short(uuid string) string { return uuid[:min(4, len(uuid))] }

// address returns the address of a server, "" if no file has it.
func (g *group) address(server string) string {
	if m := g.member(server); m != nil {
		return m.log.Address
	}
	if status := g.statuses[server]; status != nil {
		return status.Address
	}
	if g.newest == nil {
		return g.config[server]
	}
	for _, m := range g.members {
		for _, change := range m.log.Changes {
			if change.Servers[server] != "" {
				return change.Servers[server]
			}
		}
	}
	return cmp.Or(g.config[server], g.committed[server], g.newest.log.Servers[server])
}

// name names a server: by the beginning of its UUID, its address, and its host or file.
func (g *group) name(server string) string {
	text := short(server)
	if address := g.address(server); address != "" {
		text += " at " + address
	}
	if m := g.member(server); m != nil {
		text += " (" + m.given.Name + ")"
	} else if status := g.statuses[server]; status != nil && status.name != "" {
		text += " (" + status.name + ")"
	}
	return text
}

func (g *group) names(servers []string) string {
	var list []string
	for _, server := range servers {
		list = append(list, g.name(server))
	}
	return phrase.FirstNames(list)
}

func serversOf(members []*member) (servers []string) {
	for _, m := range members {
		servers = append(servers, m.server())
	}
	return servers
}

// hostOf returns the host in the address of a server: tcp:10.0.0.1:6643, ssl:[fd00::1]:6643.
func hostOf(address string) string {
	kind, rest, _ := strings.Cut(address, ":")
	if host, _, err := net.SplitHostPort(rest); err == nil && kind != "unix" {
		return host
	}
	return address
}

// describe describes a configuration: "n servers: ...".
func describe(servers map[string]string) string {
	var list []string
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		list = append(list, fmt.Sprintf("%s at %s", short(server), servers[server]))
	}
	return phrase.FirstNames(list)
}

// servers returns a row for each server of the group.
func (g *group) servers() (rows []*Server) {
	for _, m := range slices.Concat(g.members, g.older) {
		row := &Server{ID: m.server(), Address: m.log.Address, Name: m.given.Name, State: m.state}
		if !m.log.Joining() {
			row.Term, row.Vote, row.First, row.Last, row.Committed = m.log.CurrentTerm, m.log.Vote, m.log.Index, m.log.Last(), m.log.Committed
			row.Changed, row.Schema = m.log.LastTime(m.log.Committed), m.log.VersionAt(m.log.Committed)
			if n := len(m.log.Leaders); n > 0 {
				row.Leader = m.log.Leaders[n-1].Server
			}
		}
		if m.status != nil {
			row.Status = m.status.state()
		}
		rows = append(rows, row)
	}
	if g.newest == nil {
		return append(rows, g.statusRows()...)
	}
	for _, server := range g.absent() {
		row := &Server{ID: server, Address: g.config[server], State: Absent}
		if status := g.statuses[server]; status != nil {
			row.Status, row.Term = status.state(), status.Term
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b *Server) int { return cmp.Compare(a.Address, b.Address) })
	return rows
}
