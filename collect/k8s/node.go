package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"

	"ovs-offline/collect"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// visit asks one node for what it is.
type visit struct {
	transfer
	layout layout
	target Target // where OVS is asked
	survey *survey
	shared *shared // nil where one node is collected
	told   *recording.Node
}

// ask takes the node's OVS, and its OVN databases. What could not be had of
// the latter is named, and doesn't lose the former.
func (v *visit) ask(ctx context.Context) error {
	if err := v.askOVS(ctx); err != nil {
		return err
	}
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		err := v.askOVN(ctx, k)
		if ctx.Err() != nil || errors.Is(err, errLocal) {
			return err
		}
		if err != nil {
			v.lostDatabase(k, fmt.Sprintf("the %s database: %v", k.Title(), err))
		}
	}
	return nil
}

func (v *visit) askOVS(ctx context.Context) error {
	frames, err := v.run(ctx, v.target, nodeText, workdir.ListedTables()...)
	if err != nil {
		return err
	}
	if v.told.Bridges, err = bridgeNames(take(frames, "bridges")); err != nil {
		return fmt.Errorf("%s: %w", v.target, err)
	}
	v.version(take(frames, "version"))
	v.database(v.target, take(frames, "backup"), workdir.OVS)
	v.outputs(frames, "")
	groups, err := v.each(ctx, v.target, bridgesText, v.told.Bridges)
	if err != nil {
		return err
	}
	for i, frames := range groups {
		v.outputs(frames, v.told.Bridges[i])
	}
	if frames, err = v.run(ctx, v.target, datapathText); err != nil {
		return err
	}
	v.outputs(frames, "")
	return nil
}

// take finds the frame of a name; the texts make one of each.
func take(frames []frame, name string) frame {
	i := slices.IndexFunc(frames, func(f frame) bool { return f.name == name })
	if i < 0 {
		return frame{code: -1, stderr: "it was not asked for"}
	}
	return frames[i]
}

var runningVersion = regexp.MustCompile(`\(Open vSwitch\) ([0-9]\S*)`)

func (v *visit) version(f frame) {
	text, err := os.ReadFile(f.file)
	if m := runningVersion.FindStringSubmatch(string(text)); err == nil && m != nil {
		v.told.OVSVersion = m[1]
	}
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

// database hands on a backup; one that failed is lost.
func (v *visit) database(target Target, f frame, k workdir.Kind) {
	origin := target.String() + ": ovsdb-client backup " + schema(k)
	if f.code != 0 {
		v.lostDatabase(k, origin+": "+f.failure())
		return
	}
	v.told.Databases = append(v.told.Databases, recording.Database{Origin: origin, File: f.file, Size: f.size})
}

func (v *visit) lostDatabase(k workdir.Kind, text string) {
	v.told.Lost = append(v.told.Lost, text)
	if v.told.LostDatabases == nil {
		v.told.LostDatabases = map[workdir.Kind][]string{}
	}
	v.told.LostDatabases[k] = append(v.told.LostDatabases[k], text)
}

// outputs hands on what commands said; bridge is "" for those that are about
// the whole node. One that failed is lost, unless there was nothing to tell; a
// dump is, if no OpenFlow version had it.
func (v *visit) outputs(frames []frame, bridge string) {
	failed := map[recording.Meaning][]frame{}
	for _, f := range frames {
		m, version, known := meaning(f.name)
		switch {
		case !known:
		case f.code != 0:
			failed[m] = append(failed[m], f)
		default:
			o := recording.Output{Meaning: m, Bridge: bridge, OpenFlow: version, Origin: v.target.String() + ": " + command(f.name, bridge), File: f.file, Size: f.size}
			v.told.All = append(v.told.All, o)
			if said := f.firstError(); said != "" {
				v.told.Remarks = append(v.told.Remarks, command(f.name, bridge)+" said as well: "+said)
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(failed)) {
		if len(v.told.Outputs(m, bridge)) == 0 {
			v.lost(m, failed[m], bridge)
		}
	}
}

// lost names a command that failed, in all the ways that were tried, by the
// most telling failure: that a version is not spoken is none. Flows every
// bridge has.
func (v *visit) lost(m recording.Meaning, failed []frame, bridge string) {
	i := slices.IndexFunc(failed, func(f frame) bool { return !f.unsupported() })
	if i < 0 && m == recording.Flows {
		i = 0
	}
	if i >= 0 {
		v.told.Lost = append(v.told.Lost, v.target.String()+": "+command(failed[i].name, bridge)+": "+failed[i].failure())
	}
}

// meaning reads the name of a frame: "dump-flows OpenFlow15", "list Port",
// "bfd/show". known is false for those that are no output to keep.
func meaning(name string) (m recording.Meaning, version string, known bool) {
	word, rest, _ := strings.Cut(name, " ")
	switch {
	case word == "list":
		return recording.Meaning(workdir.RecordedList(rest)), "", true
	case rest != "":
		return recording.Meaning(word), rest, true
	}
	return recording.Meaning(strings.ReplaceAll(name, "/", ".")), "", strings.Contains(name, "/")
}

// command is what was run for a frame, as a person would.
func command(name, bridge string) string {
	word, rest, _ := strings.Cut(name, " ")
	text := "ovs-appctl " + name
	switch {
	case word == "list":
		text = "ovs-vsctl " + name
	case rest != "":
		text = "ovs-ofctl -O " + rest + " " + word
	}
	return strings.TrimSuffix(text+" "+bridge, " ")
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
