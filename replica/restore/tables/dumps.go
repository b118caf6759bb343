package tables

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// open opens a collected file; ok is false if it was not collected.
func open(path string) (f *os.File, ok bool, err error) {
	f, err = os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return f, err == nil, err
}

// openDump opens the dump of a bridge; ok is false if it was not collected.
func (t *Tables) openDump(b Bridge, dump workdir.Dump) (f *os.File, ok bool, err error) {
	f, ok, err = open(t.Workdir.DumpFile(b.Name, dump))
	if ok {
		t.Report.Bridge(b.Name).OpenFlow[dump] = t.dumpVersion(b, dump)
	}
	return f, ok, err
}

// dumpVersion returns the OpenFlow version of a dump: the manifest's or, for a
// dump that was added by hand, that of ovs-save's script or ovs-save's default.
func (t *Tables) dumpVersion(b Bridge, dump workdir.Dump) openflow.Version {
	path := t.relative(t.Workdir.DumpFile(b.Name, dump))
	if c := t.Manifest.Collection(workdir.OVS); c != nil {
		for _, f := range c.Files {
			if v := openflow.ParseVersion(f.OpenFlow); f.Path == path && v != 0 {
				return v
			}
		}
	}
	if script, err := t.saveScript(); err == nil && script.versions[b.Name] != 0 {
		return script.versions[b.Name]
	}
	return openflow.OpenFlow14
}

// saveScript holds the data, by bridge, of an ovs-save script (do_restore.sh beside
// dumps that were added by hand), except the names of the dumps.
type saveScript struct {
	versions map[string]openflow.Version
	mappings map[string][]string // of the TLV map
}

// saveScript reads the script once.
func (t *Tables) saveScript() (*saveScript, error) {
	if t.script != nil {
		return t.script, nil
	}
	s := &saveScript{versions: map[string]openflow.Version{}, mappings: map[string][]string{}}
	path := filepath.Join(t.Workdir.RestoreFlows(), workdir.SaveScript)
	f, ok, err := open(path)
	if err != nil {
		return nil, err
	}
	if ok {
		defer f.Close()
		commands, cut, err := openflow.ReadSaveScript(f)
		if err != nil {
			return nil, err
		}
		if cut != "" {
			t.Report.Remark(t.relative(path) + " " + cut + ": what follows is not read")
		}
		for _, c := range commands {
			if c.OpenFlow != 0 {
				s.versions[c.Bridge] = c.OpenFlow
			}
			if c.Command == "add-tlv-map" {
				s.mappings[c.Bridge] = c.Mappings
			}
		}
	}
	t.script = s
	return s, nil
}

// relative returns a path of the workdir as the manifest and the report name it.
func (t *Tables) relative(path string) string {
	return strings.TrimPrefix(path, t.Workdir.Path()+"/")
}

// readBackVersion returns the version in which the replica prints an entry as the
// collected dump does: the dump's version or, if the bridge does not speak it, the
// newest that the bridge speaks.
func readBackVersion(b Bridge, collected, newest openflow.Version) openflow.Version {
	if collected.In(b.Protocols) {
		return collected
	}
	return newest
}

// reader reads the entries of a dump and the lines that cannot be used.
type reader func(io.Reader) ([]openflow.Entry, []openflow.Problem)

// entries returns the entries of a collected dump, and rejects the lines that
// cannot be used.
func (t *Tables) entries(b Bridge, dump workdir.Dump, read reader) ([]openflow.Entry, error) {
	f, ok, err := t.openDump(b, dump)
	if !ok {
		return nil, err
	}
	defer f.Close()
	list, problems := read(f)
	for _, p := range problems {
		t.rejectLine(b, dump, p)
	}
	t.Report.Counts(b.Name, dump).Collected = len(list)
	return list, nil
}

// rejectLine records a line that cannot be used, if it held data.
func (t *Tables) rejectLine(b Bridge, dump workdir.Dump, p openflow.Problem) {
	if p.Lost {
		t.Report.Counts(b.Name, dump).Collected++
		t.Report.Reject(t.item(b, dump, p.Line, p.Text, p.Reason))
	}
}

func (t *Tables) item(b Bridge, dump workdir.Dump, line int, text, reason string) report.Item {
	return report.Item{Bridge: b.Name, Dump: dump, File: t.relative(t.Workdir.DumpFile(b.Name, dump)), Line: line, Text: text, Reason: reason}
}

// addEach adds meters or TLV mappings, each by one command, and rejects those
// that the switch does not take.
func (t *Tables) addEach(ctx context.Context, b Bridge, version openflow.Version, dump workdir.Dump, command string, list []openflow.Entry) error {
	for _, e := range list {
		text, rewrites := openflow.Rewrite(e.Text)
		err := t.ofctl(ctx, version, b, command, text)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.Report.Reject(t.item(b, dump, e.Line, e.Text, Reason(err)))
		case len(rewrites) > 0:
			t.Report.Rewrite(t.item(b, dump, e.Line, e.Text, strings.Join(rewrites, "; ")))
		}
	}
	return nil
}

// compare reads a table back and counts the entries that are as they were collected.
func (t *Tables) compare(ctx context.Context, b Bridge, version openflow.Version, names string, dump workdir.Dump, command string, read reader, collected []openflow.Entry) error {
	var out bytes.Buffer
	if err := t.Switch.Ofctl(ctx, Ofctl{Bridge: b.Name, Options: []string{names, "-O", version.String()}, Command: command, Stdout: &out}); err != nil {
		return err
	}
	list, _ := read(&out)
	if t.readBack == nil {
		t.readBack = map[table][]openflow.Entry{}
	}
	t.readBack[table{b.Name, dump}] = list
	have := map[string]bool{}
	for _, e := range list {
		have[e.Text] = true
	}
	rejected := t.Report.RejectedLines(b.Name, dump)
	counts := t.Report.Counts(b.Name, dump)
	const maxNamed = 5
	for _, e := range collected {
		switch {
		case have[e.Text]:
			counts.Restored++
		case !rejected[e.Line]:
			if counts.Different++; counts.Different <= maxNamed {
				t.remark(b, "%s: read back differently: %s", dump, openflow.Shorten(e.Text, 4096))
			}
		}
	}
	if counts.Different > maxNamed {
		t.remark(b, "%s: %d entries in all read back differently", dump, counts.Different)
	}
	return nil
}

var (
	// switchError matches the error of a switch as ovs-ofctl prints it.
	switchError = regexp.MustCompile(`(?:OFPT_ERROR[^:]*: |Error )([A-Z0-9]+_[A-Z0-9_]+)`)
	// inputError matches the error of ovs-ofctl about a line of its input.
	inputError = regexp.MustCompile(`(?m)^ovs-ofctl: -:(\d+): (.*)`)
)

// parseError returns the line of its input, from 0, that ovs-ofctl could not
// parse, and its message. ok is false for any other error.
func parseError(err error) (line int, message string, ok bool) {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return 0, "", false
	}
	m := inputError.FindStringSubmatch(failed.Stderr)
	if m == nil {
		return 0, "", false
	}
	n, err := strconv.Atoi(m[1])
	return n - 1, m[2], err == nil && n > 0
}

// Reason returns the part of an ovs-ofctl error that describes the problem of an entry.
func Reason(err error) string {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return err.Error()
	}
	if _, message, ok := parseError(err); ok {
		return "ovs-ofctl can't read it: " + message
	}
	if m := switchError.FindStringSubmatch(failed.Stderr); m != nil {
		return switchRefuses + m[1]
	}
	first, _, _ := strings.Cut(strings.TrimSpace(failed.Stderr), "\n")
	return strings.TrimPrefix(first, "ovs-ofctl: ")
}

const switchRefuses = "the switch refuses it: "
