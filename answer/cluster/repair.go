package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ovs-offline/pkg/ovsdb/raft"
)

// files are the usual names of the files of clustered databases, and of the control sockets of their
// servers (ovn-ctl(8)).
func files(database string) (file, control string) {
	names := map[string]string{"OVN_Northbound": "ovnnb_db", "OVN_Southbound": "ovnsb_db", "OVN_IC_Northbound": "ovn_ic_nb_db", "OVN_IC_Southbound": "ovn_ic_sb_db"}
	name := cmp.Or(names[database], strings.ToLower(database))
	return "/var/lib/ovn/" + name + ".db", "/var/run/ovn/" + name + ".ctl"
}

// place returns the path of the file of the server at an address, and of its control socket.
func (g *group) place(address string) (file, control string) {
	file, control = files(g.database)
	for _, m := range slices.Concat(g.members, g.older) {
		if m.log.Address == address {
			return cmp.Or(m.given.Place, file), cmp.Or(m.given.Control, control)
		}
	}
	for _, m := range g.members { // all hosts usually keep it at the same place
		if place := m.given.Place; place != "" && path.Base(place) == path.Base(file) {
			return place, control
		}
	}
	return file, control
}

// plan is a repair that is being written.
type plan struct {
	g     *group
	steps []Step
}

func (g *group) plan() *plan { return &plan{g: g} }

func (p *plan) add(address string, action Action, command, text string) *plan {
	p.steps = append(p.steps, Step{Server: address, On: p.on(address), Action: action, Command: command, Text: text})
	return p
}

// on returns the host of an address for people.
func (p *plan) on(address string) string {
	for _, m := range p.g.members {
		if m.log.Address == address && address != "" {
			if host := hostOf(address); host != address {
				return host
			}
			return m.given.Name
		}
	}
	return hostOf(address)
}

func (p *plan) look(text string) *plan { return p.add("", Look, "", text) }

func (p *plan) stop(address string) *plan {
	_, control := p.g.place(address)
	return p.add(address, Stop, "ovs-appctl -t "+control+" exit", "end its ovsdb-server, if it runs; keep systemd or the pod from starting it again")
}

func (p *plan) start(address, text string) *plan {
	p.add(address, Start, "", text)
	return p
}

func (p *plan) appctl(address, command, text string) *plan {
	_, control := p.g.place(address)
	return p.add(address, Run, "ovs-appctl -t "+control+" "+command, text)
}

// waitMember waits until a server is a member that knows the leader.
func (p *plan) waitMember(address string) *plan {
	_, control := p.g.place(address)
	p.add(address, Wait, "ovs-appctl -t "+control+" cluster/status "+p.g.database, "")
	p.steps[len(p.steps)-1].Until = "Status: cluster member"
	return p
}

// kick removes a server from the configuration, by a server that is a member.
func (p *plan) kick(server string) *plan {
	speaker := p.g.speaker(server)
	return p.appctl(speaker, fmt.Sprintf("cluster/kick %s %s", p.g.database, server), "remove the server from the cluster")
}

// speaker returns the address of a member that can be asked for a change, other than a server: the
// leader, if it is known.
func (g *group) speaker(not string) string {
	var best *member
	for _, m := range g.voters() { // the newest first
		if m.server() == not || m.status != nil && m.status.Apart() != "" {
			continue
		}
		leads := m.status != nil && m.status.Leader == "self" || m.status == nil && m.log.Leader == m.server()
		if best == nil || leads && m.log.CurrentTerm >= best.log.CurrentTerm {
			best = m
		}
	}
	if best != nil {
		return best.log.Address
	}
	if leader := g.leader(); leader.server != "" && leader.server != not {
		return g.config[leader.server]
	}
	for _, server := range slices.Sorted(maps.Keys(g.config)) {
		if server != not && g.member(server) == nil {
			return g.config[server]
		}
	}
	return ""
}

// setAside moves the file of a server out of the way.
func (p *plan) setAside(address string) *plan {
	file, _ := p.g.place(address)
	return p.add(address, Run, fmt.Sprintf("[ ! -e %[1]s ] || mv %[1]s %[1]s.old", file), "keep the old file")
}

// join makes a new file with which a server joins the servers at some addresses.
func (p *plan) join(address, cluster string, remotes []string) *plan {
	file, _ := p.g.place(address)
	option := ""
	if cluster != "" {
		option = "--cid=" + cluster + " "
	}
	return p.add(address, Run, fmt.Sprintf("ovsdb-tool %sjoin-cluster %s %s %s %s", option, file, p.g.database, address, strings.Join(remotes, " ")), "")
}

// remotes returns the addresses of the members to join, except for one.
func (g *group) remotes(not string) (list []string) {
	for _, m := range g.voters() {
		list = append(list, m.log.Address)
	}
	if len(list) == 0 || len(list) == 1 && list[0] == not {
		list = append(list, slices.Sorted(maps.Values(g.config))...)
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(address string) bool { return address == not })
}

const startAgain = "start its ovsdb-server again (systemctl, ovn-ctl, or its pod)"

// rejoin gives a server a new file, with which it joins again under a new UUID.
func (g *group) rejoin(m *member) []Step {
	p := g.plan().stop(m.log.Address)
	if _, counts := g.config[m.server()]; counts {
		p.kick(m.server())
	}
	p.setAside(m.log.Address).join(m.log.Address, g.id, g.remotes(m.log.Address))
	return p.start(m.log.Address, startAgain).waitMember(m.log.Address).steps
}

// restore makes a new cluster of the data of one member, which all other servers join.
func (g *group) restore(keep *member) []Step {
	p := g.plan()
	var others []string
	for _, m := range g.members {
		if _, counts := g.config[m.server()]; m != keep && (counts || m.state == Joining) {
			others = append(others, m.log.Address)
		}
	}
	for _, server := range g.absent() {
		others = append(others, g.config[server])
	}
	slices.Sort(others)
	others = slices.DeleteFunc(slices.Compact(others), func(address string) bool { return address == keep.log.Address })
	for _, address := range append(slices.Clone(others), keep.log.Address) {
		p.stop(address)
	}
	file, _ := g.place(keep.log.Address)
	here := keep.log.Address
	p.add(here, Run, fmt.Sprintf("cp %[1]s %[1]s.backup", file), "this is the file to keep")
	p.add(here, Run, fmt.Sprintf("ovsdb-tool cluster-to-standalone %[1]s.standalone %[1]s", file), g.caution(keep))
	p.add(here, Run, "mv "+file+" "+file+".old", "")
	p.add(here, Run, fmt.Sprintf("ovsdb-tool %screate-cluster %[2]s %[2]s.standalone %s", electionOption(keep), file, here), "a new cluster, with another UUID")
	p.start(here, startAgain).waitMember(here)
	for _, address := range others {
		p.setAside(address).join(address, "", []string{here}).start(address, startAgain).waitMember(address)
	}
	return p.steps
}

func electionOption(keep *member) string {
	if timer := keep.log.TimerAt(keep.log.Last()); timer != raft.UsualElectionTimer {
		return fmt.Sprintf("--election-timer=%d ", timer)
	}
	return ""
}

// caution says what ovsdb-tool cluster-to-standalone does to the file: it applies entries that were
// taken back or are not committed, and takes the conversion of a schema for a difference.
func (g *group) caution(keep *member) string {
	switch n := keep.log.Last() - keep.log.Committed; {
	case len(keep.log.TakenBack) > 0:
		return "this file has entries that were taken back, which ovsdb-tool applies: check the result, or take the database of a replica of the file (made by collect and start), which leaves them out"
	case len(keep.log.Versions) > 0:
		return "this file has a conversion of the schema: check the result with ovsdb-tool db-version"
	case n > 0:
		return fmt.Sprintf("the last %d entries, which are not committed, stay in the result", n)
	}
	return ""
}
