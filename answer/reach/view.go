package reach

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/snapshot/names"
)

// view holds the endpoints of one session, and the facts that decide about their packets.
type view struct {
	endpoints map[string]names.Endpoint // by the name of a member
	order     []string                  // the names, sorted
	services  []names.Endpoint          // each VIP once
	ports     []Port                    // of ACLs
	neutron   bool
	known     bool // the northbound databases are
	*facts
}

// newView reads the endpoints, and the facts about them, from northbound databases.
func newView(ctx context.Context, databases []*file.Index, all *names.Names) (*view, error) {
	view := &view{endpoints: map[string]names.Endpoint{}, facts: newFacts()}
	view.known = len(databases) > 0
	for _, db := range databases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := view.read(db); err != nil {
			return nil, err
		}
	}
	view.addEndpoints(all)
	view.addServices(all.Services())
	return view, nil
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
	if err := ovn.EachSwitch(db, func(s *ovn.Switch) {
		for key := range s.IDs {
			v.neutron = v.neutron || strings.HasPrefix(key, "neutron:")
		}
	}); err != nil {
		return err
	}
	slices.SortFunc(v.ports, ComparePorts)
	v.ports = slices.Compact(v.ports)
	return nil
}

// addEndpoints adds each endpoint by its name. Where several endpoints have a name, Find decides which of
// them gets it. The others are added by the names of their logical ports.
func (v *view) addEndpoints(all *names.Names) {
	senders := all.Senders()
	count := map[string]int{}
	for _, endpoint := range senders {
		count[endpoint.Name]++
	}
	for _, endpoint := range senders {
		name := endpoint.Name
		if count[name] > 1 {
			if meant, err := all.Find(name, names.Filter{}); err != nil || meant.LogicalPort != endpoint.LogicalPort {
				name = endpoint.LogicalPort
			}
		}
		if _, exists := v.endpoints[name]; !exists {
			v.order = append(v.order, name)
			v.endpoints[name] = endpoint
		}
	}
	slices.Sort(v.order)
}

func (v *view) addServices(all []names.Endpoint) {
	for _, endpoint := range all {
		for _, backend := range endpoint.Backends {
			v.backend(backend, endpoint.Name+" "+endpoint.Protocol)
		}
		if !v.hasService(endpoint) {
			v.services = append(v.services, endpoint)
		}
	}
}

func (v *view) hasService(e names.Endpoint) bool {
	return slices.ContainsFunc(v.services, func(endpoint names.Endpoint) bool {
		return endpoint.Name == e.Name && endpoint.Protocol == e.Protocol && vip(endpoint) == vip(e)
	})
}

// fitting returns the grouping that suits the deployment.
func (v *view) fitting() By {
	for _, endpoint := range v.endpoints {
		if endpoint.Kind == names.Pod {
			return ByNamespace
		}
	}
	if v.neutron {
		return ByGroup
	}
	return ByNetwork
}

// partOf returns the namespace, the port groups or the network of an endpoint.
func (v *view) partOf(endpoint names.Endpoint, by By) string {
	network := shortened(strings.TrimPrefix(cmp.Or(endpoint.Network, endpoint.Switch, "no network"), "neutron-"))
	switch by {
	case ByNamespace:
		if namespace, _, ok := strings.Cut(endpoint.Name, "/"); ok && (endpoint.Kind == names.Pod || endpoint.Kind == names.NodePort) {
			return namespace
		}
		return network
	case ByGroup:
		var found []string
		for _, group := range v.groups[endpoint.LogicalPort] {
			if group != dropGroup {
				found = append(found, groupName(group))
			}
		}
		return cmp.Or(strings.Join(found, "+"), "no group")
	case ByPort:
		return endpoint.Name
	}
	return network
}

// dropGroup is the port group of neutron that has every port with a security group.
const dropGroup = "neutron_pg_drop"

var isUUID = lazyregexp.New(`[0-9a-f]{8}([-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}`)

// shortened cuts UUIDs to their first digits.
func shortened(text string) string {
	return isUUID.ReplaceAllStringFunc(text, func(uuid string) string { return uuid[:8] })
}

// groupName returns the name of a port group; for a security group, its UUID.
func groupName(name string) string {
	if rest, ok := strings.CutPrefix(name, "pg_"); ok && isUUID.MatchString(rest) {
		return shortened(rest)
	}
	return shortened(name)
}
