package graph

import (
	"io"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/workdir"
)

// recorded is the recorded state that no database file holds.
type recorded struct {
	interfaces map[string]ovsdb.Record      // by name, from ovs-vsctl list interface
	ports      map[string]map[string]bool   // whether a port was down, by bridge and number, from ovs-ofctl show
	members    map[string]map[string]string // "enabled", "disabled" or "active", by bond and member
}

func readRecorded(wd *workdir.Dir, bridges []string) (*recorded, error) {
	recorded := &recorded{interfaces: map[string]ovsdb.Record{}, ports: map[string]map[string]bool{}, members: map[string]map[string]string{}}
	err := readFile(wd, wd.Recorded(workdir.RecordedListInterface), func(reader io.Reader) error {
		interfaces, err := ovsdb.Listing(reader)
		for _, record := range interfaces {
			recorded.interfaces[record.Column("name")] = record
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, bridge := range bridges {
		err := readFile(wd, wd.BridgeRecorded(bridge, workdir.RecordedShow), func(reader io.Reader) error {
			recorded.ports[bridge] = map[string]bool{}
			for _, port := range openflow.Show(reader).Ports {
				recorded.ports[bridge][strconv.Itoa(port.Number)] = port.Down()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	bonds, _, err := wd.CollectedText(wd.Recorded(workdir.RecordedBond))
	recorded.readBonds(bonds)
	return recorded, err
}

// readFile reads a recorded file; it skips a missing one.
func readFile(wd *workdir.Dir, path string, read func(io.Reader) error) error {
	file, ok, err := wd.Collected(path)
	if !ok {
		return err
	}
	defer file.Close()
	return read(file)
}

// readBonds reads the output of bond/show.
func (r *recorded) readBonds(text string) {
	for bond := range appctl.Bonds(text) {
		members := map[string]string{}
		for name, member := range bond.Members {
			switch {
			case name == bond.Active:
				members[name] = "active"
			case member.Enabled:
				members[name] = "enabled"
			default:
				members[name] = "disabled"
			}
		}
		r.members[bond.Name] = members
	}
}

// state returns the state of an interface, and the reason if it was not up.
func (r *recorded) state(bridge, number, name string) (state State, reason string) {
	record := r.interfaces[name]
	failure, link := record.Column("error"), record.Column("link_state")
	switch {
	case failure != "":
		return Failed, failure
	case link == "down" && record.Column("admin_state") == "down":
		return Down, "taken down"
	case link == "down":
		return Down, "no link"
	case strings.Contains(record.Column("status"), "tunnel_egress_iface_carrier=down"):
		return Down, "the tunnel's egress has no carrier"
	case link == "up":
		return Up, ""
	}
	down, known := r.ports[bridge][number]
	switch {
	case known && down:
		return Down, "no link"
	case known:
		return Up, ""
	}
	return Unknown, ""
}

var bfdState = lazyregexp.New(`[{ ]state="?([a-z_]+)`)

// bfd returns the state of an interface's BFD session, "" if it has none.
func (r *recorded) bfd(name string) string {
	if match := bfdState.FindStringSubmatch(r.interfaces[name].Column("bfd_status")); match != nil {
		return match[1]
	}
	return ""
}
