package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"time"

	"ovs-offline/collect"
	"ovs-offline/internal/workdir"
)

// node collects one node.
type node struct {
	name    string
	layout  layout
	target  Target // where OVS is asked
	survey  *survey
	shared  *shared // nil where one node is collected
	staging *workdir.Staging
	transfer
}

// collect takes the node's OVS, and its OVN databases. What could not be had of
// the latter is named, and doesn't lose the former.
func (n *node) collect(ctx context.Context) ([]workdir.Collection, error) {
	ovs, err := n.collectOVS(ctx)
	if err != nil {
		return nil, err
	}
	out := []workdir.Collection{ovs}
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		c, err := n.collectOVN(ctx, k)
		switch {
		case ctx.Err() != nil || errors.Is(err, errLocal):
			return nil, err
		case err != nil:
			out[0].Lost = append(out[0].Lost, fmt.Sprintf("the %s database: %v", k.Title(), err))
		default:
			out = append(out, c)
		}
	}
	return out, nil
}

func (n *node) begin(k workdir.Kind) workdir.Collection {
	tool := "layout " + n.layout.name
	if v := n.survey.cluster.Version; v != "" {
		tool = "Kubernetes " + v + ", " + tool
	}
	return workdir.Collection{
		Kind:      k,
		Source:    workdir.Source{Kind: "Kubernetes cluster", Name: n.survey.cluster.Name, Tool: tool},
		Host:      n.name,
		Collected: time.Now().UTC().Truncate(time.Second),
	}
}

func (n *node) collectOVS(ctx context.Context) (workdir.Collection, error) {
	out, target := n.begin(workdir.OVS), n.target
	if err := n.staging.Replace(workdir.OVS, false); err != nil {
		return out, err
	}
	frames, err := n.run(ctx, target, nodeText)
	if err != nil {
		return out, err
	}
	k := keeper{staging: n.staging, origin: target.String() + ": ", out: &out}
	bridges, err := k.node(frames)
	if err != nil {
		return out, fmt.Errorf("%s: %w", target, err)
	}
	if err := n.collectBridges(ctx, target, &k, bridges); err != nil {
		return out, err
	}
	frames, err = n.run(ctx, target, datapathText)
	if err != nil {
		return out, err
	}
	return out, k.recorded(frames, nodeRecorded())
}

func (n *node) collectBridges(ctx context.Context, target Target, k *keeper, bridges []string) error {
	groups, err := n.each(ctx, target, bridgesText, bridges)
	if err != nil {
		return err
	}
	for i, frames := range groups {
		if err := k.bridge(bridges[i], frames); err != nil {
			return err
		}
	}
	return nil
}

// record is one command whose output is kept as it is.
type record struct{ frame, name, command string }

// nodeRecorded are the commands that are not about one bridge.
func nodeRecorded() []record {
	const vsctl, appctl = "ovs-vsctl ", "ovs-appctl "
	list := []record{
		{"list Open_vSwitch", workdir.RecordedListOVS, vsctl},
		{"list Bridge", workdir.RecordedListBridge, vsctl},
		{"list Datapath", workdir.RecordedListDatapath, vsctl},
		{"list Interface", workdir.RecordedListInterface, vsctl},
		{"list Port", workdir.RecordedListPort, vsctl},
	}
	for _, name := range []string{workdir.RecordedBFD, workdir.RecordedBond, workdir.RecordedCFM, workdir.RecordedLACP, workdir.RecordedRoutes,
		workdir.RecordedNeighbours, workdir.RecordedTunnels, workdir.RecordedDpifShow, workdir.RecordedTunnelPorts,
		workdir.RecordedDatapathShow, workdir.RecordedDatapathFlows, workdir.RecordedConntrack} {
		list = append(list, record{asCommand(name), name, appctl})
	}
	return list
}

// asCommand turns a recorded file's name into the command of ovs-appctl.
func asCommand(name string) string { return strings.ReplaceAll(name, ".", "/") }

// keeper puts what commands said into the staging.
type keeper struct {
	staging *workdir.Staging
	origin  string // the container, for the manifest
	out     *workdir.Collection
}

var runningVersion = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)

// node takes what is not about one bridge, and returns the bridges.
func (k *keeper) node(frames []frame) (bridges []string, err error) {
	found := map[string]frame{}
	for _, f := range frames {
		found[f.name] = f
	}
	if bridges, err = bridgeNames(found["bridges"]); err != nil {
		return nil, err
	}
	if text, err := os.ReadFile(found["version"].file); err == nil {
		if m := runningVersion.FindStringSubmatch(string(text)); m != nil {
			k.out.OVSVersion = m[1]
		}
	}
	if err := k.database(workdir.OVS, found["backup"]); errors.Is(err, errLocal) {
		return nil, err
	} else if err != nil {
		k.out.Lost = append(k.out.Lost, fmt.Sprintf("the OVS database: %v", err))
	}
	return bridges, k.recorded(frames, nodeRecorded())
}

// bridgeNames reads the JSON of ovs-vsctl list Bridge: a name may hold anything.
func bridgeNames(f frame) ([]string, error) {
	if f.code != 0 {
		return nil, fmt.Errorf("%w: Open vSwitch's database does not answer: %s", collect.ErrNothing, f.failure())
	}
	var listed struct{ Data [][]string }
	text, err := os.ReadFile(f.file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("the list of bridges: %w", err)
	}
	var names []string
	for _, row := range listed.Data {
		if len(row) == 1 {
			names = append(names, row[0])
		}
	}
	sort.Strings(names)
	return names, nil
}

// recorded keeps the outputs that the list names.
func (k *keeper) recorded(frames []frame, list []record) error {
	for _, r := range list {
		for _, f := range frames {
			if f.name != r.frame {
				continue
			}
			if err := k.keep(f, k.staging.Recorded(r.name), r.command+f.name, workdir.File{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep puts the output of a command in its place; one that failed is lost,
// unless it failed because this OVS can't do that.
func (k *keeper) keep(f frame, path, command string, about workdir.File) error {
	if f.code != 0 {
		if !f.unsupported() {
			k.lost(about.Bridge, command, f)
		}
		return nil
	}
	file, err := k.staging.Move(f.file, path)
	if err != nil {
		return fmt.Errorf("%w: %w", errLocal, err)
	}
	file.Origin, file.Bridge, file.OpenFlow, file.Remarks = k.origin+command, about.Bridge, about.OpenFlow, about.Remarks
	if said := f.firstError(); said != "" {
		file.Remarks = append(file.Remarks, "it said as well: "+said)
	}
	k.out.Files = append(k.out.Files, file)
	return nil
}

func (k *keeper) lost(bridge, command string, f frame) {
	if bridge != "" {
		bridge = fmt.Sprintf("bridge %q: ", bridge)
	}
	k.out.Lost = append(k.out.Lost, bridge+command+": "+f.failure())
}

// failure says how a command failed.
func (f frame) failure() string {
	text := fmt.Sprintf("exit code %d", f.code)
	if said := f.firstError(); said != "" {
		text += ": " + said
	}
	return text
}

// firstError is the most telling line of stderr: not what the tools log on the
// way, nor the last line of ovs-appctl, which says that there was an error.
func (f frame) firstError() string {
	logged := ""
	for line := range strings.Lines(f.stderr) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasSuffix(line, "server returned an error"):
		case strings.Contains(line, "|WARN|") || strings.Contains(line, "|ERR|"):
			logged = line
		default:
			return line
		}
	}
	return logged
}

// unsupported tells the failures that lose nothing: this version of OVS, the
// OpenFlow version, the bridge or the datapath has no such thing.
func (f frame) unsupported() bool {
	for _, says := range []string{
		"is not a valid command", "unknown command", "unknown table", // an older OVS
		"version negotiation failed", "none of the usable flow formats", "OFPBRC_BAD_TYPE", "OFPBRC_BAD_STAT", // OpenFlow
		"multicast snooping is disabled", "No such RSTP object", "no such stp object", // bridges
		"Operation not supported", // datapaths
	} {
		if strings.Contains(f.stderr, says) {
			return true
		}
	}
	return false
}
