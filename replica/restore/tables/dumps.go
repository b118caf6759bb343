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

// path returns the path of the table's dump.
func (t *table) path() string { return t.Workdir.DumpFile(t.bridge.Name, t.dump) }

// open opens the dump; ok is false if it was not collected.
func (t *table) open() (f *os.File, ok bool, err error) {
	f, ok, err = workdir.OpenCollected(t.path())
	if ok {
		t.Report.Bridge(t.bridge.Name).OpenFlow[t.dump] = t.dumpVersion()
	}
	return f, ok, err
}

// dumpVersion returns the OpenFlow version of the dump: the manifest's or, for a
// dump that was added by hand, that of ovs-save's script or ovs-save's default.
func (t *table) dumpVersion() openflow.Version {
	if v := openflow.ParseVersion(t.Manifest.OpenFlow(t.Workdir.Relative(t.path()))); v != 0 {
		return v
	}
	if script, err := t.saveScript(); err == nil && script.versions[t.bridge.Name] != 0 {
		return script.versions[t.bridge.Name]
	}
	return openflow.OpenFlow14
}

// readBackVersion returns the version in which the replica prints an entry in the
// words of the collected dump: the dump's, or where the bridge does not speak
// that, the newest that it speaks.
func (t *table) readBackVersion() openflow.Version {
	if v := t.dumpVersion(); v.In(t.bridge.Protocols) {
		return v
	}
	return t.version
}

// saveScript is what the script of ovs-save (do_restore.sh beside dumps that were
// added by hand) holds besides the names of the dumps, by bridge.
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
	f, ok, err := workdir.OpenCollected(path)
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
			t.Report.Remark(t.Workdir.Relative(path) + " " + cut + ": what follows is not read")
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

// collected returns the entries of the dump, and rejects the lines that cannot be used.
func (t *table) collected() ([]openflow.Entry, error) {
	f, ok, err := t.open()
	if !ok {
		return nil, err
	}
	defer f.Close()
	list, problems := t.entries(f)
	for _, p := range problems {
		t.rejectLine(p)
	}
	t.counts().Collected = len(list)
	return list, nil
}

// rejectLine records a line that cannot be used, if it held data.
func (t *table) rejectLine(p openflow.Problem) {
	if p.Lost {
		t.counts().Collected++
		t.Report.Reject(t.item(p.Line, p.Text, p.Reason))
	}
}

func (t *table) counts() *report.Counts { return t.Report.Counts(t.bridge.Name, t.dump) }

func (t *table) item(line int, text, reason string) report.Item {
	return report.Item{Bridge: t.bridge.Name, Dump: t.dump, File: t.Workdir.Relative(t.path()), Line: line, Text: text, Reason: reason}
}

// printTo writes the replica's table to w, limited to the flows that filter (a
// match of ovs-ofctl dump-flows) selects.
func (t *table) printTo(ctx context.Context, version openflow.Version, w io.Writer, filter ...string) error {
	return t.Switch.Ofctl(ctx, Ofctl{Bridge: t.bridge.Name, Options: []string{t.names, "-O", version.String()}, Command: t.print, Args: filter, Stdout: w})
}

// loaded is a table that was filled and not read back yet.
type loaded struct {
	*table
	collected []openflow.Entry
	running   []openflow.Entry // what the replica has, once read reads it
}

// read reads the table back.
func (l *loaded) read(ctx context.Context) error {
	var out bytes.Buffer
	if err := l.printTo(ctx, l.readBackVersion(), &out); err != nil {
		return err
	}
	l.running, _ = l.entries(&out)
	return nil
}

// compare counts the entries that were read back as they were collected.
func (l *loaded) compare() {
	have := map[string]bool{}
	for _, e := range l.running {
		have[e.Text] = true
	}
	counts := l.counts()
	const maxNamed = 5
	for _, e := range l.collected {
		switch {
		case have[e.Text]:
			counts.Restored++
		case !counts.IsRejected(e.Line):
			if counts.Different++; counts.Different <= maxNamed {
				l.remark("%s: read back differently: %s", l.dump, openflow.Shorten(e.Text, 4096))
			}
		}
	}
	if counts.Different > maxNamed {
		l.remark("%s: %d entries in all read back differently", l.dump, counts.Different)
	}
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
