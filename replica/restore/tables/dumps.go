package tables

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ovs-offline/internal/command"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// path returns the path of the table's dump.
func (t *table) path() string { return t.Workdir.DumpFile(t.bridge.Name, t.dump) }

// open opens the dump; ok is false if it was not collected.
func (t *table) open() (file *os.File, ok bool, err error) {
	file, ok, err = workdir.OpenCollected(t.path())
	if ok {
		t.Report.Bridge(t.bridge.Name).OpenFlow[t.dump] = t.dumpVersion()
	}
	return file, ok, err
}

// dumpVersion returns the OpenFlow version of the dump: the manifest's or, for a
// dump that was added by hand, the version of ovs-save's script or ovs-save's default.
func (t *table) dumpVersion() openflow.Version {
	if version := openflow.ParseVersion(t.Manifest.OpenFlow(t.Workdir.Relative(t.path()))); version != 0 {
		return version
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
	if version := t.dumpVersion(); version.In(t.bridge.Protocols) {
		return version
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
	script := &saveScript{versions: map[string]openflow.Version{}, mappings: map[string][]string{}}
	path := filepath.Join(t.Workdir.RestoreFlows(), workdir.SaveScript)
	file, ok, err := workdir.OpenCollected(path)
	if err != nil {
		return nil, err
	}
	if ok {
		defer file.Close()
		commands, cut, err := openflow.ReadSaveScript(file)
		if err != nil {
			return nil, err
		}
		if cut != "" {
			t.Report.Remark(t.Workdir.Relative(path) + " " + cut + ": what follows is not read")
		}
		for _, command := range commands {
			if command.OpenFlow != 0 {
				script.versions[command.Bridge] = command.OpenFlow
			}
			if command.Command == "add-tlv-map" {
				script.mappings[command.Bridge] = command.Mappings
			}
		}
	}
	t.script = script
	return script, nil
}

// collectedEntries returns the entries of the dump, and rejects the lines that cannot be used.
func (t *table) collectedEntries() ([]openflow.Entry, error) {
	file, ok, err := t.open()
	if !ok {
		return nil, err
	}
	defer file.Close()
	list, problems := t.entries(file)
	for _, problem := range problems {
		t.rejectLine(problem)
	}
	t.counts().Collected = len(list)
	return list, nil
}

// rejectLine records a line that cannot be used, if it held data.
func (t *table) rejectLine(problem openflow.Problem) {
	if problem.Lost {
		t.counts().Collected++
		t.Report.Reject(t.item(problem.Line, problem.Text, problem.Reason))
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
	for _, entry := range l.running {
		have[entry.Text] = true
	}
	counts := l.counts()
	const maxNamed = 5
	for _, entry := range l.collected {
		switch {
		case counts.IsRejected(entry.Line): // also one that stands twice
		case have[entry.Text]:
			counts.Restored++
		default:
			if counts.Different++; counts.Different <= maxNamed {
				l.remark("%s: read back differently: %s", l.dump, phrase.Shorten(entry.Text, 4096))
			}
		}
	}
	if counts.Different > maxNamed {
		l.remark("%s: %d entries in all read back differently", l.dump, counts.Different)
	}
}

var (
	// switchError matches the error of a switch as ovs-ofctl prints it.
	switchError = lazyregexp.New(`(?:OFPT_ERROR[^:]*: |Error )([A-Z0-9]+_[A-Z0-9_]+)`)
	// inputError matches the error of ovs-ofctl about a line of its input.
	inputError = lazyregexp.New(`(?m)^ovs-ofctl: -:(\d+): (.*)`)
)

// parseError returns the line of its input, from 0, that ovs-ofctl could not
// parse, and its message. ok is false for any other error.
func parseError(err error) (line int, message string, ok bool) {
	var failed *command.Error
	if !errors.As(err, &failed) {
		return 0, "", false
	}
	match := inputError.FindStringSubmatch(failed.Stderr)
	if match == nil {
		return 0, "", false
	}
	n, err := strconv.Atoi(match[1])
	return n - 1, match[2], err == nil && n > 0
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
	if match := switchError.FindStringSubmatch(failed.Stderr); match != nil {
		return switchRefuses + match[1]
	}
	first, _, _ := strings.Cut(strings.TrimSpace(failed.Stderr), "\n")
	return strings.TrimPrefix(first, "ovs-ofctl: ")
}

const switchRefuses = "the switch refuses it: "
