package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
	"ovs-offline/replica/restore/tables"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Node is what the steps work on: what was collected, the running replica, and
// the report.
type Node struct {
	Workdir  *workdir.Dir
	Manifest *workdir.Manifest
	Runtime  runtime.Runtime
	DB       *ovsdb.Client // of the OVS database's working copy
	Isolated bool          // the daemons have a network namespace of their own
	Report   *report.Report
	Progress func(what string) // told of each step; nil for none
	Bridges  []*Bridge
	Facts    *tables.Facts // about the collected flows; nil to read them when they are needed

	tableSteps *tables.Tables // nil until the first of its steps runs

	clockHeld bool                     // the replica's clock stands still
	sFlow     map[string]ovsdb.Columns // the sFlow rows that are kept back, by bridge
	mirrors   []mirror                 // the mirrors whose outputs are kept back
	expected  map[string]bool          // lines that ovs-vswitchd logs because of what a replica is
}

// Bridge is a bridge as the database has it.
type Bridge struct {
	Name         string
	UUID         string
	DatapathType string
	FailMode     string
	Protocols    []string
	OtherConfig  map[string]string
	HasControl   bool // it has Controller rows
	Ports        []*Port
	withheld     []*Port // those that are added later, in order
	mirrors      []string
	tree         string // the column that turns its spanning tree on; "" where it has none
	failsOpen    bool   // it had failed open on the live node
	speaks       string // the best OpenFlow version in which it answers; "" until it was asked
}

// Port is a port of a bridge: one interface, or the members of a bond.
type Port struct {
	Name       string
	UUID       string
	BondMode   string
	LACP       string
	Interfaces []*Interface
}

// Interface is one interface.
type Interface struct {
	Name      string
	UUID      string
	Type      string
	OfPort    int // 0 where the database has none
	Requested int // the ofport_request
	Error     string
	Options   map[string]string
}

// Load reads the bridges from the database.
func (n *Node) Load(ctx context.Context) error {
	interfaces, err := n.loadInterfaces(ctx)
	if err != nil {
		return err
	}
	ports, err := n.loadPorts(ctx, interfaces)
	if err != nil {
		return err
	}
	rows, err := n.DB.Select(ctx, "Bridge", "name", "datapath_type", "fail_mode", "protocols", "other_config", "controller", "ports", "mirrors")
	if err != nil {
		return err
	}
	n.Bridges = nil
	for _, r := range rows {
		b := &Bridge{Name: r.String("name"), UUID: r.UUID, DatapathType: r.String("datapath_type"), FailMode: r.String("fail_mode"),
			Protocols: r.Strings("protocols"), OtherConfig: r.Map("other_config"), HasControl: len(r.UUIDs("controller")) > 0, mirrors: r.UUIDs("mirrors")}
		for _, id := range r.UUIDs("ports") {
			if p := ports[id]; p != nil {
				b.Ports = append(b.Ports, p)
			}
		}
		sort.Slice(b.Ports, func(i, j int) bool { return b.Ports[i].Name < b.Ports[j].Name })
		n.Bridges = append(n.Bridges, b)
	}
	sort.Slice(n.Bridges, func(i, j int) bool { return n.Bridges[i].Name < n.Bridges[j].Name })
	return nil
}

func (n *Node) loadInterfaces(ctx context.Context) (map[string]*Interface, error) {
	rows, err := n.DB.Select(ctx, "Interface", "name", "type", "ofport", "ofport_request", "error", "options")
	if err != nil {
		return nil, err
	}
	byID := map[string]*Interface{}
	for _, r := range rows {
		i := &Interface{Name: r.String("name"), UUID: r.UUID, Type: r.String("type"), Error: r.String("error"), Options: r.Map("options")}
		i.OfPort, _ = r.Int("ofport")
		i.Requested, _ = r.Int("ofport_request")
		byID[r.UUID] = i
	}
	return byID, nil
}

func (n *Node) loadPorts(ctx context.Context, interfaces map[string]*Interface) (map[string]*Port, error) {
	rows, err := n.DB.Select(ctx, "Port", "name", "bond_mode", "lacp", "interfaces")
	if err != nil {
		return nil, err
	}
	byID := map[string]*Port{}
	for _, r := range rows {
		p := &Port{Name: r.String("name"), UUID: r.UUID, BondMode: r.String("bond_mode"), LACP: r.String("lacp")}
		for _, id := range r.UUIDs("interfaces") {
			if i := interfaces[id]; i != nil {
				p.Interfaces = append(p.Interfaces, i)
			}
		}
		byID[r.UUID] = p
	}
	return byID, nil
}

// Interfaces lists all interfaces of a bridge.
func (b *Bridge) Interfaces() []*Interface {
	var all []*Interface
	for _, p := range b.Ports {
		all = append(all, p.Interfaces...)
	}
	return all
}

func (n *Node) say(what string) {
	if n.Progress != nil {
		n.Progress(what)
	}
}

func (n *Node) runDir() string { return n.Workdir.VarRun(workdir.OVS) }

// management is how ovs-ofctl reaches a bridge: by its socket's path, since a
// bridge's name could be taken for a remote ("tcp:...") or an option.
func (n *Node) management(b *Bridge) string {
	return "unix:" + filepath.Join(n.runDir(), b.Name+".mgmt")
}

// ofctl runs ovs-ofctl in an OpenFlow version on a bridge.
func (n *Node) ofctl(ctx context.Context, stdin io.Reader, openflow string, b *Bridge, command string, args ...string) ([]byte, error) {
	return n.ofctlOptions(ctx, stdin, []string{tables.NoNames, "-O", openflow}, b, command, args...)
}

func (n *Node) ofctlOptions(ctx context.Context, stdin io.Reader, options []string, b *Bridge, command string, args ...string) ([]byte, error) {
	argv := append([]string{"ovs-ofctl"}, options...)
	argv = append(argv, "--", command, n.management(b))
	return n.Runtime.Tool(ctx, n.runDir(), stdin, append(argv, args...)...)
}

// appctl runs a command of ovs-vswitchd.
func (n *Node) appctl(ctx context.Context, args ...string) ([]byte, error) {
	return daemon.Ask(ctx, n.Runtime, n.runDir(), "ovs-vswitchd", args...)
}

// recorded opens what was recorded under a name; ok is false where nothing was.
func (n *Node) recorded(path string) (f *os.File, ok bool, err error) {
	f, err = os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return f, err == nil, err
}

// mostText is what is read of a recorded file that is read whole: no command
// that sos runs prints a tenth of it there.
const mostText = 32 << 20

// text reads a recorded file, "" where there is none.
func (n *Node) text(path string) (string, error) {
	f, ok, err := n.recorded(path)
	if !ok {
		return "", err
	}
	defer f.Close()
	first, size, err := n.first(f)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(int(size))
	_, err = io.Copy(&b, first)
	return b.String(), err
}

// first reads a recorded file up to mostText, and remarks where there is more.
func (n *Node) first(f *os.File) (r io.Reader, size int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if info.Size() > mostText {
		n.Report.Remark(fmt.Sprintf("%s has %d bytes: only the first %d are read", n.relative(f.Name()), info.Size(), mostText))
	}
	return io.LimitReader(f, mostText), min(info.Size(), mostText), nil
}

// relative names a file of the workdir as the report does.
func (n *Node) relative(path string) string {
	return strings.TrimPrefix(path, n.Workdir.Path()+"/")
}

// speaks returns the best OpenFlow version in which the bridge answers.
func (n *Node) speaks(ctx context.Context, b *Bridge) (string, error) {
	if b.speaks != "" {
		return b.speaks, nil
	}
	var last error
	for _, v := range openflow.Versions() {
		if !v.In(b.Protocols) {
			continue
		}
		if _, last = n.ofctl(ctx, nil, v.String(), b, "show"); last == nil {
			b.speaks = v.String()
			return b.speaks, nil
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("bridge %s answers in no OpenFlow version: %w", b.Name, last)
}
