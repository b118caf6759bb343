package collect

import (
	"fmt"
	"regexp"
	"strings"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// memberStatus is what a server of a clustered database says of itself (cluster/status,
// ovsdb-server(1)).
type memberStatus struct {
	server string // the UUID that its database file has too
	status string // "cluster member", "disconnected from the cluster (election timeout)"
	leader string // the beginning of the leader's UUID, "self" or "unknown"
	schema string // of the database
}

// printedStatus matches the beginning of what cluster/status prints, with the end of a line that a
// terminal of `oc rsh` may add.
var printedStatus = regexp.MustCompile(`^\S+\r?\nName: \S+\r?\nCluster ID: `)

// readStatus reads what cluster/status printed; ok reports whether the text is that.
func readStatus(text []byte) (member memberStatus, ok bool) {
	if !printedStatus.Match(text) {
		return memberStatus{}, false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "Server ID": // a1b2 (a1b2c3d4-...)
			_, uuid, _ := strings.Cut(value, "(")
			member.server = strings.TrimSuffix(uuid, ")")
		case "Status":
			member.status = value
		case "Name":
			member.schema = value
		case "Leader":
			member.leader = value
		}
	}
	return member, member.server != ""
}

// command returns the command that printed the status.
func (m memberStatus) command() recording.Name {
	if m.schema == workdir.NB.Schema() {
		return workdir.HostStatusNB
	}
	return workdir.HostStatusSB
}

// apart returns how the member was apart from its cluster, "" if it was not. Its database may then
// lack what the other members have.
func (m memberStatus) apart() string {
	switch {
	case m.status != "" && m.status != "cluster member":
		return "its server's status was " + m.status
	case m.leader == "unknown":
		return "its server knew no leader of the cluster"
	}
	return ""
}

// addMembers adds what servers of clustered databases said of themselves, and returns the files
// that have it.
func (r *filesReader) addMembers(identities map[string]identity) map[string]bool {
	files := map[string]bool{}
	for name, id := range identities {
		if id.kind == clusterStatus {
			files[name] = true
			r.members[id.member.server] = id.member
		}
	}
	return files
}

// remarkApart adds a remark to each database of a server that was apart from its cluster.
func (r *filesReader) remarkApart(node *recording.Recording) {
	for i := range node.Databases {
		db := &node.Databases[i]
		info, err := db.Inspect(r.ctx)
		if err != nil || info.Server == "" {
			continue
		}
		if why := r.members[info.Server].apart(); why != "" {
			db.Remarks = append(db.Remarks, fmt.Sprintf("%s (cluster/status): it may lack changes that the other members have", why))
		}
	}
}
