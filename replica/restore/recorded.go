package restore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/openflow"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Recorded reads the output of commands on the live node.
type Recorded struct {
	dir    *workdir.Dir
	report *report.Report // gets a remark if a file is not read to its end
}

// text returns what a command printed, "" if it was not recorded.
func (r *Recorded) text(name string) (string, error) { return r.read(r.dir.Recorded(name)) }

// bridgeText returns what a command printed of one bridge, "" if it was not recorded.
func (r *Recorded) bridgeText(bridge *Bridge, name string) (string, error) {
	return r.read(r.dir.BridgeRecorded(bridge.Name, name))
}

func (r *Recorded) read(path string) (string, error) {
	text, size, err := workdir.CollectedText(path)
	if size > workdir.MaxText {
		r.report.Remark(fmt.Sprintf("%s has %d bytes: only the first %d are read", r.dir.Relative(path), size, workdir.MaxText))
	}
	return text, err
}

// show returns what ovs-ofctl show printed of a bridge; ok is false where it was
// not recorded.
func (r *Recorded) show(bridge *Bridge) (description openflow.Description, ok bool, err error) {
	text, err := r.bridgeText(bridge, workdir.RecordedShow)
	if text == "" || err != nil {
		return description, false, err
	}
	description = openflow.Show(strings.NewReader(text))
	if description.HasNoFlood {
		return description, true, nil
	}
	text, err = r.bridgeText(bridge, workdir.RecordedShow10)
	old := openflow.Show(strings.NewReader(text))
	description.HasNoFlood = old.HasNoFlood
	flags := map[int][]string{}
	for _, port := range old.Ports {
		flags[port.Number] = port.Config
	}
	for i, port := range description.Ports {
		description.Ports[i].Config = union(port.Config, flags[port.Number])
	}
	return description, true, err
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// listed returns one column of a recorded "ovs-vsctl list" by the rows' names,
// nil if it was not recorded.
func (r *Recorded) listed(name, column string) (map[string]string, error) {
	text, err := r.text(name)
	if text == "" || err != nil {
		return nil, err
	}
	records, err := ovsdb.Listing(strings.NewReader(text))
	if err != nil {
		r.report.Remark(fmt.Sprintf("%s is not read to its end: %v", r.dir.Relative(r.dir.Recorded(name)), err))
	}
	values := map[string]string{}
	for _, record := range records {
		if row := record.Column("name"); row != "" {
			values[row] = record.Column(column)
		}
	}
	return values, nil
}

// mapElement matches an element of a map as ovs-vsctl prints it.
var mapElement = lazyregexp.New(`(\w+)=(?:"([^"]*)"|([^",}]*))`)

// listedMap reads a map as ovs-vsctl prints it.
func listedMap(text string) map[string]string {
	values := map[string]string{}
	for _, found := range mapElement.FindAllStringSubmatch(text, -1) {
		values[found[1]] = found[2] + found[3]
	}
	return values
}

// maxLine bounds a line of a file that is read line by line. A longer line cannot be
// the output of a command, and is skipped.
const maxLine = 1 << 20

// eachLine calls do for every line of a text.
func eachLine(text io.Reader, do func(line string) error) error {
	reader := bufio.NewReaderSize(text, maxLine)
	for inLongLine := false; ; {
		line, err := reader.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if !full && !inLongLine && len(line) > 0 {
			if err := do(strings.TrimRight(string(line), "\r\n")); err != nil {
				return err
			}
		}
		inLongLine = full
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !full {
			return err
		}
	}
}

// unknownNames counts the names in a recorded text that the database does not
// have. There can be a million of them, so the report names only the first ones.
type unknownNames struct {
	count int
	first string
}

func (u *unknownNames) add(name string) {
	if u.count++; u.count == 1 {
		u.first = name
	}
}

// note reports the names, which are of a kind ("bonds").
func (u *unknownNames) note(outcome *report.Outcome, recorded, kind string) {
	if u.count > 0 {
		outcome.Note(report.Failed, "%s lists %d %s that the database does not have; the first: %q", recorded, u.count, kind, u.first)
	}
}
