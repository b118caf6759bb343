package collect

import (
	"os"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
)

// Description says what a node holds and what its replica will answer. Its JSON
// is the output of inspect.
type Description struct {
	Name       string                `json:"name"`
	Host       string                `json:"host,omitempty"`
	Source     workdir.Source        `json:"source"`
	OVSVersion string                `json:"ovs_version,omitempty"`
	OVNVersion string                `json:"ovn_version,omitempty"`
	Bridges    []BridgeDescription   `json:"bridges"`
	Databases  []DatabaseDescription `json:"databases"`
	Recorded   []string              `json:"recorded"`
	Can        []string              `json:"can"`
	Cannot     []string              `json:"cannot"`
	Remarks    []string              `json:"remarks,omitempty"`
	Lost       []string              `json:"lost,omitempty"`
}

// BridgeDescription lists the dumps of a bridge, the best of each first.
type BridgeDescription struct {
	Name  string                             `json:"name"`
	Dumps map[workdir.Dump][]DumpDescription `json:"dumps"`
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

// Describe says what a plan holds, under the name that its node has among others.
func (p *Plan) Describe(name string) (Description, error) {
	n := p.Node
	d := Description{Name: name, Host: n.Host, Source: n.Source, OVSVersion: n.OVSVersion, OVNVersion: n.OVNVersion,
		Bridges: []BridgeDescription{}, Databases: []DatabaseDescription{}, Recorded: []string{},
		Remarks: n.Remarks, Lost: append(append([]string(nil), n.Lost...), p.Broken...)}
	for _, b := range p.Bridges {
		d.Bridges = append(d.Bridges, describeBridge(b))
	}
	for _, db := range p.Databases {
		d.Databases = append(d.Databases, DatabaseDescription{Kind: db.Kind, Name: db.Info.Name, Form: string(db.Info.Form), Schema: db.Info.Version,
			Size: db.Size, Gzip: db.Info.Gzip, Records: db.Info.Records, Damaged: db.Info.Damaged, Origin: origin(db.Origin, db.Source), Used: db.Used, Remarks: db.Remarks})
	}
	for _, o := range p.Recorded {
		name := string(o.Meaning)
		if o.Bridge != "" {
			name = o.Bridge + "/" + name
		}
		d.Recorded = append(d.Recorded, name)
	}
	var err error
	d.Can, d.Cannot, err = p.answers()
	return d, err
}

func describeBridge(b Bridge) BridgeDescription {
	d := BridgeDescription{Name: b.Name, Dumps: map[workdir.Dump][]DumpDescription{}}
	for dump, list := range b.Dumps {
		for _, one := range list {
			d.Dumps[dump] = append(d.Dumps[dump], DumpDescription{OpenFlow: one.OpenFlow, Entries: one.Entries, Lost: one.Lost, Used: one.Used, Origin: one.Origin})
		}
	}
	return d
}

// references are what the flows and groups of a bridge name.
func (b Bridge) references() (openflow.References, error) {
	var refs openflow.References
	refs.Add("") // makes its maps
	for _, dump := range []workdir.Dump{workdir.Flows, workdir.Groups} {
		for _, d := range b.Dumps[dump] {
			if err := addReferences(&refs, dump, d.File); err != nil {
				return refs, err
			}
		}
	}
	return refs, nil
}

func addReferences(refs *openflow.References, dump workdir.Dump, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if dump == workdir.Groups {
		groups, _ := openflow.Groups(f)
		for _, g := range groups {
			refs.Add(g.Text)
		}
		return nil
	}
	for flow, problem := range openflow.Flows(f) {
		if problem == nil {
			refs.Add(flow.Text)
		}
	}
	return nil
}

// used is the dump that is restored, nil for none.
func (b Bridge) used(dump workdir.Dump) *Dump {
	for i := range b.Dumps[dump] {
		if b.Dumps[dump][i].Used {
			return &b.Dumps[dump][i]
		}
	}
	return nil
}
