package history

import (
	"strings"
	"time"

	"ovs-offline/internal/fault"
)

// TimeFormat is how times are printed, in UTC: with the milliseconds that databases record.
const TimeFormat = "2006-01-02 15:04:05.000Z"

// ParseRange reads the first and the last moment of a range, of which each may be "": that is zero.
func ParseRange(since, until string) (first, last time.Time, err error) {
	if since != "" {
		if first, err = parseTime(since); err != nil {
			return first, last, err
		}
	}
	if until != "" {
		last, err = parseTime(until)
	}
	return first, last, err
}

// parseTime reads a time as it is printed here or in a log: RFC 3339, or a date with or
// without a time, in UTC.
func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	utc := strings.TrimSuffix(text, "Z")
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.Parse(layout, utc); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fault.Usagef("%q is not a time: give one in UTC as 2026-11-22 14:57:26.215, or as 2026-11-22T14:57:26+01:00", text)
}
