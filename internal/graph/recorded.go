package graph

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
)

// recorded is the live state that no database file keeps.
type recorded struct {
	interfaces map[string]map[string]string // what list interface said, by name and column
	ports      map[string]map[string]bool   // whether a port was down, by bridge and number (ovs-ofctl show)
	members    map[string]map[string]string // by bond and member: "enabled", "disabled", "active"
}

func readRecorded(wd *workdir.Dir, bridges []string) (*recorded, error) {
	r := &recorded{interfaces: map[string]map[string]string{}, ports: map[string]map[string]bool{}, members: map[string]map[string]string{}}
	err := with(wd.Recorded(workdir.RecordedListInterface), func(f io.Reader) error {
		records, err := ovsdb.Listing(f)
		for _, record := range records {
			columns := map[string]string{}
			for _, c := range record.Columns {
				columns[c.Column] = c.Text
			}
			r.interfaces[bare(columns["name"])] = columns
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, bridge := range bridges {
		err := with(wd.BridgeRecorded(bridge, workdir.RecordedShow), func(f io.Reader) error {
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
	return r, with(wd.Recorded(workdir.RecordedBond), r.readBonds)
}

// with opens a recorded file; one that is not there is passed over.
func with(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// bare takes the quotes off a string of ovs-vsctl's.
func bare(text string) string {
	if s, err := strconv.Unquote(text); err == nil {
		return s
	}
	return text
}

// readBonds reads bond/show.
func (r *recorded) readBonds(f io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(f, 16<<20))
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

// state is how an interface was; why says what is wrong with it.
func (r *recorded) state(bridge, number, name string) (s State, why string) {
	if columns := r.interfaces[name]; columns != nil {
		switch {
		case columns["error"] != "" && columns["error"] != "[]":
			return Failed, bare(columns["error"])
		case columns["link_state"] == "down" && columns["admin_state"] == "down":
			return Down, "taken down"
		case columns["link_state"] == "down":
			return Down, "no link"
		case strings.Contains(columns["status"], "tunnel_egress_iface_carrier=down"):
			return Down, "the tunnel's egress has no carrier"
		case columns["link_state"] == "up":
			return Up, ""
		}
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

// bfd is the state of an interface's BFD session, "" where it has none.
func (r *recorded) bfd(name string) string {
	if m := bfdState.FindStringSubmatch(r.interfaces[name]["bfd_status"]); m != nil {
		return m[1]
	}
	return ""
}
