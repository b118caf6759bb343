package collect

import (
	"path"
	"slices"
)

// evidence compares a node with a row of the table Chassis: 1 if both agree, -1
// if they differ, 0 if one of them lacks the value.
type evidence struct{ name, ip, host int }

func (o owner) compare(host string, chassis chassis) evidence {
	evidence := evidence{name: agree(o.system, chassis.name)}
	if len(o.encaps) > 0 && len(chassis.encaps) > 0 {
		evidence.ip = -1
		if slices.ContainsFunc(o.encaps, func(ip string) bool { return slices.Contains(chassis.encaps, ip) }) {
			evidence.ip = 1
		}
	}
	if chassis.host != "" && (host != "" || o.hostname != "") {
		evidence.host = -1
		if sameHost(chassis.host, host) || sameHost(chassis.host, o.hostname) {
			evidence.host = 1
		}
	}
	return evidence
}

func agree(a, b string) int {
	switch {
	case a == "" || b == "":
		return 0
	case a == b:
		return 1
	}
	return -1
}

// isProof reports whether a row with this evidence is the node's. The system-id names
// the chassis, but several deployments may use the same system-ids: the encap IP must
// not differ. A chassis that was registered under another name than the system-id is
// known by its host name and its encap IP.
func (e evidence) isProof() bool {
	switch {
	case e.name > 0:
		return e.ip >= 0
	case e.name < 0:
		return e.ip > 0 && e.host > 0
	}
	return e.ip >= 0 && e.host > 0
}

// rank returns a higher number for stronger evidence, always above 0.
func (e evidence) rank() int { return 8 + 4*e.name + 2*e.ip + e.host }

// rank returns the rank of the strongest evidence that a southbound database has the
// node's chassis, 0 if it does not have it.
func (o owner) rank(host string, sb *candidate) (rank int) {
	for _, row := range sb.chassis {
		if evidence := o.compare(host, row); evidence.isProof() {
			rank = max(rank, evidence.rank())
		}
	}
	return rank
}

// pair returns a higher number for stronger evidence that a northbound and a
// southbound database are of one deployment, 0 if they are not. ovn-northd writes
// the UUIDs of logical switches and routers into the southbound database.
func pair(nb, sb *candidate) int {
	together := nb.holder == sb.holder && nb.Source.Name == sb.Source.Name && path.Dir(nb.Origin) == path.Dir(sb.Origin)
	same := agree(nb.identity, sb.identity)
	rank := 0
	switch {
	case overlap(nb.datapaths, sb.datapaths):
		rank = 3
	case len(nb.datapaths) > 0 && len(sb.datapaths) > 0, same < 0:
		return 0
	case same > 0:
		rank = 2
	}
	if together {
		rank++
	}
	return rank
}

func overlap(a, b map[string]bool) bool {
	for key := range a {
		if b[key] {
			return true
		}
	}
	return false
}
