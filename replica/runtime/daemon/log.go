package daemon

import (
	"bufio"
	"io"
	"os"
	"strings"

	"ovs-offline/replica/runtime"
)

// maxErrorLines bounds what a start repeats of a log: the log itself stays.
const maxErrorLines = 5

// LogSize is how long a log is; 0 where there is none.
func LogSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// ErrorLines returns what stands in a log after an offset: the different
// errors, and the last fatal line. A damaged database is such an error, and
// the only sign of it: ovsdb-server serves what it could read of one.
func ErrorLines(path string, offset int64) (errs []string, fatal string) {
	f, err := os.Open(path)
	if err != nil {
		return nil, ""
	}
	defer func() { _ = f.Close() }() // only read
	seen := map[string]bool{}
	scanner := bufio.NewScanner(io.NewSectionReader(f, offset, 1<<62))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		level, message := parseLine(scanner.Text())
		switch {
		case level == "EMER":
			fatal = message
		case level == "ERR" && !seen[message] && len(errs) < maxErrorLines:
			seen[message] = true
			errs = append(errs, message)
		}
	}
	return errs, fatal
}

// FatalLine is the fatal line at the end of d's log, if it ends with one.
func FatalLine(d runtime.Daemon) string {
	const tail = 4096
	f, err := os.Open(d.Log)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	end := LogSize(d.Log)
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, end-tail), tail))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if level, message := parseLine(lines[len(lines)-1]); level == "EMER" {
		return message
	}
	return ""
}

// parseLine takes apart `TIME|SEQUENCE|MODULE|LEVEL|MESSAGE`; a thread's name
// in brackets may follow the module.
func parseLine(line string) (level, message string) {
	parts := strings.SplitN(line, "|", 5)
	if len(parts) != 5 {
		return "", ""
	}
	return parts[3], parts[2] + ": " + parts[4]
}
