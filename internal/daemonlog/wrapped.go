package daemonlog

import (
	"bytes"
	"encoding/json"
	"time"
)

// parseWrapped reads a line that begins with neither a date nor the level of klog: one of syslog with a priority, of
// Docker's JSON, of `kubectl logs --prefix`, or of `journalctl -o cat`.
func (r *Reader) parseWrapped(raw []byte) bool {
	switch raw[0] {
	case '<':
		return r.parsePriority(raw)
	case '{':
		return r.parseDocker(raw)
	case '[':
		inner, ok := cutPod(raw)
		return ok && r.parseUnwrapped(inner)
	case 'o':
		inner, ok := bytes.CutPrefix(raw, []byte("ovs|"))
		return ok && r.parseVlog(inner)
	}
	return false
}

// parseUnwrapped reads what stood in a line of another format, unless it is such a line again.
func (r *Reader) parseUnwrapped(inner []byte) bool {
	return len(inner) > 0 && (isDigit(inner[0]) || inner[0] >= 'A' && inner[0] <= 'Z') && r.parse(inner)
}

// parseInnerVlog reads a message that is a line of vlog with its time in UTC. Without one, nothing of it is kept.
func (r *Reader) parseInnerVlog(message []byte) bool {
	if len(message) == 0 || !isDigit(message[0]) {
		return false
	}
	s, rest, ok := r.day.stamp(message)
	if !ok || !s.zoned || len(rest) == 0 || rest[0] != '|' || !r.parseVlog(rest[1:]) {
		return false
	}
	r.line.At = s.at()
	return true
}

// cutPod cuts the pod and the container off that `kubectl logs --prefix` writes: "[pod/NAME/CONTAINER] ".
func cutPod(raw []byte) (inner []byte, ok bool) {
	if !bytes.HasPrefix(raw, []byte("[pod/")) {
		return nil, false
	}
	_, inner, ok = bytes.Cut(raw, []byte("] "))
	return inner, ok
}

// parseDocker reads a line of the log that Docker keeps of a container: {"log":"...\n","stream":"stderr","time":"..."}.
func (r *Reader) parseDocker(raw []byte) bool {
	var entry struct {
		Log  string    `json:"log"`
		Time time.Time `json:"time"`
	}
	if !bytes.HasPrefix(raw, []byte(`{"log":`)) || json.Unmarshal(raw, &entry) != nil || entry.Time.IsZero() {
		return false
	}
	inner := trim([]byte(entry.Log))
	if len(inner) > 0 && inner[0] == '{' { // the runtime writes one object around a line
		return false
	}
	r.line.At = entry.Time.UTC()
	r.parseInner(inner)
	return true
}

// parsePriority reads a line of syslog with its priority: "<28>May 24 20:51:10 n1 ovs-vswitchd: ..." of RFC 3164, or
// "<28>1 2022-01-01T00:00:00Z n1 ovs-vswitchd 123 - - ..." of RFC 5424.
func (r *Reader) parsePriority(raw []byte) bool {
	number, rest, ok := cut(raw[1:], '>')
	if !ok || len(number) == 0 || len(number) > 3 || !allDigits(number) {
		return false
	}
	rest, structured := bytes.CutPrefix(rest, []byte("1 "))
	if !structured {
		return r.parseUnwrapped(rest)
	}
	s, rest, ok := r.day.stamp(rest)
	if !ok || !s.zoned || len(rest) == 0 || rest[0] != ' ' {
		return false
	}
	host, rest, _ := cut(rest[1:], ' ')
	program, rest, _ := cut(rest, ' ')
	for range 2 { // the process ID and the kind of the message
		if _, rest, ok = cut(rest, ' '); !ok {
			return false
		}
	}
	if !bytes.HasPrefix(rest, []byte("- ")) || len(host) == 0 || len(program) == 0 {
		return false
	}
	r.line.At, r.line.Host, r.line.Program = s.at(), host, program
	r.parseMessage(bytes.TrimPrefix(rest[len("- "):], []byte("\xef\xbb\xbf"))) // a byte order mark, as RFC 5424 asks for
	return true
}

// parseWeekday reads a line of `journalctl -o short-full`: "Tue 2022-05-24 20:51:10 CEST n1 ovs-vswitchd[1]: ...". Of the
// names of time zones, only UTC names one zone.
func (r *Reader) parseWeekday(raw []byte) bool {
	s, rest, ok := r.day.stamp(raw[4:])
	if !ok || !s.blank || len(rest) == 0 || rest[0] != ' ' {
		return false
	}
	zone, rest, ok := cut(rest[1:], ' ')
	if !ok || !r.parseHost(rest) {
		return false
	}
	switch {
	case !r.line.At.IsZero(): // that of the program
	case string(zone) == "UTC":
		r.line.At = s.at()
	default:
		r.line.At = r.local(s)
	}
	return true
}

// Written is what a line of vlog says about who wrote it.
type Written struct {
	Program string // of a line of syslog or of the journal, "" for another
	Module  string
}

// Vlog reads a line that a program of Open vSwitch or OVN logged, in each form in which Reader knows it; ok is false for
// another line.
func Vlog(line []byte) (written Written, ok bool) {
	r := Reader{options: Options{Location: time.UTC}}
	if line = trim(line); len(line) > Longest || !r.parse(line) || !r.isVlog {
		return written, false
	}
	return Written{Program: string(r.line.Program), Module: string(r.line.Module)}, true
}
