package k8s

import (
	"fmt"
	"os"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// bridge takes the dumps and the recorded state of one bridge.
func (k *keeper) bridge(bridge string, frames []frame) error {
	k.out.Bridges = append(k.out.Bridges, bridge)
	for _, d := range []struct {
		command string
		dump    workdir.Dump
	}{{"dump-flows", workdir.Flows}, {"dump-groups", workdir.Groups}, {"dump-meters", workdir.Meters}, {"dump-tlv-map", workdir.TLV}} {
		if err := k.dumps(bridge, d.command, d.dump, frames); err != nil {
			return err
		}
	}
	for _, name := range []string{workdir.RecordedShow, workdir.RecordedMeterStats} {
		if err := k.versioned(bridge, name, frames); err != nil {
			return err
		}
	}
	for _, name := range []string{workdir.RecordedBridgeFlows, workdir.RecordedFeatures, workdir.RecordedFDB, workdir.RecordedMDB, workdir.RecordedRSTP, workdir.RecordedSTP} {
		for _, f := range frames {
			if f.name != asCommand(name) {
				continue
			}
			if err := k.keep(f, k.staging.BridgeRecorded(bridge, name), "ovs-appctl "+f.name+" "+bridge, workdir.File{Bridge: bridge}); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer is a command's output in one OpenFlow version.
type answer struct {
	frame
	openflow string
	lost     int // lines that were data and can't be used
	first    openflow.Problem
}

// answers are what a command of ovs-ofctl said in each version that was tried,
// the highest first.
func answers(command string, frames []frame) (good []answer, failed []frame) {
	for _, f := range frames {
		name, version, ok := strings.Cut(f.name, " ")
		switch {
		case !ok || name != command:
		case f.code != 0:
			failed = append(failed, f)
		default:
			good = append(good, answer{frame: f, openflow: version})
		}
	}
	return good, failed
}

func ofctl(version, command, bridge string) string {
	return "ovs-ofctl -O " + version + " " + command + " " + bridge
}

// versioned keeps the best answer of a command whose output is kept as it is.
func (k *keeper) versioned(bridge, command string, frames []frame) error {
	good, failed := answers(command, frames)
	if len(good) == 0 {
		k.noAnswer(bridge, command, failed)
		return nil
	}
	return k.keep(good[0].frame, k.staging.BridgeRecorded(bridge, command), ofctl(good[0].openflow, command, bridge), workdir.File{Bridge: bridge, OpenFlow: good[0].openflow})
}

// noAnswer names what no version answered, by the most telling failure: that
// the others were not spoken is none. Flows every bridge has.
func (k *keeper) noAnswer(bridge, command string, failed []frame) {
	for i, f := range failed {
		if !f.unsupported() || i == len(failed)-1 && command == "dump-flows" {
			k.lost(bridge, "ovs-ofctl "+command, f)
			return
		}
	}
}

// dumps keeps the best answer among the dumps, and others for what it can't say.
func (k *keeper) dumps(bridge, command string, dump workdir.Dump, frames []frame) error {
	good, failed := answers(command, frames)
	if len(good) == 0 {
		k.noAnswer(bridge, command, failed)
		return nil
	}
	for i := range good {
		if err := good[i].judge(dump); err != nil {
			return err
		}
	}
	best := 0
	for i, a := range good {
		if a.lost < good[best].lost {
			best = i
		}
	}
	for i, a := range good {
		path, about := k.staging.OtherDump(bridge, dump, a.openflow), workdir.File{Bridge: bridge, OpenFlow: a.openflow}
		if i == best {
			path, about.Remarks = k.staging.DumpFile(bridge, dump), a.remarks(dump)
		}
		if err := k.keep(a.frame, path, ofctl(a.openflow, command, bridge), about); err != nil {
			return err
		}
	}
	return nil
}

// judge reads a dump once.
func (a *answer) judge(dump workdir.Dump) error {
	f, err := os.Open(a.file)
	if err != nil {
		return fmt.Errorf("%w: %w", errLocal, err)
	}
	defer f.Close()
	var problems []openflow.Problem
	switch dump {
	case workdir.Flows:
		for _, p := range openflow.Flows(f) {
			if p != nil {
				problems = append(problems, *p)
			}
		}
	case workdir.Groups:
		_, problems = openflow.Groups(f)
	case workdir.Meters:
		_, problems = openflow.Meters(f)
	case workdir.TLV:
		_, problems = openflow.TLVMap(f)
	}
	for _, p := range problems {
		if p.Lost {
			if a.lost == 0 {
				a.first = p
			}
			a.lost++
		}
	}
	return nil
}

func (a *answer) remarks(dump workdir.Dump) []string {
	var remarks []string
	if a.lost > 0 {
		remarks = append(remarks, fmt.Sprintf("%d lines can't be used; the first: %s", a.lost, a.first))
	}
	if a.openflow == "OpenFlow10" && dump == workdir.Flows {
		remarks = append(remarks, "the bridge speaks OpenFlow 1.0 only: meters and OpenFlow 1.3+ actions are not in its text")
	}
	return remarks
}
