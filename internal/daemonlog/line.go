// Package daemonlog reads the logs of daemons: of Open vSwitch and OVN (vlog, ovs-appctl(8)), of OpenStack's
// services, of systemd's journal as text, and of containers.
package daemonlog

import "time"

// Level is the severity of a line, in the words of vlog. The zero value stands for a line without one.
type Level int

// The levels, the worst last.
const (
	Unknown Level = iota
	Debug
	Info
	Warn
	Error
	Emergency
)

// Line is one line of a log. Its texts are parts of a buffer that is used again for the next line:
// copy what has to stay.
type Line struct {
	At      time.Time // in UTC; zero if the line has no time, or no time zone is known
	Program []byte    // which wrote the line: "ovs-vswitchd"
	Host    []byte    // of a line of syslog or of the journal, nil for others
	Module  []byte    // of vlog, or the logger of an OpenStack service; nil for others
	Thread  []byte    // "handler10", nil for the main thread
	Level   Level
	Text    []byte // the message
	NoYear  bool   // At has a year that the line does not name: that of Options.Reference, or the one before
	Number  int    // of the line in its file, from 1
	// Continues is set for a line of no known format, which belongs to the lines before it.
	Continues bool
}
