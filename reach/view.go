package reach

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/trace/names"
)

// view is what one session has: its endpoints, and what decides about their packets.
type view struct {
	endpoints map[string]names.Endpoint // by the name of a member
	order     []string                  // the names, sorted
	services  []names.Endpoint          // each VIP once
	ports     []Port                    // of ACLs
	neutron   bool
	known     bool // the northbound databases are
	*facts
}

// newView returns what northbound databases say about endpoints.
func newView(ctx context.Context, databases []*file.Index, all *names.Names) (*view, error) {
	v := &view{endpoints: map[string]names.Endpoint{}, facts: newFacts()}
	v.known = len(databases) > 0
	for _, db := range databases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := v.read(db); err != nil {
			return nil, err
		}
	}
	v.addEndpoints(all.Senders())
	v.addServices(all.Services())
	return v, nil
}

func (v *view) read(db *file.Index) error {
	if err := v.facts.read(db); err != nil {
		return err
	}
	for row, err := range db.Rows("ACL", "match") {
		if err != nil {
			return err
		}
		v.ports = append(v.ports, portsIn(row.String("match"))...)
	}
	for row, err := range db.Rows("Logical_Switch", "external_ids") {
		if err != nil {
			return err
		}
		for key := range row.Map("external_ids") {
			v.neutron = v.neutron || strings.HasPrefix(key, "neutron:")
		}
	}
	slices.SortFunc(v.ports, ComparePorts)
	v.ports = slices.Compact(v.ports)
	return nil
}

// addEndpoints adds endpoints by their names, and those whose name several have by the
// names of their logical ports.
func (v *view) addEndpoints(all []names.Endpoint) {
	count := map[string]int{}
	for _, e := range all {
		count[e.Name]++
	}
	for _, e := range all {
		name := e.Name
		if count[name] > 1 {
			name = e.LogicalPort
		}
		if _, exists := v.endpoints[name]; !exists {
			v.order = append(v.order, name)
			v.endpoints[name] = e
		}
	}
	slices.Sort(v.order)
}

func (v *view) addServices(all []names.Endpoint) {
	for _, e := range all {
		for _, backend := range e.Backends {
			v.backend(backend, e.Name+" "+e.Protocol)
		}
		if !v.hasService(e) {
			v.services = append(v.services, e)
		}
	}
}

func (v *view) hasService(e names.Endpoint) bool {
	return slices.ContainsFunc(v.services, func(o names.Endpoint) bool {
		return o.Name == e.Name && o.Protocol == e.Protocol && vip(o) == vip(e)
	})
}

// fitting returns what to group by: what the user of the deployment thinks in.
func (v *view) fitting() By {
	for _, e := range v.endpoints {
		if e.Kind == names.Pod {
			return ByNamespace
		}
	}
	if v.neutron {
		return ByGroup
	}
	return ByNetwork
}

// part returns the namespace, the port groups or the network of an endpoint.
func (v *view) part(e names.Endpoint, by By) string {
	network := shortened(strings.TrimPrefix(cmp.Or(e.Network, e.Switch, "no network"), "neutron-"))
	switch by {
	case ByNamespace:
		if namespace, _, ok := strings.Cut(e.Name, "/"); ok && (e.Kind == names.Pod || e.Kind == names.NodePort) {
			return namespace
		}
		return network
	case ByGroup:
		var found []string
		for _, g := range v.groups[e.LogicalPort] {
			if g != dropGroup {
				found = append(found, groupName(g))
			}
		}
		return cmp.Or(strings.Join(found, "+"), "no group")
	case ByPort:
		return e.Name
	}
	return network
}

// dropGroup is the port group of neutron that has every port with a security group.
const dropGroup = "neutron_pg_drop"

var isUUID = regexp.MustCompile(`[0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}`)

// shortened cuts UUIDs to their first digits.
func shortened(text string) string {
	return isUUID.ReplaceAllStringFunc(text, func(uuid string) string { return uuid[:8] })
}

// groupName returns the name of a port group; that of a security group is its UUID.
func groupName(name string) string {
	if rest, ok := strings.CutPrefix(name, "pg_"); ok && isUUID.MatchString(rest) {
		return shortened(rest)
	}
	return shortened(name)
}
