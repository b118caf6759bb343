package graph

import (
	"io"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
)

// recorded is the recorded state that no database file holds.
type recorded struct {
	interfaces map[string]ovsdb.Record      // by name, from ovs-vsctl list interface
	ports      map[string]map[string]bool   // whether a port was down, by bridge and number, from ovs-ofctl show
	members    map[string]map[string]string // "enabled", "disabled" or "active", by bond and member
}

func readRecorded(wd *workdir.Dir, bridges []string) (*recorded, error) {
	r := &recorded{interfaces: map[string]ovsdb.Record{}, ports: map[string]map[string]bool{}, members: map[string]map[string]string{}}
	err := readFile(wd.Recorded(workdir.RecordedListInterface), func(f io.Reader) error {
		interfaces, err := ovsdb.Listing(f)
		for _, i := range interfaces {
			r.interfaces[i.Column("name")] = i
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, bridge := range bridges {
		err := readFile(wd.BridgeRecorded(bridge, workdir.RecordedShow), func(f io.Reader) error {
			r.ports[bridge] = map[string]bool{}
			for _, p := range openflow.Show(f).Ports {
				r.ports[bridge][strconv.Itoa(p.Number)] = p.Down()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return r, readFile(wd.Recorded(workdir.RecordedBond), r.readBonds)
}

// readFile reads a recorded file; it skips a missing one.
func readFile(path string, read func(io.Reader) error) error {
	f, ok, err := workdir.OpenCollected(path)
	if !ok {
		return err
	}
	defer f.Close()
	return read(f)
}

// readBonds reads the output of bond/show.
func (r *recorded) readBonds(f io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(f, workdir.MaxText))
	for bond := range appctl.Bonds(string(text)) {
		members := map[string]string{}
		for name, m := range bond.Members {
			switch {
			case name == bond.Active:
				members[name] = "active"
			case m.Enabled:
				members[name] = "enabled"
			default:
				members[name] = "disabled"
			}
		}
		r.members[bond.Name] = members
	}
	return err
}

// state returns the state of an interface, and the reason if it was not up.
func (r *recorded) state(bridge, number, name string) (s State, reason string) {
	i := r.interfaces[name]
	failure, link := i.Column("error"), i.Column("link_state")
	switch {
	case failure != "" && failure != "[]":
		return Failed, failure
	case link == "down" && i.Column("admin_state") == "down":
		return Down, "taken down"
	case link == "down":
		return Down, "no link"
	case strings.Contains(i.Column("status"), "tunnel_egress_iface_carrier=down"):
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

var bfdState = regexp.MustCompile(`[{ ]state="?([a-z_]+)`)

// bfd returns the state of an interface's BFD session, "" if it has none.
func (r *recorded) bfd(name string) string {
	if m := bfdState.FindStringSubmatch(r.interfaces[name].Column("bfd_status")); m != nil {
		return m[1]
	}
	return ""
}
