package collect

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// Bridge is a bridge with all its usable dumps, the newest OpenFlow version first.
type Bridge struct {
	Name  string
	Dumps map[workdir.Dump][]Dump
}

// Dump is one dump and the result of reading it.
type Dump struct {
	recording.Output
	Entries int
	Lost    int  // lines that held data and cannot be used
	Used    bool // this dump is restored; the others supply what it lacks
	// Headless reports that a header is missing above its flows, and perhaps further flows.
	Headless bool

	first      openflow.Problem // the first of the lost lines
	failed     bool             // an error message, or nothing, in place of the dump
	references openflow.References
}

// judgeBridge judges the dumps of one bridge.
func judgeBridge(ctx context.Context, outputs map[recording.Subject][]recording.Output, name string, references bool) (Bridge, error) {
	bridge := Bridge{Name: name, Dumps: map[workdir.Dump][]Dump{}}
	for _, command := range recording.Dumps() {
		var usable []Dump
		for _, output := range outputs[recording.Subject{Command: command.Name, Bridge: name}] {
			dump, err := readDump(ctx, output, command.Dump, references)
			if err != nil {
				return bridge, err
			}
			same := slices.IndexFunc(usable, func(have Dump) bool { return have.OpenFlow == dump.OpenFlow })
			switch {
			case dump.failed:
			case same < 0:
				usable = append(usable, dump)
			case usable[same].Partial != nil && dump.Partial == nil:
				usable[same] = dump
			}
		}
		if best := pick(usable); best >= 0 {
			usable[best].Used = true
			bridge.Dumps[command.Dump] = usable
		}
	}
	return bridge, nil
}

// readDump reads a dump. A dump without -O is in OpenFlow 1.0, ovs-ofctl's default.
func readDump(ctx context.Context, output recording.Output, kind workdir.Dump, references bool) (Dump, error) {
	dump := Dump{Output: output}
	if dump.OpenFlow == 0 {
		dump.OpenFlow = openflow.OpenFlow10
	}
	file, err := os.Open(output.Spooled)
	if err != nil {
		return dump, err
	}
	defer file.Close()
	problems := 0
	for entry, problem := range entries(interrupt.Reader(ctx, file), kind) {
		if problem == nil {
			dump.Entries++
			dump.Headless = dump.Headless || entry.headless && !output.Bare
			if references {
				dump.references.Add(entry.text)
			}
			continue
		}
		problems++
		if !problem.Lost {
			continue
		}
		if dump.Lost == 0 {
			dump.first = *problem
		}
		dump.Lost++
	}
	// A command that was killed before it printed its header leaves an empty file.
	dump.failed = dump.Entries == 0 && (problems > 0 || output.Size == 0)
	return dump, ctx.Err()
}

// dumpEntry is an entry of a dump.
type dumpEntry struct {
	text     string
	headless bool // see Dump.Headless
}

// entries yields each entry of a dump, or the problem of a line.
func entries(in io.Reader, kind workdir.Dump) iter.Seq2[dumpEntry, *openflow.Problem] {
	return func(yield func(dumpEntry, *openflow.Problem) bool) {
		var list []openflow.Entry
		var problems []openflow.Problem
		switch kind {
		case workdir.Flows:
			for flow, problem := range openflow.Flows(in) {
				if !yield(dumpEntry{flow.Text, flow.Headless}, problem) {
					return
				}
			}
		case workdir.Groups:
			list, problems = openflow.Groups(in)
		case workdir.Meters:
			list, problems = openflow.Meters(in)
		case workdir.TLV:
			list, problems = openflow.TLVMap(in)
		}
		for _, e := range list {
			if !yield(dumpEntry{text: e.Text}, nil) {
				return
			}
		}
		for i := range problems {
			if !yield(dumpEntry{}, &problems[i]) {
				return
			}
		}
	}
}

// pick returns the index of the dump to restore, -1 for an empty list: that of the
// newest OpenFlow version that lost nothing, or else the one with most entries. A
// dump with fewer than nine tenths of the entries of another is incomplete, even if it
// lost nothing; so is one without its header and with fewer entries than another. One that
// is known to be a part is taken only if all are. The list has the newest version first.
func pick(list []Dump) int {
	most := -1
	for i, dump := range list {
		if most < 0 || dump.Partial == nil && list[most].Partial != nil || (dump.Partial == nil) == (list[most].Partial == nil) && dump.Entries > list[most].Entries {
			most = i
		}
	}
	for i, dump := range list {
		incomplete := 10*dump.Entries < 9*list[most].Entries || dump.Headless && dump.Entries < list[most].Entries || dump.Partial != nil
		if !dump.Truncated && dump.Lost == 0 && !incomplete {
			return i
		}
	}
	return most
}

// remarks returns the sentences for the user about a dump that is restored.
func (d Dump) remarks(dump workdir.Dump) []string {
	var remarks []string
	if d.Truncated {
		remarks = append(remarks, "cut by sos (--log-size): only its end was collected")
	}
	if d.Headless && !d.Truncated {
		remarks = append(remarks, "no header is above its flows: unless ovs-ofctl ran with --names or --sort, which print none, the dump's beginning was cut off")
	}
	if d.Lost > 0 {
		remarks = append(remarks, fmt.Sprintf("%s can't be used; the first: %s", phrase.Count(d.Lost, "line"), d.first))
	}
	if d.OpenFlow == openflow.OpenFlow10 && dump == workdir.Flows {
		remarks = append(remarks, "only an OpenFlow 1.0 dump could be used: meters and OpenFlow 1.3+ actions are not in its text")
	}
	return remarks
}

// usedDump returns the dump that is restored, nil for none.
func (b Bridge) usedDump(dump workdir.Dump) *Dump {
	list := b.Dumps[dump]
	if i := slices.IndexFunc(list, func(d Dump) bool { return d.Used }); i >= 0 {
		return &list[i]
	}
	return nil
}

// references counts the references of a bridge's flows and groups, by kind of dump.
func (b Bridge) references() map[workdir.Dump]int {
	meters, groups, tlvs := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for _, dump := range slices.Concat(b.Dumps[workdir.Flows], b.Dumps[workdir.Groups]) {
		maps.Copy(meters, dump.references.Meters)
		maps.Copy(groups, dump.references.Groups)
		maps.Copy(tlvs, dump.references.TLVs)
	}
	return map[workdir.Dump]int{workdir.Meters: len(meters), workdir.Groups: len(groups), workdir.TLV: len(tlvs)}
}
