package whatif

import (
	"context"
	"fmt"
	"slices"

	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// doubts returns the reasons why another NB database may not belong to the deployment: it has none
// of its switches and routers, or is from another release of OVN.
func doubts(ctx context.Context, collected, other string) ([]string, error) {
	was, err := readNB(ctx, collected)
	if err != nil {
		return nil, err
	}
	is, err := readNB(ctx, other)
	if err != nil {
		return nil, err
	}
	var found []string
	if len(was.uuids()) > 0 && len(is.uuids()) > 0 && !was.shares(is) {
		found = append(found, fmt.Sprintf("%s is perhaps the database of another deployment: it has none of the %d logical switches and routers of the collected one", other, len(was.uuids())))
	}
	if was.Info.Version != is.Info.Version || was.ovn() != is.ovn() && was.ovn() != "" && is.ovn() != "" {
		found = append(found, fmt.Sprintf("%s is from another release of OVN than the collected database: %s, not %s", other, is.release(), was.release()))
	}
	return found, nil
}

// networks are the logical switches and routers of an NB database.
type networks struct{ *file.Content }

func readNB(ctx context.Context, path string) (networks, error) {
	content, _, err := file.Read(ctx, path, "Logical_Switch", "Logical_Router")
	if err == nil && content.Info.Name != ovsdb.NB {
		err = fmt.Errorf("%w: %s holds %s, not %s", ErrRefused, path, content.Info.Name, ovsdb.NB)
	}
	return networks{content}, err
}

// uuids returns the UUIDs of the switches and routers.
func (n networks) uuids() []string {
	return append(n.UUIDs("Logical_Switch"), n.UUIDs("Logical_Router")...)
}

// shares reports whether two databases have a switch or a router in common.
func (n networks) shares(other networks) bool {
	known := map[string]bool{}
	for _, uuid := range n.uuids() {
		known[uuid] = true
	}
	return slices.ContainsFunc(other.uuids(), func(uuid string) bool { return known[uuid] })
}

// ovn returns the series of the ovn-northd that wrote the database, "" if it is not known.
func (n networks) ovn() string {
	if n.Info.Program == "" {
		return ""
	}
	return versions.Minor(versions.Of(versions.Pair{}, n.Info).OVN)
}

func (n networks) release() string {
	if n.ovn() == "" {
		return "schema " + n.Info.Version
	}
	return fmt.Sprintf("%s (schema %s)", n.ovn(), n.Info.Version)
}
