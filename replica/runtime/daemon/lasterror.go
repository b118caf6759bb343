package daemon

import (
	"io"
	"os"
	"strings"

	"ovs-offline/replica/runtime"
)

// LastError is the last error in d's log, with its time, "" where its end has none.
func LastError(d runtime.Daemon) string {
	const tail = 1 << 18
	f, err := os.Open(d.Log)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, LogSize(d.Log)-tail), tail))
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if level, message := parseLine(line); level == "ERR" || level == "EMER" {
			when, _, _ := strings.Cut(line, "|")
			last = when + " " + message
		}
	}
	return last
}
