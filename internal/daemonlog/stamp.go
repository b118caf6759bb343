package daemonlog

import (
	"time"
)

// stamp is the time at the beginning of a line: since 1970 in UTC, or in a local time zone.
type stamp struct {
	seconds int64
	nanos   int64
	zoned   bool // the line names the zone
	utc     bool // as Z
	blank   bool // stands between the date and the time, where ISO 8601 has a T
}

func (s stamp) at() time.Time { return time.Unix(s.seconds, s.nanos).UTC() }

// local returns the time of a stamp without a zone, and counts it.
func (r *Reader) local(s stamp) time.Time {
	r.result.NoZone++
	if r.options.Location == nil {
		return time.Time{}
	}
	return s.in(r.options.Location)
}

// learnZone notes the time zone in which a line was written. difference is that between its time and the same time
// in UTC, which its program wrote shortly before.
func (r *Reader) learnZone(difference time.Duration) {
	const unit, delay, farthest = 15 * time.Minute, time.Minute, 14 * time.Hour
	offset := difference.Round(unit)
	if (difference-offset).Abs() > delay || offset.Abs() > farthest {
		return
	}
	if seconds := int(offset / time.Second); r.result.Zone == nil || seconds != r.zone {
		r.zone, r.result.Zone = seconds, time.FixedZone(offsetName(seconds), seconds)
	}
}

func offsetName(seconds int) string {
	return time.Unix(0, 0).In(time.FixedZone("", seconds)).Format("-07:00")
}

func (s stamp) in(location *time.Location) time.Time {
	at := s.at()
	if location == time.UTC {
		return at
	}
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), location).UTC()
}

// day remembers the last date that was read: most lines have the same.
type day struct {
	text    [10]byte
	seconds int64
	short   struct { // a date without a year
		month, day int
		year       int
	}
}

// stamp reads a date and a time of ISO 8601 at the beginning of a line, with a T or a blank between
// them, and with or without a fraction and a zone.
func (d *day) stamp(raw []byte) (s stamp, rest []byte, ok bool) {
	if len(raw) < len("2006-01-02T15:04:05") || raw[10] != 'T' && raw[10] != ' ' {
		return s, nil, false
	}
	if [10]byte(raw) != d.text {
		year, month, date := digits(raw[:4]), digits(raw[5:7]), digits(raw[8:10])
		if raw[4] != '-' || raw[7] != '-' || !isDate(year, month, date) {
			return s, nil, false
		}
		d.text, d.seconds = [10]byte(raw), time.Date(year, time.Month(month), date, 0, 0, 0, 0, time.UTC).Unix()
	}
	s.seconds, s.nanos, rest, ok = clock(raw[11:])
	s.seconds += d.seconds
	if s.blank = raw[10] == ' '; s.blank || !ok {
		return s, rest, ok
	}
	offset, rest, zoned := zone(rest)
	s.seconds -= offset
	s.zoned = zoned
	s.utc = zoned && raw[len(raw)-len(rest)-1] == 'Z'
	return s, rest, true
}

// shortStamp reads a date of RFC 3164 at the beginning of a line: "Apr  6 06:36:09", with or without a
// fraction. Its year is the last with which it is not after the reference.
func (d *day) shortStamp(raw []byte, reference time.Time, location *time.Location) (s stamp, rest []byte, ok bool) {
	if len(raw) < len("Apr  6 06:36:09") || raw[3] != ' ' || raw[6] != ' ' {
		return s, nil, false
	}
	date := raw[4:6]
	if date[0] == ' ' {
		date = date[1:]
	}
	return d.yearless(month(raw[:3]), digits(date), raw[7:], reference, location)
}

// klogStamp reads the date of klog behind the letter of the level: "1127 10:00:00.123456".
func (d *day) klogStamp(raw []byte, reference time.Time, location *time.Location) (s stamp, rest []byte, ok bool) {
	if len(raw) < len("I1127 10:00:00") || raw[5] != ' ' {
		return s, nil, false
	}
	return d.yearless(digits(raw[1:3]), digits(raw[3:5]), raw[6:], reference, location)
}

// yearless reads the time behind a date that has no year.
func (d *day) yearless(month, date int, raw []byte, reference time.Time, location *time.Location) (s stamp, rest []byte, ok bool) {
	if s.seconds, s.nanos, rest, ok = clock(raw); !ok || !isDate(2000, month, date) {
		return s, nil, false
	}
	if d.short.year == 0 || d.short.month != month || d.short.day != date {
		d.short.month, d.short.day, d.short.year = month, date, yearOf(month, date, reference, location)
	}
	s.seconds += time.Date(d.short.year, time.Month(month), date, 0, 0, 0, 0, time.UTC).Unix()
	return s, rest, true
}

// yearOf returns the last year in which a date is not after the reference. A day of tolerance is for
// clocks that differ, and for time zones.
func yearOf(month, date int, reference time.Time, location *time.Location) int {
	if location == nil {
		location = time.UTC
	}
	latest := reference.In(location).AddDate(0, 0, 1)
	for year := latest.Year(); year > latest.Year()-9; year-- {
		if isDate(year, month, date) && !time.Date(year, time.Month(month), date, 0, 0, 0, 0, location).After(latest) {
			return year
		}
	}
	return latest.Year()
}

// clock reads "15:04:05" with or without a fraction, in seconds and nanoseconds since midnight.
func clock(raw []byte) (seconds, nanos int64, rest []byte, ok bool) {
	if len(raw) < 8 || raw[2] != ':' || raw[5] != ':' {
		return 0, 0, nil, false
	}
	h, m, s := digits(raw[:2]), digits(raw[3:5]), digits(raw[6:8])
	if uint(h) > 23 || uint(m) > 59 || uint(s) > 60 {
		return 0, 0, nil, false
	}
	rest = raw[8:]
	if len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') && isDigit(rest[1]) {
		rest = rest[1:]
		unit := int64(time.Second)
		for len(rest) > 0 && isDigit(rest[0]) {
			unit /= 10
			nanos += int64(rest[0]-'0') * unit
			rest = rest[1:]
		}
	}
	return int64(h*3600 + m*60 + s), nanos, rest, true
}

// zone reads "Z", "+0100" or "+01:00", in seconds east of UTC.
func zone(raw []byte) (offset int64, rest []byte, ok bool) {
	switch {
	case len(raw) > 0 && raw[0] == 'Z':
		return 0, raw[1:], true
	case len(raw) < 5 || raw[0] != '+' && raw[0] != '-':
		return 0, raw, false
	}
	minutes := raw[3:]
	if minutes[0] == ':' {
		minutes = minutes[1:]
	}
	if len(minutes) < 2 {
		return 0, raw, false
	}
	h, m := digits(raw[1:3]), digits(minutes[:2])
	if uint(h) > 14 || uint(m) > 59 {
		return 0, raw, false
	}
	offset = int64(h*3600 + m*60)
	if raw[0] == '-' {
		offset = -offset
	}
	return offset, minutes[2:], true
}

// digits returns the number that a text of digits is, -1 for another text.
func digits(text []byte) (n int) {
	for _, c := range text {
		if !isDigit(c) {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func isDate(year, month, date int) bool {
	return year > 0 && month >= 1 && month <= 12 && date >= 1 && date <= time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// month returns the number of a month from the beginning of its English name, 0 for another text.
func month(name []byte) int {
	switch string(name) {
	case "Jan":
		return 1
	case "Feb":
		return 2
	case "Mar":
		return 3
	case "Apr":
		return 4
	case "May":
		return 5
	case "Jun":
		return 6
	case "Jul":
		return 7
	case "Aug":
		return 8
	case "Sep":
		return 9
	case "Oct":
		return 10
	case "Nov":
		return 11
	case "Dec":
		return 12
	}
	return 0
}
