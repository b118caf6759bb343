package flows

import (
	"context"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/pkg/openflow/odp"
	"ovs-offline/snapshot/node"
	"ovs-offline/workdir"
)

// Recorded is a recorded flow of the datapath in names, which no replica was asked about. Flows follow each other
// by recirculations.
type Recorded struct {
	Megaflow
	Recirculation uint32   // that the flow resumes, 0 for none
	Next          []uint32 // the recirculations that the flow sends packets to
}

// ReadRecorded calls use with each recorded flow of the datapath of a node, and returns how many lines can't be
// read. Its error wraps ErrNoMegaflows where no such flows were recorded.
func ReadRecorded(ctx context.Context, source Source, use func(Recorded) error) (lost int, err error) {
	list, lost, err := readMegaflows(ctx, source.Dir)
	if err != nil {
		return lost, err
	}
	opened, err := Open(ctx, source.Name, source.Dir, "")
	if err != nil {
		return lost, err
	}
	defer opened.Close()
	names, err := recordedPortNames(source.Dir)
	if err != nil {
		return lost, err
	}
	for _, recorded := range list {
		named := Recorded{opened.inNames(recorded, names), recorded.recirc, odp.Recirculations(recorded.Actions)}
		if err := use(named); err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// recordedPortNames returns the names of the ports of the datapath by their numbers, from dpctl/show, or else from
// dpif/show.
func recordedPortNames(wd *workdir.Dir) (map[string]string, error) {
	names := map[string]string{}
	datapath, _, err := wd.CollectedText(wd.Recorded(workdir.RecordedDatapathShow))
	if err != nil {
		return nil, err
	}
	for port := range appctl.DatapathPorts(datapath) {
		names[port.Number] = port.Name
	}
	bridges, _, err := wd.CollectedText(wd.Recorded(workdir.RecordedDpifShow))
	if err != nil {
		return nil, err
	}
	for port := range appctl.BridgePorts(bridges) {
		if names[port.Datapath] == "" && !node.IsTunnel(port.Type) {
			names[port.Datapath] = port.Name
		}
	}
	return names, nil
}
