package daemon

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"ovs-offline/replica/runtime"
)

// maxLine bounds a line of a log, in bytes.
const maxLine = 1 << 20

// LogSize returns the size of a log in bytes, 0 where there is none.
func LogSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// CheckStart adds the errors that d logged since its log had the size before to the
// remarks, and returns its fatal error. A damaged database is logged as an error
// only: ovsdb-server serves what it could read.
func CheckStart(d runtime.Daemon, before int64, remarks *Remarks) error {
	f, err := os.Open(d.Log)
	if err != nil {
		return nil // a daemon that logs nothing reports no error
	}
	defer func() { _ = f.Close() }()
	const maxErrors = 5 // different ones; the log has all
	seen := map[string]bool{}
	scanner := bufio.NewScanner(io.NewSectionReader(f, before, 1<<62))
	scanner.Buffer(nil, maxLine)
	fatal := ""
	for scanner.Scan() {
		level, message := parseLine(scanner.Text())
		switch {
		case level == "EMER":
			fatal = message
		case level == "ERR" && !seen[message] && len(seen) < maxErrors:
			seen[message] = true
			remarks.Add(d.Role + " logged while it started: " + message)
		}
	}
	if fatal != "" {
		return errors.New(fatal)
	}
	return nil
}

// FatalLine returns the message of the last line of d's log if that is a fatal
// error, else "".
func FatalLine(d runtime.Daemon) string {
	lines := lastLines(d.Log, 4096)
	if level, message := parseLine(lines[len(lines)-1]); level == "EMER" {
		return message
	}
	return ""
}

// LastError returns the time and the message of the last error near the end of d's
// log, "" without one.
func LastError(d runtime.Daemon) string {
	last := ""
	for _, line := range lastLines(d.Log, 1<<18) {
		if level, message := parseLine(line); level == "ERR" || level == "EMER" {
			when, _, _ := strings.Cut(line, "|")
			last = when + " " + message
		}
	}
	return last
}

// lastLines returns the lines in the last bytes of a log; one empty line for a log
// that can't be read.
func lastLines(path string, bytes int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return []string{""}
	}
	defer func() { _ = f.Close() }()
	text, _ := io.ReadAll(io.NewSectionReader(f, max(0, LogSize(path)-bytes), bytes)) // as far as it can be read
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// parseLine returns the level and the message, with its module, of a line
// `TIME|SEQUENCE|MODULE|LEVEL|MESSAGE`. A thread's name in brackets may follow the
// module.
func parseLine(line string) (level, message string) {
	parts := strings.SplitN(line, "|", 5)
	if len(parts) != 5 {
		return "", ""
	}
	return parts[3], parts[2] + ": " + strings.TrimSpace(parts[4])
}
