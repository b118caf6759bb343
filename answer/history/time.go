package history

import (
	"context"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/fault"
)

// TimeFormat is how times are printed, in UTC: with the milliseconds that databases record.
const TimeFormat = "2006-01-02 15:04:05.000Z"

// ParseRange reads the first and the last moment of a range, of which each may be "": that is zero. A time of day has no
// day until FindDay gives it one.
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

// FindDay gives times of day the day of the last transaction of some databases, or the day of last if that is later.
func FindDay(ctx context.Context, sources []Source, last time.Time, times ...*time.Time) error {
	times = slices.DeleteFunc(times, func(at *time.Time) bool { return at.Year() != 0 })
	if len(times) == 0 {
		return nil
	}
	if _, err := Read(ctx, sources, Query{Brief: true}, func(event *Event) error {
		if event.Time.After(last) {
			last = event.Time
		}
		return nil
	}); err != nil {
		return err
	}
	if last.IsZero() {
		return fault.Usagef("%s needs a day: the data has no time that tells one", times[0].Format(time.TimeOnly))
	}
	for _, at := range times {
		*at = at.AddDate(last.UTC().Year(), int(last.UTC().Month())-1, last.UTC().Day()-1)
	}
	return nil
}

// parseTime reads a time as it is printed here or in a log: RFC 3339, or a date with or
// without a time, or a time of day in year 0, in UTC.
func parseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	utc := strings.TrimSuffix(text, "Z")
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", "15:04:05", "15:04"} {
		if at, err := time.Parse(layout, utc); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fault.Usagef("%q is not a time: give one in UTC as 2026-11-22 14:57:26.215, as 2026-11-22T14:57:26+01:00, or as 14:57 for the last day of the data", text)
}
