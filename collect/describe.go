package collect

import (
	"maps"
	"slices"

	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
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
	// Namespaces are the named network namespaces of which outputs were recorded.
	Namespaces []NamespaceDescription `json:"namespaces,omitempty"`
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

// NamespaceDescription lists the recorded outputs of a named network namespace.
type NamespaceDescription struct {
	Name     string   `json:"name"`
	Recorded []string `json:"recorded"`
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
	description.Namespaces = describeNamespaces(p.Recorded)
	for _, output := range p.Recorded {
		if output.Namespace != "" {
			continue
		}
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

// describeNamespaces lists the outputs of each namespace; those of one follow each other.
func describeNamespaces(outputs []recording.Output) (list []NamespaceDescription) {
	for _, output := range outputs {
		if output.Namespace == "" {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Name != output.Namespace {
			list = append(list, NamespaceDescription{Name: output.Namespace})
		}
		last := &list[len(list)-1]
		last.Recorded = append(last.Recorded, output.Command.File())
	}
	return list
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
