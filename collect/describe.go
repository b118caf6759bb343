package collect

import (
	"maps"
	"slices"

	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// Description describes what a source holds of a node, and what a replica can and
// cannot answer. Its JSON is the output of inspect.
type Description struct {
	Name       string                `json:"name"`
	Host       string                `json:"host,omitempty"`
	Source     workdir.Source        `json:"source"`
	OVSVersion string                `json:"ovs_version,omitempty"`
	OVNVersion string                `json:"ovn_version,omitempty"`
	Bridges    []BridgeDescription   `json:"bridges"`
	Databases  []DatabaseDescription `json:"databases"`
	OVN        OVN                   `json:"ovn"`
	Recorded   []string              `json:"recorded"`
	// HostOutputs are the outputs and texts about the machine and the programs of OVN.
	HostOutputs []string         `json:"host_outputs,omitempty"`
	Logs        []LogDescription `json:"logs,omitempty"`
	Can         []string         `json:"can"`
	Cannot      []string         `json:"cannot"`
	// Unused are outputs of Open vSwitch and OVN that nothing uses.
	Unused  []string `json:"unused,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
	Lost    []string `json:"lost,omitempty"`
}

// BridgeDescription lists the dumps of a bridge, the best of each first.
type BridgeDescription struct {
	Name  string                             `json:"name"`
	Dumps map[workdir.Dump][]DumpDescription `json:"dumps"`
}

// LogDescription counts the logs of a program, present and rotated.
type LogDescription struct {
	Program string `json:"program"`
	Files   int    `json:"files"`
}

// DumpDescription is one dump.
type DumpDescription struct {
	OpenFlow string `json:"openflow"`
	Entries  int    `json:"entries"`
	Lost     int    `json:"lost"`
	Used     bool   `json:"used"`
	Origin   string `json:"origin"`
}

// DatabaseDescription is one database file.
type DatabaseDescription struct {
	Kind    workdir.Kind `json:"kind,omitempty"`
	Name    string       `json:"name"`
	Form    string       `json:"form"`
	Schema  string       `json:"schema"`
	Size    int64        `json:"size"`
	Gzip    bool         `json:"gzip"`
	Records int          `json:"records"`
	Damaged int          `json:"damaged"`
	Origin  string       `json:"origin"`
	Used    bool         `json:"used"`
	Remarks []string     `json:"remarks,omitempty"`
}

// Describe returns the description of the plan, which must come from Inspect.
func (p *Plan) Describe() Description {
	node := p.Recording
	description := Description{Name: p.Name, Host: node.Host, Source: node.Source, OVSVersion: p.Versions.OVS, OVNVersion: p.Versions.OVN,
		Bridges: []BridgeDescription{}, Databases: []DatabaseDescription{}, Recorded: []string{},
		OVN: p.OVN(), Unused: node.Unused, Remarks: node.Remarks, Lost: append(append([]string(nil), node.Lost...), p.Broken...)}
	for _, bridge := range p.Bridges {
		description.Bridges = append(description.Bridges, describeBridge(bridge))
	}
	for _, db := range p.Databases {
		description.Databases = append(description.Databases, DatabaseDescription{Kind: db.Kind, Name: db.Info.Name, Form: string(db.Info.Form), Schema: db.Info.Version,
			Size: db.Size, Gzip: db.Info.Gzip, Records: db.Info.Records, Damaged: db.Info.Damaged, Origin: origin(db.Origin, db.Source), Used: db.Used, Remarks: db.Remarks})
	}
	for _, output := range p.Recorded {
		name := string(output.Command)
		if output.Bridge != "" {
			name = output.Bridge + "/" + name
		}
		description.Recorded = append(description.Recorded, name)
	}
	for _, output := range p.HostOutputs {
		if output.Device == "" {
			description.HostOutputs = append(description.HostOutputs, string(output.Command))
		}
	}
	description.Logs = describeLogs(p.HostLogs)
	description.Can, description.Cannot = p.answers()
	return description
}

func describeLogs(logs []recording.Log) (list []LogDescription) {
	count := map[string]int{}
	for _, log := range logs {
		count[log.Program]++
	}
	for _, program := range slices.Sorted(maps.Keys(count)) {
		list = append(list, LogDescription{program, count[program]})
	}
	return list
}

func describeBridge(bridge Bridge) BridgeDescription {
	description := BridgeDescription{Name: bridge.Name, Dumps: map[workdir.Dump][]DumpDescription{}}
	for dump, list := range bridge.Dumps {
		for _, one := range list {
			description.Dumps[dump] = append(description.Dumps[dump],
				DumpDescription{OpenFlow: one.OpenFlow.String(), Entries: one.Entries, Lost: one.Lost, Used: one.Used, Origin: one.Origin})
		}
	}
	return description
}
