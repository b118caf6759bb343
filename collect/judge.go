package collect

import (
	"context"
	"fmt"
	"os"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/recording"
	"ovs-offline/internal/workdir"
)

// Plan is what a node's things are worth, judged by their content alone, and
// what of them a workdir gets.
type Plan struct {
	Node      *recording.Node
	Bridges   []Bridge
	Databases []Database
	// Recorded is the live state: for each meaning the first output that is no
	// error message.
	Recorded []recording.Output
	// Broken are files in a database's place that are none, with the reason.
	Broken []string
}

// Bridge is a bridge with all its dumps, the highest OpenFlow version first.
type Bridge struct {
	Name  string
	Dumps map[workdir.Dump][]Dump
}

// Dump is one dump and what its content is worth.
type Dump struct {
	recording.Output
	Entries int
	Lost    int  // lines that were data and can't be used
	Used    bool // the best one: it is restored, the others help
	first   openflow.Problem
	failed  bool // an error message, or nothing, in place of the dump
}

// Database is a database file of the node.
type Database struct {
	recording.Database
	Kind    workdir.Kind // "" for local-config, hardware_vtep and the like
	Info    file.Info
	Used    bool // it is the one of its kind that is taken
	Remarks []string
}

// Judge reads everything of a node once and decides what is used.
func Judge(ctx context.Context, n *recording.Node) (*Plan, error) {
	p := &Plan{Node: n}
	p.judgeDatabases(ctx)
	outputs := n.ByMeaning()
	for _, name := range n.Bridges {
		b, err := judgeBridge(ctx, outputs, name)
		if err != nil {
			return nil, err
		}
		p.Bridges = append(p.Bridges, b)
	}
	if err := p.judgeRecorded(outputs); err != nil {
		return nil, err
	}
	return p, ctx.Err()
}

func (p *Plan) judgeRecorded(outputs map[recording.About][]recording.Output) error {
	for _, b := range p.Bridges {
		if len(b.Dumps) == 0 {
			continue
		}
		for _, m := range recording.OfBridges() {
			if err := p.record(outputs[recording.About{Meaning: m, Bridge: b.Name}]); err != nil {
				return err
			}
		}
	}
	for _, m := range recording.OfNodes() {
		if err := p.record(outputs[recording.About{Meaning: m}]); err != nil {
			return err
		}
	}
	return nil
}

// record takes the first of the outputs that is none of an error.
func (p *Plan) record(outputs []recording.Output) error {
	for _, o := range outputs {
		bad, err := isError(o.File)
		if err != nil {
			return err
		}
		if !bad {
			p.Recorded = append(p.Recorded, o)
			return nil
		}
	}
	return nil
}

func isError(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return openflow.HasError(f), nil
}

// meanings maps the dumps to the commands that print them.
func meanings() map[workdir.Dump]recording.Meaning {
	return map[workdir.Dump]recording.Meaning{workdir.Flows: recording.Flows, workdir.Groups: recording.Groups, workdir.Meters: recording.Meters, workdir.TLV: recording.TLVMap}
}

// Dumps lists the kinds of dumps in the order in which they are restored.
func Dumps() []workdir.Dump {
	return []workdir.Dump{workdir.TLV, workdir.Meters, workdir.Groups, workdir.Flows}
}

func judgeBridge(ctx context.Context, outputs map[recording.About][]recording.Output, name string) (Bridge, error) {
	b := Bridge{Name: name, Dumps: map[workdir.Dump][]Dump{}}
	for dump, meaning := range meanings() {
		var usable []Dump
		for _, o := range outputs[recording.About{Meaning: meaning, Bridge: name}] {
			d, err := judge(ctx, o, dump)
			if err != nil {
				return b, err
			}
			if !d.failed && !sameVersion(usable, d.OpenFlow) {
				usable = append(usable, d)
			}
		}
		if best := pick(usable); best >= 0 {
			usable[best].Used = true
			b.Dumps[dump] = usable
		}
	}
	return b, nil
}

// judge reads a dump once. A dump without -O is OpenFlow 1.0 text, as ovs-ofctl speaks it by default.
func judge(ctx context.Context, o recording.Output, dump workdir.Dump) (Dump, error) {
	d := Dump{Output: o}
	if d.OpenFlow == "" {
		d.OpenFlow = "OpenFlow10"
	}
	f, err := os.Open(o.File)
	if err != nil {
		return d, err
	}
	defer f.Close()
	in := interrupt.Reader(ctx, f)
	var problems []openflow.Problem
	var entries []openflow.Entry
	bad := 0
	switch dump {
	case workdir.Flows:
		for _, p := range openflow.Flows(in) {
			if p == nil {
				d.Entries++
			} else {
				bad++
				d.blame(*p)
			}
		}
	case workdir.Groups:
		entries, problems = openflow.Groups(in)
	case workdir.Meters:
		entries, problems = openflow.Meters(in)
	case workdir.TLV:
		entries, problems = openflow.TLVMap(in)
	}
	d.Entries += len(entries)
	for _, p := range problems {
		bad++
		d.blame(p)
	}
	// A command that was killed before it printed its header leaves an empty file: that says nothing.
	d.failed = d.Entries == 0 && (bad > 0 || o.Size == 0)
	return d, ctx.Err()
}

// blame counts a line that was data and can't be used.
func (d *Dump) blame(p openflow.Problem) {
	if !p.Lost {
		return
	}
	if d.Lost == 0 {
		d.first = p
	}
	d.Lost++
}

func sameVersion(list []Dump, version string) bool {
	for _, d := range list {
		if d.OpenFlow == version {
			return true
		}
	}
	return false
}

// pick returns the index of the best dump: of the highest OpenFlow version that
// lost nothing, or else the one that holds most. One that lost nothing and holds
// less than nine tenths of another is no better: it was made of fewer. The list
// comes with the highest version first. -1 where there is none.
func pick(list []Dump) int {
	most := -1
	for i, d := range list {
		if most < 0 || d.Entries > list[most].Entries {
			most = i
		}
	}
	for i, d := range list {
		if !d.Truncated && d.Lost == 0 && 10*d.Entries >= 9*list[most].Entries {
			return i
		}
	}
	return most
}

func (d Dump) remarks(dump workdir.Dump) []string {
	var remarks []string
	if d.Truncated {
		remarks = append(remarks, "cut by sos (--log-size): only its end is there")
	}
	if d.Lost > 0 {
		remarks = append(remarks, fmt.Sprintf("%d lines can't be used; the first: %s", d.Lost, d.first))
	}
	if d.OpenFlow == "OpenFlow10" && dump == workdir.Flows {
		remarks = append(remarks, "only an OpenFlow 1.0 dump could be used: meters and OpenFlow 1.3+ actions are not in its text")
	}
	return remarks
}

// judgeDatabases takes the largest sound file for each kind. One that stands
// where no database does is taken only where there is no other.
func (p *Plan) judgeDatabases(ctx context.Context) {
	best := map[workdir.Kind]int{}
	for _, db := range p.Node.Databases {
		info, err := Inspect(ctx, db.File)
		if err != nil {
			if !db.Elsewhere {
				p.Broken = append(p.Broken, fmt.Sprintf("%s: %v", db.Origin, err))
			}
			continue
		}
		next := Database{Database: db, Kind: KindOf(info.Name), Info: info, Remarks: append(DatabaseRemarks(info), db.Remarks...)}
		p.Databases = append(p.Databases, next)
		if next.Kind == "" {
			continue
		}
		i := len(p.Databases) - 1
		old, there := best[next.Kind]
		if !there {
			best[next.Kind] = i
			continue
		}
		why := "it is smaller"
		if next.Second && !p.Databases[old].Second {
			why = "the node's own is taken"
		} else if next.Elsewhere && !p.Databases[old].Elsewhere {
			why = "it stands where no node has its databases"
		} else if next.Size > p.Databases[old].Size {
			old, i = i, old
			best[next.Kind] = old
		}
		p.Databases[old].Remarks = append(p.Databases[old].Remarks,
			fmt.Sprintf("%s holds the same database and was not taken: %s", p.Databases[i].Origin, why))
	}
	p.Broken = append(p.Broken, p.Node.Dangling...)
	for _, i := range best {
		p.Databases[i].Used = true
	}
}

// Database returns the database that is taken of a kind, nil for none.
func (p *Plan) Database(kind workdir.Kind) *Database {
	for i := range p.Databases {
		if p.Databases[i].Kind == kind && p.Databases[i].Used {
			return &p.Databases[i]
		}
	}
	return nil
}

// HasOVS tells whether the node has anything of Open vSwitch.
func (p *Plan) HasOVS() bool {
	return p.Database(workdir.OVS) != nil || len(p.Bridges) > 0
}
