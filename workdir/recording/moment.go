package recording

import "time"

// Moment is the time at which a source was recorded.
type Moment struct {
	At      time.Time // zero if it is not known
	DayOnly bool      // only the day is known
	Local   bool      // in the node's time zone, which is not known
}

// Known reports whether the source has a time.
func (m Moment) Known() bool { return !m.At.IsZero() }

// Distance returns the time between two known moments: in whole days if byDay is set.
func (m Moment) Distance(other Moment, byDay bool) time.Duration {
	a, b := m.At, other.At
	if byDay {
		a, b = startOfDay(a), startOfDay(b)
	}
	return a.Sub(b).Abs()
}

func startOfDay(moment time.Time) time.Time {
	year, month, day := moment.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
