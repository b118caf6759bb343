package collect

import (
	"fmt"

	"ovs-offline/internal/ovsdb/raft"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// statusCommand returns the command that printed the status of a server.
func statusCommand(status *raft.Status) recording.Name {
	if status.Database == workdir.NB.Schema() {
		return workdir.HostStatusNB
	}
	return workdir.HostStatusSB
}

// addMembers adds what servers of clustered databases said of themselves, and returns the files
// that have it.
func (r *filesReader) addMembers(identities map[string]identity) map[string]bool {
	files := map[string]bool{}
	for name, id := range identities {
		if id.kind == clusterStatus {
			files[name] = true
			r.members[id.member.Server] = *id.member
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
		status := r.members[info.Server]
		if why := status.Apart(); why != "" {
			db.Remarks = append(db.Remarks, fmt.Sprintf("%s (cluster/status): it may lack changes that the other members have", why))
		}
	}
}
