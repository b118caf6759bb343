package sets

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ovs-offline/internal/command"
	"ovs-offline/internal/unixctl"
	"ovs-offline/test/daemons/ovs"
)

// Options of Run.
type Options struct {
	Lab  string // the program scripts/lab/lab
	Root string // the root file system of another release; "" for this host's programs
	Name string // of the set

	// Kernel says that the datapaths are the kernel's. Run needs root then, on a machine
	// with the module openvswitch, as scripts/kernel/guest boots.
	Kernel bool
}

// Names returns the names of the sets.
func Names() []string { return slices.Sorted(maps.Keys(plans())) }

// KernelNames returns the names of the sets that are for the kernel's datapath only.
func KernelNames() []string { return slices.Sorted(maps.Keys(kernelPlans())) }

func plans() map[string]func(*plan) {
	return map[string]func(*plan){"openstack": openstack, "kubernetes-ic": kubernetes, "neutron-ovs": neutron}
}

// NamespaceNames returns the names of the sets whose nodes have network namespaces. MissingForNamespaces
// says whether they can run.
func NamespaceNames() []string { return slices.Sorted(maps.Keys(namespacePlans())) }

// OwnNames returns the names of the sets whose packets pass the nodes' own network namespaces, with rules of
// iptables. They need what the sets of NamespaceNames need.
func OwnNames() []string { return slices.Sorted(maps.Keys(ownPlans())) }

func ownPlans() map[string]func(*plan) {
	return map[string]func(*plan){ofDummies: kubernetesHost, "neutron-hybrid": hybrid}
}

// VRFNames returns the names of the sets that need VRFs of the kernel, besides what the sets of OwnNames need.
// MissingForVRFs says whether they can run.
func VRFNames() []string { return slices.Sorted(maps.Keys(vrfPlans())) }

func vrfPlans() map[string]func(*plan) {
	return map[string]func(*plan){"kubernetes-udn": kubernetesUDN}
}

func namespacePlans() map[string]func(*plan) {
	return map[string]func(*plan){"neutron-routers": routers}
}

// ofDummies is a set that cannot run on the kernel's datapath: the devices of its nodes are dummies. Those of
// VRFNames cannot either.
const ofDummies = "kubernetes-host"

// KernelNamespaceNames returns the names of the sets with network namespaces that can run on the kernel's datapath.
func KernelNamespaceNames() []string {
	return slices.DeleteFunc(slices.Concat(NamespaceNames(), OwnNames()), func(name string) bool { return name == ofDummies })
}

// plans returns the plans of the sets that can run with the options.
func (o Options) plans() map[string]func(*plan) {
	all := plans()
	for _, some := range []map[string]func(*plan){namespacePlans(), ownPlans(), vrfPlans(), kernelPlans()} {
		maps.Copy(all, some)
	}
	maps.DeleteFunc(all, func(name string, _ func(*plan)) bool {
		return o.Kernel && (name == ofDummies || slices.Contains(VRFNames(), name)) || !o.Kernel && slices.Contains(KernelNames(), name)
	})
	return all
}

func kernelPlans() map[string]func(*plan) {
	return map[string]func(*plan){"kernel": ofKernel, "kernel-9000": ofJumbo}
}

// Run starts a set, sends its packets, and writes into dir: nodes/NODE with the capture of
// each node, databases, ports, and packets.json, which Load reads. The daemons have ended
// when it returns.
func Run(ctx context.Context, o Options, dir string) (*Set, error) {
	if missing := MissingForVRFs(); missing != "" && slices.Contains(VRFNames(), o.Name) {
		return nil, errors.New(missing)
	}
	all := o.plans()
	build, known := all[o.Name]
	if !known {
		return nil, fmt.Errorf("no set %q; there are %s", o.Name, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	p := &plan{}
	build(p)
	s := &Set{Name: o.Name, Dir: dir}
	return s, s.live(ctx, o, func(folder string) error { return s.record(ctx, o, p, folder) })
}

// Capture starts a set and writes into dir what Run does, without packets: nodes/NODE,
// databases and ports. The set needs no plan.
func Capture(ctx context.Context, o Options, dir string) (*Set, error) {
	captured := &Set{}
	err := Live(ctx, o, func(s *Set, folder string) error {
		captured = s
		s.Dir = dir
		return o.run(ctx, "set-capture", folder, dir)
	})
	return captured, err
}

// Live starts a set, lets use work with the running daemons, and ends them. What it gives use are the
// set, with its nodes and ports, and the folder in which scripts/lab/set.sh lays it out.
func Live(ctx context.Context, o Options, use func(s *Set, folder string) error) error {
	s := &Set{Name: o.Name}
	return s.live(ctx, o, func(folder string) error {
		if err := s.readPorts(filepath.Join(folder, "ports")); err != nil {
			return err
		}
		return use(s, folder)
	})
}

// live starts the set in a folder, uses it, and ends its daemons.
func (s *Set) live(ctx context.Context, o Options, use func(folder string) error) (err error) {
	live, err := os.MkdirTemp("", "set.")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(live))
			return
		}
		err = fmt.Errorf("%w (the logs stay in %s)", err, live)
	}()
	start := time.Now()
	defer func() {
		down := o.run(context.WithoutCancel(ctx), "set-down", filepath.Join(live, "s"))
		err = errors.Join(err, down)
	}()
	up := []string{"set-up", o.Name, filepath.Join(live, "s")}
	if o.Kernel {
		up = append([]string{"--kernel"}, up...)
	}
	if err := o.run(ctx, up...); err != nil {
		return err
	}
	s.Timing.Up = seconds(start)
	return use(filepath.Join(live, "s"))
}

func (o Options) run(ctx context.Context, args ...string) error {
	argv := []string{o.Lab}
	if o.Root != "" {
		argv = append(argv, "--root", o.Root)
	}
	_, err := command.Run(ctx, command.Command{Argv: append(argv, args...), Group: true})
	return err
}

// record sends the packets of a running set and writes what came out.
func (s *Set) record(ctx context.Context, o Options, p *plan, live string) (err error) {
	if err := s.readPorts(filepath.Join(live, "ports")); err != nil {
		return err
	}
	w := newWire(live, s.Ports, s.Nodes)
	if o.Kernel {
		if w, err = newKernelWire(live, s.Ports, s.Nodes); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, w.cables.close()) }()
	w.shared, w.hosts = p.shared, p.hosts
	if w.relays, err = openRelays(live); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRelays(w.relays)) }()
	if err := s.readVersions(ctx, w); err != nil {
		return err
	}
	if s.Timing.Earlier, err = sendAll(ctx, w, p.earlier); err != nil {
		return err
	}
	start := time.Now()
	if err := w.whileHostsAnswer(ctx, func() error { return o.run(ctx, "set-capture", live, s.Dir) }); err != nil {
		return err
	}
	s.Timing.Capture = seconds(start)
	if w.macs, err = w.learned(ctx); err != nil {
		return err
	}
	if s.Timing.Packets, err = sendAll(ctx, w, p.packets); err != nil {
		return err
	}
	s.Earlier, s.Packets = sentOf(p.earlier), sentOf(p.packets)
	s.judge(p)
	if err := s.talk(ctx, w, p); err != nil {
		return err
	}
	if err := s.describe(ctx); err != nil {
		return err
	}
	return s.save()
}

func sendAll(ctx context.Context, w *wire, steps []*step) (float64, error) {
	start := time.Now()
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[0].volley != 0 && steps[n].volley == steps[0].volley {
			n++
		}
		if err := w.send(ctx, steps[:n]...); err != nil {
			return 0, err
		}
		steps = steps[n:]
	}
	return seconds(start), nil
}

// readVersions asks the daemons of the first node.
func (s *Set) readVersions(ctx context.Context, w *wire) error {
	text, err := w.ask(ctx, s.Nodes[0], "version")
	if err != nil {
		return err
	}
	s.OVS = lastWord(text)
	ovn := filepath.Join(w.home(s.Nodes[0]), "ovn")
	if _, err := os.Stat(filepath.Join(ovn, "ovn-controller.pid")); err != nil {
		return nil // no OVN
	}
	reply, err := unixctl.Run(ctx, ovn, "ovn-controller", "version")
	// The first line has the version, later ones those of libraries.
	line, _, _ := strings.Cut(string(reply), "\n")
	s.OVN = lastWord(line)
	return err
}

func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

func sentOf(steps []*step) []*Packet {
	var list []*Packet
	for _, step := range steps {
		if step.unsent == nil {
			list = append(list, &step.Packet)
		}
	}
	return list
}

// readPorts reads the list that the lab wrote.
func (s *Set) readPorts(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 6 {
			return fmt.Errorf("%s: line %q has fewer than six words", file, lines.Text())
		}
		p := Port{Node: words[0], Bridge: words[1], Name: words[2], Number: words[3], Role: words[4], Label: words[5]}
		if len(words) > 6 {
			p.Namespace = words[6]
		}
		s.Ports = append(s.Ports, p)
		if p.Node != fabric && !slices.Contains(s.Nodes, p.Node) {
			s.Nodes = append(s.Nodes, p.Node)
		}
	}
	return lines.Err()
}

// judge sets the class of each packet by what came out, and lists those that went another
// way than the lab was built for.
func (s *Set) judge(p *plan) {
	for _, step := range p.earlier {
		step.Class = happened(step.Outputs)
		if step.unsent != nil || !step.arrived() {
			s.surprise(step, "did not come out at "+strings.Join(step.to, ", "))
		} else if !step.recognised() {
			s.surprise(step, "came out as something that its receiver did not ask for")
		}
	}
	for _, step := range p.packets {
		planned := step.Class
		step.Class = happened(step.Outputs)
		if planned == "" && len(step.moved) == 0 {
			continue
		}
		switch {
		case step.unsent != nil:
			s.surprise(step, "was not sent ("+step.unsent.Error()+")")
		case planned != "" && step.Class != planned:
			s.surprise(step, "was "+step.Class+", not "+planned)
		case !step.arrived():
			s.surprise(step, "did not come out at "+strings.Join(step.to, ", "))
		case !step.recognised():
			s.surprise(step, "came out as something that its receiver did not ask for")
		case len(step.moved) > 0:
			s.surprise(step, "met bridges that had learned otherwise: "+strings.Join(step.moved, ", "))
		}
	}
}

func (s *Set) surprise(step *step, what string) {
	var places []string
	for _, o := range step.Outputs {
		places = append(places, o.Label)
	}
	s.Surprises = append(s.Surprises, fmt.Sprintf("packet %d (%s) %s: it came out at %q", step.ID, step.Shows, what, places))
}

// happened returns the class of a packet with these outputs. What comes out at an uplink comes out again at
// what is behind it, or nowhere.
func happened(outputs []Output) string {
	class := Dropped
	for _, o := range outputs {
		switch {
		case o.Role == roleUplink:
		case !o.Own:
			return Generated
		default:
			class = Delivered
		}
	}
	return class
}

// RecordedVariable names a folder with recorded sets, a folder each, which tests use
// instead of running the sets: "make test" records each set once.
const RecordedVariable = "OVS_OFFLINE_SETS"

// KernelVariable names a folder with recorded sets of the kernel's datapath, a folder each:
// "make test-kernel" records them.
const KernelVariable = "OVS_OFFLINE_KERNEL_SETS"

// OfKernel returns recorded sets of a kernel that make test-kernel boots.
func OfKernel(t testing.TB, names []string) []*Set {
	t.Helper()
	folder := os.Getenv(KernelVariable)
	if folder == "" {
		t.Skipf("%s names no folder with sets of the kernel's datapath: make test-kernel records them", KernelVariable)
	}
	var list []*Set
	for _, name := range names {
		s, err := Load(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// RecordedNamespaces returns a set of NamespaceNames that was recorded, or runs it. It skips the test where the
// set cannot run.
func RecordedNamespaces(t testing.TB, lab, name string) *Set {
	t.Helper()
	ovs.Need(t)
	if folder := os.Getenv(RecordedVariable); folder != "" {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Skipf("the set %s was not recorded: %v", name, MissingForNamespaces())
		}
		return Recorded(t, lab, name)
	}
	if missing := MissingForNamespaces(); missing != "" {
		t.Skip(missing)
	}
	return Recorded(t, lab, name)
}

// Recorded returns a set that was recorded, or runs it. lab is the path of the lab's
// program. In -short mode it skips the test.
func Recorded(t testing.TB, lab, name string) *Set {
	t.Helper()
	ovs.Need(t)
	if folder := os.Getenv(RecordedVariable); folder != "" {
		s, err := Load(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s, err := Run(t.Context(), Options{Lab: lab, Name: name}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
