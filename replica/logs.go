package replica

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/workdir"
)

// ErrNoDaemon is wrapped where a daemon is not one of a replica's.
var ErrNoDaemon = errors.New("no such daemon")

// Roles lists the daemons that a workdir's replica can have.
func Roles() []string {
	roles := []string{roleVswitchd}
	for _, k := range workdir.Kinds() {
		roles = append(roles, serverRole(k))
	}
	return append(roles, roleRecorded)
}

// Line is one line of a daemon's log.
type Line struct{ Role, Text string }

// Logs hands out the lines of the daemons' logs, all together in the order of
// their times, and with follow those that are added, until ctx ends or take
// returns an error. The logs are files, whatever the daemons run in.
func Logs(ctx context.Context, wd *workdir.Dir, roles []string, follow bool, take func(Line) error) error {
	var logs []*logFile
	defer func() {
		for _, l := range logs {
			l.close()
		}
	}()
	there := false
	for _, role := range roles {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("%w: %q; there are %s", ErrNoDaemon, role, strings.Join(Roles(), ", "))
		}
		l := &logFile{role: role, path: wd.Log(role)}
		logs = append(logs, l)
		err := l.open()
		if errors.Is(err, os.ErrNotExist) && len(roles) == 1 {
			return fmt.Errorf("%s has no log in %s: it was not started", role, wd.Path())
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		there = there || err == nil
	}
	if !there {
		return fmt.Errorf("there are no logs in %s: no replica was started", wd.Path())
	}
	return pour(ctx, logs, follow, take)
}

// pour hands out what there is, again and again.
func pour(ctx context.Context, logs []*logFile, follow bool, take func(Line) error) error {
	const pause = 200 * time.Millisecond
	for {
		var lines []Line
		for _, l := range logs {
			more, err := l.read(!follow)
			if err != nil {
				return err
			}
			lines = append(lines, more...)
		}
		if len(logs) > 1 {
			slices.SortStableFunc(lines, func(a, b Line) int { return strings.Compare(timeOf(a.Text), timeOf(b.Text)) })
		}
		for _, line := range lines {
			if err := take(line); err != nil {
				return err
			}
		}
		if !follow {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func timeOf(line string) string {
	when, _, _ := strings.Cut(line, "|")
	return when
}

// logFile is a log that is read up to its end as it grows, and from its beginning
// where a new one has taken its place: each start makes one.
type logFile struct {
	role string
	path string
	file *os.File // nil as long as there is none
	in   *bufio.Reader
	part bytes.Buffer // the beginning of a line whose end is not written yet
}

func (l *logFile) open() (err error) {
	if l.file, err = os.Open(l.path); err == nil {
		l.in = bufio.NewReader(l.file)
	}
	return err
}

func (l *logFile) close() {
	if l.file != nil {
		l.file.Close()
	}
}

// replaced tells whether another file has the log's name now.
func (l *logFile) replaced() bool {
	now, err := os.Stat(l.path)
	if err != nil || l.file == nil {
		return err == nil
	}
	was, err := l.file.Stat()
	return err == nil && !os.SameFile(was, now)
}

// read returns the lines that were added since; the last ones may have no end.
func (l *logFile) read(last bool) ([]Line, error) {
	replaced := !last && l.replaced() // before the old one's end is read
	lines, err := l.rest(last || replaced)
	if err != nil || !replaced {
		return lines, err
	}
	l.close()
	if err := l.open(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return lines, fmt.Errorf("the log of %s was replaced: %w", l.role, err)
	}
	more, err := l.rest(false)
	return append(lines, more...), err
}

func (l *logFile) rest(last bool) (lines []Line, err error) {
	for l.file != nil {
		text, err := l.in.ReadString('\n')
		l.part.WriteString(text)
		if err == io.EOF && (!last || l.part.Len() == 0) {
			return lines, nil
		}
		if err != nil && err != io.EOF {
			return lines, fmt.Errorf("reading the log of %s: %w", l.role, err)
		}
		lines = append(lines, Line{l.role, strings.TrimRight(l.part.String(), "\r\n")})
		l.part.Reset()
	}
	return lines, nil
}
