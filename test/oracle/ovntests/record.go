// Package ovntests measures traces against OVN's own tests (tests/ovn.at): what went in at a
// simulated chassis, what every chassis had at that moment, and what came out.
package ovntests

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket/pcapgo"

	"ovs-offline/pkg/ovsdb"
)

// Packet is a packet of a test, and what came out of the interfaces of its sandboxes.
type Packet struct {
	Node    string   `json:"node"`  // the sandbox
	Port    string   `json:"port"`  // the interface at which it was put in
	Bytes   string   `json:"bytes"` // in hexadecimal digits, or a flow in text
	Outputs []Output `json:"outputs"`
	Watched []string `json:"watched"` // the interfaces whose output is known: "NODE PORT"
}

// Output is a frame that an interface sent.
type Output struct {
	Node  string `json:"node"`
	Port  string `json:"port"`
	Bytes string `json:"bytes"`
}

// Recorder saves the moments of a test before packets.
type Recorder struct {
	Test string // the folder of the test, ovs_base
	Out  string // the folder for the test's packets
	Most int    // packets to save
}

// PacketFile is the name of the file of a Packet in its folder.
const PacketFile = "packet.json"

// Receive saves all chassis, lets send put the packet in, and saves what came out.
func (r Recorder) Receive(ctx context.Context, packet Packet, send func() error) error {
	saved, err := os.ReadDir(r.Out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(saved) >= r.Most {
		return send()
	}
	folder := filepath.Join(r.Out, fmt.Sprintf("%02d", len(saved)+1))
	sandboxes, err := r.sandboxes()
	if err != nil {
		return err
	}
	var taps []tap
	for _, sandbox := range sandboxes {
		found, err := r.tapsOf(ctx, sandbox)
		if err != nil {
			return err
		}
		taps = append(taps, found...)
		if err := r.saveNode(ctx, sandbox, filepath.Join(folder, "nodes", sandbox)); err != nil {
			return err
		}
	}
	for _, database := range []string{"ovn-nb", "ovn-sb"} {
		if err := copyFile(filepath.Join(r.Test, database, database+".db"), filepath.Join(folder, database+".db")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, sandbox := range sandboxes {
		// At the end: ovn-controller announces addresses at any time, from which bridges learn.
		if err := r.saveOutputs(ctx, r.addresses(sandbox), filepath.Join(folder, "nodes", sandbox)); err != nil {
			return err
		}
	}
	before := read(taps)
	if err := send(); err != nil {
		return err
	}
	packet.Outputs = outputs(ctx, taps, before)
	for _, tap := range taps {
		packet.Watched = append(packet.Watched, tap.node+" "+tap.port)
	}
	text, err := json.MarshalIndent(packet, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, PacketFile), text, 0o600)
}

// sandboxes returns the names of the sandboxes whose ovs-vswitchd and ovn-controller run.
func (r Recorder) sandboxes() ([]string, error) {
	entries, err := os.ReadDir(r.Test)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		running := func(daemon string) bool {
			pid, err := os.ReadFile(filepath.Join(r.Test, entry.Name(), daemon+".pid"))
			if err != nil {
				return false
			}
			_, err = os.Stat(filepath.Join("/proc", strings.TrimSpace(string(pid))))
			return err == nil
		}
		if running("ovs-vswitchd") && running("ovn-controller") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// tap is the file to which an interface writes what it sends.
type tap struct{ node, port, file string }

func (r Recorder) tapsOf(ctx context.Context, sandbox string) (taps []tap, err error) {
	db, err := ovsdb.Connect(ctx, filepath.Join(r.Test, sandbox, "db.sock"), ovsdb.OVS)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Select(ctx, "Interface", "name", "options")
	for _, row := range rows {
		if file := row.Value("options", "tx_pcap"); file != "" {
			if !filepath.IsAbs(file) {
				file = filepath.Join(r.Test, file)
			}
			taps = append(taps, tap{sandbox, row.String("name"), file})
		}
	}
	return taps, err
}

// saveNode writes the state of a sandbox in files that collect takes.
func (r Recorder) saveNode(ctx context.Context, sandbox, folder string) error {
	home := filepath.Join(r.Test, sandbox)
	if err := copyFile(filepath.Join(home, "conf.db"), filepath.Join(folder, "conf.db")); err != nil {
		return err
	}
	appctl := func(command ...string) []string { return r.appctl(sandbox, command...) }
	outputs := map[string][]string{
		"recorded/dpif.show":            appctl("dpif/show"),
		"recorded/dpctl.dump-conntrack": appctl("dpctl/dump-conntrack", "-m"),
		"recorded/tnl.arp.show":         appctl("tnl/arp/show"),
		"recorded/ovs.route.show":       appctl("ovs/route/show"),
		"recorded/tnl.ports.show":       appctl("tnl/ports/show", "-v"),
		"recorded/bfd.show":             appctl("bfd/show"),
	}
	for bridge, socket := range r.bridges(sandbox) {
		for _, dump := range []string{"flows", "groups", "meters"} {
			outputs[bridge+"."+dump+".dump"] = []string{"ovs-ofctl", "-O", "OpenFlow15", "dump-" + dump, "unix:" + socket}
		}
		outputs[bridge+".tlv.dump"] = []string{"ovs-ofctl", "dump-tlv-map", "unix:" + socket}
		outputs["recorded/bridges/"+bridge+"/show"] = []string{"ovs-ofctl", "-O", "OpenFlow15", "show", "unix:" + socket}
		outputs["recorded/bridges/"+bridge+"/dpif.show-dp-features"] = appctl("dpif/show-dp-features", bridge)
	}
	return r.saveOutputs(ctx, outputs, folder)
}

// addresses returns the commands that print what the bridges of a sandbox have learned, by the names
// of files.
func (r Recorder) addresses(sandbox string) map[string][]string {
	outputs := map[string][]string{}
	for bridge := range r.bridges(sandbox) {
		outputs["recorded/bridges/"+bridge+"/fdb.show"] = r.appctl(sandbox, "fdb/show", bridge)
	}
	return outputs
}

// bridges returns the management sockets of the bridges of a sandbox, by the bridges' names.
func (r Recorder) bridges(sandbox string) map[string]string {
	sockets := map[string]string{}
	management, _ := filepath.Glob(filepath.Join(r.Test, sandbox, "*.mgmt")) // the pattern is valid
	for _, socket := range management {
		sockets[strings.TrimSuffix(filepath.Base(socket), ".mgmt")] = socket
	}
	return sockets
}

// appctl returns the command that asks the ovs-vswitchd of a sandbox.
func (r Recorder) appctl(sandbox string, command ...string) []string {
	home := filepath.Join(r.Test, sandbox)
	pid, _ := os.ReadFile(filepath.Join(home, "ovs-vswitchd.pid")) // it runs
	return append([]string{"ovs-appctl", "-t", filepath.Join(home, "ovs-vswitchd."+strings.TrimSpace(string(pid))+".ctl")}, command...)
}

// saveOutputs writes what commands print to files in a folder.
func (r Recorder) saveOutputs(ctx context.Context, outputs map[string][]string, folder string) error {
	for name, argv := range outputs {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		if err != nil {
			continue // an older release lacks the command
		}
		if err := write(filepath.Join(folder, name), out); err != nil {
			return err
		}
	}
	return nil
}

// read returns the number of frames in each file.
func read(taps []tap) map[string]int {
	counts := map[string]int{}
	for _, tap := range taps {
		counts[tap.file] = len(framesIn(tap.file))
	}
	return counts
}

// outputs returns the frames that were added to the files, once none has been for a while.
func outputs(ctx context.Context, taps []tap, before map[string]int) (all []Output) {
	const pause, quiet = 100 * time.Millisecond, 5
	now := before
	for same := 0; same < quiet && ctx.Err() == nil; same++ {
		time.Sleep(pause)
		next := read(taps)
		for file, count := range next {
			if count != now[file] {
				same = 0
			}
		}
		now = next
	}
	for _, tap := range taps {
		frames := framesIn(tap.file)
		for _, frame := range frames[min(before[tap.file], len(frames)):] {
			all = append(all, Output{tap.node, tap.port, frame})
		}
	}
	return all
}

// framesIn returns the frames in a capture file, none for one that can't be read.
func framesIn(path string) (frames []string) {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	reader, err := pcapgo.NewReader(file)
	if err != nil {
		return nil
	}
	for {
		frame, _, err := reader.ReadPacketData()
		if err != nil {
			return frames
		}
		frames = append(frames, hex.EncodeToString(frame))
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return write(to, text)
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Sandboxes returns the names of the nodes that were saved in a folder, sorted.
func Sandboxes(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(folder, "nodes"))
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	slices.Sort(names)
	return names, err
}
