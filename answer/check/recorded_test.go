package check_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"ovs-offline/answer/rule"
	"ovs-offline/test/check/sweep"
	"ovs-offline/workdir"
)

// recordedFault is a fault that no daemon of the lab has: it is planted in what was recorded of a node of
// a live set, as the node's tools would have printed it and its daemons would have logged it.
type recordedFault struct {
	rule, says string
	node       int // of the set
	changes    []change
}

// change changes a recorded file. Without old, the text is added to its end; or else the text takes the
// place of what old, a regular expression, matches.
type change struct {
	file      string // below the workdir, or "log:PROGRAM/NAME"; it may end in ".gz"
	old, text string
	// times is how often the text is there, 1 for 0, each time later by every; the last one was some
	// minutes before the node was recorded. In the text, {n} is the number of the time, and the time is
	// {vlog} as vlog writes it, {iso} as the journal, {syslog} as RFC 3164, and {oslo} as OpenStack.
	times int
	every time.Duration
}

// changeFiles plants faults in what was recorded in a folder, several at once and two in a sweep, and checks that
// nothing else is found before them. The dumps are left out: flows are computed only where they matter.
func (l *live) changeFiles(folder string) {
	l.t.Helper()
	for _, node := range l.set.Nodes {
		if err := os.RemoveAll(filepath.Join(folder, node, "restore_flows")); err != nil {
			l.t.Fatal(err)
		}
		for file, text := range machine() {
			l.write(filepath.Join(folder, node, file), text)
		}
	}
	for together := range slices.Chunk(recordedFaults(), sweep.Count(2, 6)) {
		start := time.Now()
		var restore []func()
		for _, f := range together {
			for _, c := range f.changes {
				restore = append(restore, l.change(filepath.Join(folder, l.set.Nodes[f.node]), c))
			}
		}
		found := slices.DeleteFunc(l.check(folder), func(one rule.Finding) bool { return l.known[key(one)] })
		l.steps.try(l.t, folder, l.set.Nodes, found)
		for _, undo := range slices.Backward(restore) {
			undo()
		}
		for _, f := range together {
			l.expect(found, max(2, len(together)), "in "+f.changes[0].file, f.rule, f.says, start)
		}
	}
}

// change changes a file of a workdir, and returns what undoes it.
func (l *live) change(folder string, c change) (undo func()) {
	l.t.Helper()
	path := filepath.Join(folder, c.file)
	if log, ok := strings.CutPrefix(c.file, "log:"); ok {
		wd, err := workdir.Find(folder)
		if err != nil {
			l.t.Fatal(err)
		}
		path = wd.HostLog(filepath.Dir(log), filepath.Base(log))
	}
	before, err := os.ReadFile(path)
	missing := os.IsNotExist(err)
	if err != nil && !missing {
		l.t.Fatal(err)
	}
	after := string(before) + c.lines()
	if c.old != "" {
		old := regexp.MustCompile("(?m)" + c.old)
		if after = old.ReplaceAllLiteralString(string(before), c.text); !old.Match(before) {
			l.t.Fatalf("%s has no %s:\n%s", c.file, c.old, before)
		}
	}
	if strings.HasSuffix(path, ".gz") {
		after = packed(l, after)
	}
	l.write(path, after)
	return func() {
		if missing {
			if err := os.Remove(path); err != nil {
				l.t.Fatal(err)
			}
			return
		}
		l.write(path, string(before))
	}
}

// lines returns the text as often as it has to be there, with its times.
func (c change) lines() string {
	var all strings.Builder
	times := max(c.times, 1)
	for i := range times {
		at := time.Now().UTC().Add(-5*time.Minute - time.Duration(times-i)*c.every)
		all.WriteString(strings.NewReplacer("{n}", fmt.Sprint(i+1), "{vlog}", at.Format("2006-01-02T15:04:05.000Z"), "{iso}",
			at.Format("2006-01-02T15:04:05-0700"),
			"{syslog}", at.Format(time.Stamp), "{oslo}", at.Format("2006-01-02 15:04:05.000"), "{day}",
			at.Format(time.DateOnly)).Replace(c.text) + "\n")
	}
	return all.String()
}

func packed(l *live, text string) string {
	l.t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		l.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		l.t.Fatal(err)
	}
	return out.String()
}
