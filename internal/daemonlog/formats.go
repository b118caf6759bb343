package daemonlog

import "bytes"

// parse reads a line of any known format into r.line. It reports false for all other lines.
func (r *Reader) parse(raw []byte) bool {
	if len(raw) < 12 {
		return false
	}
	switch c := raw[0]; {
	case isDigit(c):
		return r.parseStamped(raw)
	case c < 'A' || c > 'Z':
		return r.parseWrapped(raw)
	case isDigit(raw[1]):
		return r.parseKlog(raw)
	case raw[3] == ' ' && allDigits(raw[4:8]): // a year, and no day
		return r.parseWeekday(raw)
	}
	return r.parseSyslog(raw)
}

// parseStamped reads a line that begins with a date of ISO 8601: of vlog, of a container's log, of
// syslog or the journal, or of an OpenStack service.
func (r *Reader) parseStamped(raw []byte) bool {
	s, rest, ok := r.day.stamp(raw)
	if !ok || len(rest) == 0 {
		return false
	}
	if !s.zoned {
		if rest[0] == '|' && r.parseVlog(rest[1:]) {
			r.line.At = r.local(s)
			return true
		}
		return s.blank && r.parseOslo(s, rest)
	}
	switch rest[0] {
	case '|':
		r.line.At = s.at()
		if !r.parseVlog(rest[1:]) {
			r.line.Text = rest[1:]
		}
		return true
	case ' ':
		r.line.At = s.at()
		r.parseBehind(s, rest[1:])
		return true
	}
	return false
}

// parseBehind reads what follows a time with a zone and a blank. The runtime of a container and kubectl
// write the time in UTC or with the name of the stream; syslog and the journal write the host.
func (r *Reader) parseBehind(s stamp, rest []byte) {
	if inner, ok := cutStream(rest); ok {
		r.parseInner(inner)
	} else if s.utc && !isHosted(rest) || !r.parseHost(rest) {
		r.parseInner(rest)
	}
}

// isHosted reports whether what follows a time in UTC is surely the host and a program with its process ID, or with a
// line of vlog, as syslog writes them: "n1 ovs-vswitchd[123]: ...".
func isHosted(rest []byte) bool {
	_, rest, ok := cut(rest, ' ')
	tag, message, named := cut(rest, ':')
	if !ok || !named || bytes.IndexByte(tag, ' ') >= 0 {
		return false
	}
	return bytes.HasSuffix(tag, []byte("]")) || bytes.HasPrefix(message, []byte(" ovs|"))
}

// parseInner reads the line of a program behind the time that its container's runtime or kubectl wrote.
// The time of the program counts if it names its zone.
func (r *Reader) parseInner(text []byte) {
	at := r.line.At
	counted := r.result
	if !r.parse(text) {
		r.line.Text = text
	}
	if r.result.NoZone > counted.NoZone {
		r.line.At = at
	}
	r.result.NoZone, r.result.NoYear, r.line.NoYear = counted.NoZone, counted.NoYear, false
}

// cutStream cuts the name of a stream and the tag off, which a container's runtime writes behind the
// time: "stdout F ".
func cutStream(text []byte) (rest []byte, ok bool) {
	const length = len("stdout F ")
	if len(text) < length || text[6] != ' ' || text[8] != ' ' || text[7] != 'F' && text[7] != 'P' {
		return nil, false
	}
	stream := string(text[:6])
	return text[length:], stream == "stdout" || stream == "stderr"
}

// parseVlog reads what follows the time of a line of vlog: the number, the module with the thread, the
// level, and the message.
func (r *Reader) parseVlog(text []byte) bool {
	number, rest, ok := cut(text, '|')
	if !ok || len(number) == 0 || len(number) > 12 || !allDigits(number) {
		return false
	}
	module, rest, ok := cut(rest, '|')
	if !ok || len(module) == 0 || len(module) > 64 {
		return false
	}
	word, message, ok := cut(rest, '|')
	level := vlogLevel(word)
	if !ok || level == Unknown {
		return false
	}
	if name, thread, ok := cut(module, '('); ok && bytes.HasSuffix(thread, []byte(")")) {
		module, r.line.Thread = name, thread[:len(thread)-1]
	}
	r.line.Module, r.line.Level, r.line.Text = module, level, message
	r.isVlog = true
	return true
}

func vlogLevel(word []byte) Level {
	switch string(word) {
	case "DBG":
		return Debug
	case "INFO":
		return Info
	case "WARN":
		return Warn
	case "ERR":
		return Error
	case "EMER":
		return Emergency
	}
	return Unknown
}

// parseSyslog reads a line that begins with a date of RFC 3164: "Apr  6 06:36:09 host prog[123]: ...", or a line of
// Open vSwitch 1.x: "Oct 30 20:50:21|00466|netdev|WARN|...".
func (r *Reader) parseSyslog(raw []byte) bool {
	s, rest, ok := r.day.shortStamp(raw, r.options.Reference, r.options.Location)
	if !ok || len(rest) == 0 {
		return false
	}
	if rest[0] == '|' && r.parseVlog(rest[1:]) {
		r.line.At, r.line.NoYear = r.local(s), true
		r.result.NoYear++
		return true
	}
	if rest[0] != ' ' || !r.parseHost(rest[1:]) {
		return false
	}
	if r.line.At.IsZero() { // the line of the program has no time with a zone
		r.line.At, r.line.NoYear = r.local(s), true
		r.result.NoYear++
	} else {
		r.learnZone(s.at().Sub(r.line.At))
	}
	return true
}

// parseHost reads what follows the time of a line of syslog or of the journal: the host, the program
// with its process ID, and the message, which may be a line of vlog.
func (r *Reader) parseHost(text []byte) bool {
	host, rest, ok := cut(text, ' ')
	if !ok || len(host) == 0 || len(host) > 255 {
		return false
	}
	if bytes.HasPrefix(rest, []byte("ovs|")) { // --syslog-method=unix:PATH sends no name of the program
		r.line.Host = host
		r.parseMessage(rest)
		return true
	}
	tag, message, ok := cut(rest, ':')
	if !ok || len(tag) == 0 || len(tag) > 128 {
		return false
	}
	program := tag
	if name, id, ok := cut(tag, '['); ok {
		if !bytes.HasSuffix(id, []byte("]")) {
			return false
		}
		program = name
	}
	if len(program) == 0 || bytes.IndexByte(program, ' ') >= 0 && len(program) == len(tag) {
		return false
	}
	if len(message) > 0 && message[0] == ' ' {
		message = message[1:]
	}
	r.line.Host, r.line.Program = host, program
	r.parseMessage(message)
	return true
}

// parseMessage reads the message of a line of syslog or of the journal: text, or a line of a program
// with or without its time.
func (r *Reader) parseMessage(message []byte) {
	r.line.Text = message
	if inner, ok := bytes.CutPrefix(message, []byte("ovs|")); ok {
		r.parseVlog(inner)
		return
	}
	if len(message) == 0 || !isDigit(message[0]) {
		return
	}
	if s, rest, ok := r.day.stamp(message); ok && s.zoned && len(rest) > 0 && rest[0] == '|' && r.parseVlog(rest[1:]) {
		r.line.At = s.at()
	}
}

// parseOslo reads what follows the time of a line of an OpenStack service: the process ID, the level,
// the logger, the context of the request in brackets, and the message.
func (r *Reader) parseOslo(s stamp, rest []byte) bool {
	id, rest, ok := cut(rest[1:], ' ')
	if !ok || len(id) == 0 || !allDigits(id) {
		return false
	}
	word, rest, ok := cut(rest, ' ')
	level := osloLevel(word)
	if !ok || level == Unknown {
		return false
	}
	logger, message, ok := cut(rest, ' ')
	if !ok || len(logger) == 0 {
		return false
	}
	if len(message) > 0 && message[0] == '[' {
		if _, behind, ok := bytes.Cut(message, []byte("] ")); ok {
			message = behind
		}
	}
	r.line.At, r.line.Level, r.line.Module, r.line.Text = r.local(s), level, logger, message
	return true
}

func osloLevel(word []byte) Level {
	switch string(word) {
	case "DEBUG", "TRACE":
		return Debug
	case "INFO", "AUDIT":
		return Info
	case "WARNING":
		return Warn
	case "ERROR":
		return Error
	case "CRITICAL":
		return Emergency
	}
	return Unknown
}

// parseKlog reads a line of klog: "I1127 10:00:00.123456    1234 file.go:12] message".
func (r *Reader) parseKlog(raw []byte) bool {
	s, rest, ok := r.day.klogStamp(raw, r.options.Reference, r.options.Location)
	level := klogLevel(raw[0])
	if !ok || level == Unknown {
		return false
	}
	rest = bytes.TrimLeft(rest, " ")
	id, rest, ok := cut(rest, ' ')
	if !ok || len(id) == 0 || !allDigits(id) {
		return false
	}
	_, message, ok := bytes.Cut(rest, []byte("] "))
	if !ok {
		return false
	}
	if at := r.local(s); !r.parseInnerVlog(message) {
		r.line.At, r.line.Level, r.line.Text, r.line.NoYear = at, level, message, true
		r.result.NoYear++
	}
	return true
}

// klogLevel returns the level that a letter stands for, Unknown for other letters.
func klogLevel(letter byte) Level {
	switch letter {
	case 'I':
		return Info
	case 'W':
		return Warn
	case 'E':
		return Error
	case 'F':
		return Emergency
	}
	return Unknown
}

// cut cuts a text around the first byte c.
func cut(text []byte, c byte) (before, after []byte, ok bool) {
	if i := bytes.IndexByte(text, c); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, nil, false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func allDigits(text []byte) bool {
	for _, c := range text {
		if !isDigit(c) {
			return false
		}
	}
	return true
}
