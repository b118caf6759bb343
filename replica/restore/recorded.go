package restore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// Recorded reads the output of commands on the live node.
type Recorded struct {
	dir    *workdir.Dir
	report *report.Report // gets a remark if a file is not read to its end
}

// text returns what a command printed, "" if it was not recorded.
func (r *Recorded) text(name string) (string, error) { return r.read(r.dir.Recorded(name)) }

// bridgeText returns what a command printed of one bridge, "" if it was not recorded.
func (r *Recorded) bridgeText(b *Bridge, name string) (string, error) {
	return r.read(r.dir.BridgeRecorded(b.Name, name))
}

func (r *Recorded) read(path string) (string, error) {
	f, ok, err := workdir.OpenCollected(path)
	if !ok {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > workdir.MaxText {
		r.report.Remark(fmt.Sprintf("%s has %d bytes: only the first %d are read", r.dir.Relative(path), info.Size(), workdir.MaxText))
	}
	var b strings.Builder
	b.Grow(int(min(info.Size(), workdir.MaxText)))
	_, err = io.Copy(&b, io.LimitReader(f, workdir.MaxText))
	return b.String(), err
}

// show returns what ovs-ofctl show printed of a bridge; ok is false where it was
// not recorded.
func (r *Recorded) show(b *Bridge) (d openflow.Description, ok bool, err error) {
	text, err := r.bridgeText(b, workdir.RecordedShow)
	if text == "" || err != nil {
		return d, false, err
	}
	d = openflow.Show(strings.NewReader(text))
	if d.HasNoFlood {
		return d, true, nil
	}
	text, err = r.bridgeText(b, workdir.RecordedShow10)
	old := openflow.Show(strings.NewReader(text))
	d.HasNoFlood = old.HasNoFlood
	flags := map[int][]string{}
	for _, p := range old.Ports {
		flags[p.Number] = p.Config
	}
	for i, p := range d.Ports {
		d.Ports[i].Config = union(p.Config, flags[p.Number])
	}
	return d, true, err
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
var mapElement = regexp.MustCompile(`(\w+)=(?:"([^"]*)"|([^",}]*))`)

// listedMap reads a map as ovs-vsctl prints it.
func listedMap(text string) map[string]string {
	m := map[string]string{}
	for _, found := range mapElement.FindAllStringSubmatch(text, -1) {
		m[found[1]] = found[2] + found[3]
	}
	return m
}

// maxLine bounds a line of a file that is read line by line. A longer line cannot be
// the output of a command, and is skipped.
const maxLine = 1 << 20

// eachLine calls do for every line of a text.
func eachLine(text io.Reader, do func(line string) error) error {
	r := bufio.NewReaderSize(text, maxLine)
	for inLongLine := false; ; {
		line, err := r.ReadSlice('\n')
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
func (u *unknownNames) note(o *report.Outcome, recorded, kind string) {
	if u.count > 0 {
		o.Note(report.Failed, "%s lists %d %s that the database does not have; the first: %q", recorded, u.count, kind, u.first)
	}
}
