package daemon

import (
	"errors"
	"io"
	"os"
	"strings"

	"ovs-offline/replica/runtime"
)

// maxText is the maximum number of bytes that are read of a log.
const maxText = 32 << 20

// LogSize returns the size of a log in bytes, 0 if there is none.
func LogSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// CheckStart adds to the remarks the errors that the daemon logged since its log had the size
// before, except those that are expected, and returns its fatal error. A damaged database
// is not a fatal error: ovsdb-server serves what it could read.
func CheckStart(daemon runtime.Daemon, before int64, expected func(message string) bool, remarks *Remarks) error {
	const maxErrors = 5 // number of different errors; the log has all
	seen := map[string]bool{}
	var fatal error
	for _, line := range linesFrom(daemon.Log, before) {
		level, message := parseLine(line)
		switch {
		case level == "EMER":
			fatal = errors.New(message)
		case level == "ERR" && !seen[message] && !expected(message) && len(seen) < maxErrors:
			seen[message] = true
			remarks.Add(daemon.Role + " logged while it started: " + message)
		}
	}
	return fatal
}

// FatalLine returns the message of the last line of the daemon's log if it is a fatal error,
// else "".
func FatalLine(daemon runtime.Daemon) string {
	lines := linesFrom(daemon.Log, LogSize(daemon.Log)-4096)
	if level, message := parseLine(lines[len(lines)-1]); level == "EMER" {
		return message
	}
	return ""
}

// IsRefusedSocket reports whether a message of a log is about a socket that a daemon can't
// have because it is isolated by the process runtime's seccomp filter (EAFNOSUPPORT).
func IsRefusedSocket(message string) bool {
	return strings.HasSuffix(message, ": Address family not supported by protocol")
}

// LastError returns the time and the message of the last error near the end of the daemon's
// log, "" without one. Refused sockets are not errors of a replica.
func LastError(daemon runtime.Daemon) string {
	last := ""
	for _, line := range linesFrom(daemon.Log, LogSize(daemon.Log)-1<<18) {
		if level, message := parseLine(line); (level == "ERR" || level == "EMER") && !IsRefusedSocket(message) {
			when, _, _ := strings.Cut(line, "|")
			last = when + " " + message
		}
	}
	return last
}

// linesFrom returns the lines of a log from an offset on; one empty line for a log
// that can't be read.
func linesFrom(path string, offset int64) []string {
	file, err := os.Open(path)
	if err != nil {
		return []string{""}
	}
	defer func() { _ = file.Close() }()
	text, _ := io.ReadAll(io.NewSectionReader(file, max(0, offset), maxText)) // as much as can be read
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

// Reason returns the last lines that a daemon printed, as an appendix to an error: they
// contain the reason why it failed. Log lines that report no error are left out.
func Reason(output string) string {
	const maxLines = 3
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "|INFO|") && !strings.Contains(line, "|WARN|") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines[max(0, len(lines)-maxLines):], "; ")
}
