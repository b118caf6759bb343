package collect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// statusCommand returns the command that printed the status of a server.
func statusCommand(status *raft.Status) recording.Name {
	if status.Database == workdir.NB.Schema() {
		return workdir.HostStatusNB
	}
	return workdir.HostStatusSB
}

// addStatuses adds what servers of clustered databases said of themselves, and returns the files
// that have it.
func (r *filesReader) addStatuses(source string, tree *archive.Tree, identities map[string]identity) map[string]bool {
	files := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(identities)) {
		if id := identities[name]; id.kind == clusterStatus {
			files[name] = true
			r.members[id.member.Server] = *id.member
			r.found.Statuses = append(r.found.Statuses, Status{tree.Files[name], *id.member, partName(source, name)})
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

// findMembers returns the files of members of clustered OVN databases: of the nodes, of whole
// deployments, and of servers that have not joined their cluster.
func (r *filesReader) findMembers(nodes []Named) (members []recording.Member) {
	seen := map[string]bool{}
	add := func(host string, db recording.Database) {
		if seen[db.Spooled] || db.Printed != "" || r.ctx.Err() != nil {
			return
		}
		seen[db.Spooled] = true
		if member, ok := r.memberOf(db); ok {
			member.Host = cmp.Or(host, podOf(db.Origin))
			members = append(members, member)
		}
	}
	for _, node := range nodes {
		for _, db := range node.Databases {
			if db.Source == nil {
				db.Source = &node.Source
			}
			host := db.Holder
			if db.Source.Name == node.Source.Name && node.Source.Kind == "sos report" {
				host = cmp.Or(host, node.Host)
			}
			add(host, db)
		}
	}
	for _, db := range slices.Concat(r.loose.central, r.loose.joining) {
		add("", db)
	}
	return members
}

// memberOf returns the file of a member; ok is false for another file.
func (r *filesReader) memberOf(db recording.Database) (member recording.Member, ok bool) {
	info, err := db.Inspect(r.ctx)
	if errors.Is(err, file.ErrJoinOnly) {
		log, err := file.OpenMember(r.ctx, nil, db.Spooled)
		if err != nil {
			return member, false
		}
		defer log.Close()
		info.Name, info.Server, info.Cluster = log.Header.Name, log.Header.Server, log.Header.Cluster
	} else if err != nil {
		return member, false
	}
	kind := workdir.KindOfSchema(info.Name)
	member = recording.Member{Database: db, Of: kind, Server: info.Server, Cluster: info.Cluster}
	return member, info.Server != "" && (kind == workdir.NB || kind == workdir.SB)
}

// podFile matches the names of databases that were read in a pod: POD_nbdb.
var podFile = lazyregexp.New(`^(.+)_[ns]bdb(?:\.gz)?$`)

// podOf returns the pod in the name of a database, "" for none.
func podOf(origin string) string {
	if match := podFile.FindStringSubmatch(path.Base(origin)); match != nil {
		return match[1]
	}
	return ""
}

// keepMembers gives each plan the files of the other members of its databases' clusters, and what
// their servers printed. A file goes to the first plan with a database of its cluster, unless a plan
// uses it as its database.
func keepMembers(found *Found, plans []*Plan) {
	used := map[string]bool{}
	for _, plan := range plans {
		for _, db := range plan.Databases {
			if db.Used {
				used[db.Spooled], used[db.SHA256] = true, true
			}
		}
	}
	for _, member := range found.Members {
		if used[member.Spooled] || used[member.SHA256] {
			continue
		}
		if plan := planOfCluster(plans, member.Of, member.Cluster); plan != nil {
			used[member.SHA256] = true // copies of it are not kept
			plan.Members = append(plan.Members, member)
		}
	}
	for _, status := range found.Statuses {
		kind := workdir.KindOfSchema(status.Database)
		if plan := planOfCluster(plans, kind, status.Cluster); plan != nil && (kind == workdir.NB || kind == workdir.SB) {
			plan.Statuses = append(plan.Statuses, status)
		}
	}
}

// planOfCluster returns the first plan with a database of a cluster, or of any cluster if none is
// given; nil for none.
func planOfCluster(plans []*Plan, kind workdir.Kind, cluster string) *Plan {
	for _, plan := range plans {
		if db := plan.Database(kind); db != nil && db.Info.Server != "" && (cluster == "" || db.Info.Cluster == cluster) {
			return plan
		}
	}
	return nil
}
