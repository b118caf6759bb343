package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/phrase"
	"ovs-offline/workdir"
)

// ErrNoDaemon is wrapped when a name is not the role of a daemon of a replica.
var ErrNoDaemon = fault.Wrap(fault.Usage, errors.New("no such daemon"))

// Roles lists the daemons that a replica can have.
func Roles() []string {
	roles := []string{roleVswitchd}
	for _, kind := range workdir.Kinds() {
		roles = append(roles, serverRole(kind))
	}
	return append(roles, roleRecorded)
}

// Line is a line of the log of a daemon, whose replica is in a workdir.
type Line struct {
	Dir        *workdir.Dir
	Role, Text string
}

// Logs calls take with each line of the logs of the replicas' daemons, in the order of their
// times. A replica that was not started has none.
// With follow, it continues with lines that are added, until ctx ends or take returns an
// error. Logs are files on this host in every runtime.
func Logs(ctx context.Context, dirs []*workdir.Dir, roles []string, follow bool, take func(Line) error) error {
	var logs []*logFile
	defer func() {
		for _, file := range logs {
			file.file.Close() // fails for a log that does not exist
		}
	}()
	exists := false
	for _, role := range roles {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("%w: %q; there are %s", ErrNoDaemon, role, strings.Join(Roles(), ", "))
		}
		for _, wd := range dirs {
			file := &logFile{dir: wd, role: role, path: wd.Log(role)}
			logs = append(logs, file)
			if err := file.open(); err != nil {
				return err
			}
			exists = exists || file.file != nil
		}
	}
	switch {
	case !exists && len(roles) == 1:
		return fmt.Errorf("%s has no log in %s: it was not started", roles[0], pathsOf(dirs))
	case !exists:
		return fmt.Errorf("there are no logs in %s: no replica was started", pathsOf(dirs))
	}
	const pause = 200 * time.Millisecond
	for {
		if err := takeLines(logs, !follow, take); err != nil || !follow {
			return errors.Join(err, ctx.Err())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func pathsOf(dirs []*workdir.Dir) string {
	var paths []string
	for _, wd := range dirs {
		paths = append(paths, wd.Path())
	}
	return phrase.FirstNames(paths)
}

// takeLines calls take with the new lines of all logs; last is set for the last call.
func takeLines(logs []*logFile, last bool, take func(Line) error) error {
	var lines []Line
	for _, file := range logs {
		more, err := file.read(last)
		if err != nil {
			return fmt.Errorf("the log of %s: %w", file.role, err)
		}
		lines = append(lines, more...)
	}
	if len(logs) > 1 {
		slices.SortStableFunc(lines, func(a, b Line) int { return strings.Compare(timeOf(a), timeOf(b)) })
	}
	for _, line := range lines {
		if err := take(line); err != nil {
			return err
		}
	}
	return nil
}

func timeOf(line Line) string {
	text, _, _ := strings.Cut(line.Text, "|")
	return text
}

// logFile is a log that is read while it grows. Each start makes a new file with the
// same name, which is then read from its beginning.
type logFile struct {
	dir  *workdir.Dir
	role string
	path string
	file *os.File // nil while the log does not exist
	part []byte   // the beginning of a line whose end is not written yet
}

func (l *logFile) open() (err error) {
	l.file, err = os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// replaced reports whether another file now has the log's name.
func (l *logFile) replaced() bool {
	now, err := os.Stat(l.path)
	if err != nil || l.file == nil {
		return err == nil
	}
	open, err := l.file.Stat()
	return err == nil && !os.SameFile(open, now)
}

// read returns the lines that were added since the last call. The last line of a
// file that does not grow any more may have no end.
func (l *logFile) read(last bool) (lines []Line, err error) {
	replaced := l.replaced() // asked before the end of the old file is read
	if lines, err = l.remainingLines(last || replaced); err != nil || !replaced {
		return lines, err
	}
	l.file.Close()
	if err := l.open(); err != nil {
		return lines, err
	}
	more, err := l.remainingLines(last)
	return append(lines, more...), err
}

// remainingLines returns the lines up to the end of the file.
func (l *logFile) remainingLines(last bool) (lines []Line, err error) {
	if l.file == nil {
		return nil, nil
	}
	text, err := io.ReadAll(l.file)
	l.part = append(l.part, text...)
	for len(l.part) > 0 {
		line, rest, ended := bytes.Cut(l.part, []byte("\n"))
		if !ended && !last {
			break
		}
		lines = append(lines, Line{l.dir, l.role, strings.TrimRight(string(line), "\r")})
		l.part = rest
	}
	return lines, err
}
