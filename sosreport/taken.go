package sosreport

import (
	"path"
	"strings"
	"time"

	"ovs-offline/workdir/recording"
)

// dateFile is the output of `date --utc` of sos's plugin date, and localDateFile that of `date`, which
// tells the time only where the node's zone is UTC.
const (
	dateFile      = "sos_commands/date/date_--utc"
	localDateFile = "sos_commands/date/date"
)

// taken returns when the report was made: from its manifest, from the output of
// `date`, or from the name of its folder or archive, which often has the day only.
func (c *contents) taken() recording.Moment {
	if c.manifest != nil {
		if last := c.manifest.lastCommand(); !last.IsZero() {
			return recording.Moment{At: last}
		}
	}
	for _, name := range []string{dateFile, localDateFile} {
		if at, err := time.Parse("Mon Jan _2 15:04:05 UTC 2006", strings.TrimSpace(c.text(name))); err == nil {
			return recording.Moment{At: at}
		}
	}
	if c.manifest != nil {
		// It is the node's local time, without its zone. Nodes of one deployment
		// usually have one zone.
		if at, err := time.Parse("2006-01-02 15:04:05.999999", c.manifest.EndTime); err == nil {
			return recording.Moment{At: at, Local: true}
		}
	}
	for _, name := range []string{path.Base(c.top), sourceName(c), path.Base(c.tree.Source)} {
		if moment := takenOfName(name); moment.Known() {
			return moment
		}
	}
	return recording.Moment{}
}

// lastCommand returns when the last command began; zero where the manifest has no times that
// are independent of the time zone.
func (m *manifest) lastCommand() (last time.Time) {
	for _, plugin := range m.Components.Report.Plugins {
		for _, command := range plugin.Commands {
			if at := commandTime(command.StartTime); at.After(last) {
				last = at
			}
		}
	}
	return last
}

// commandTime returns a command's start_time, which newer versions of sos write as a number of
// seconds since 1970. It returns zero for the local time of older ones, whose zone is not known.
func commandTime(start any) time.Time {
	const millennium = 1e11 // a larger number of seconds lies beyond this one
	if at, ok := start.(float64); ok && at > 0 && at < millennium {
		return time.UnixMilli(int64(at * 1000)).UTC()
	}
	return time.Time{}
}

// takenOfName returns the time in a name that sos gave to a report.
func takenOfName(name string) recording.Moment {
	match := dirName.FindStringSubmatch(name)
	if match == nil {
		return recording.Moment{}
	}
	if at, err := time.Parse(time.DateOnly, match[2]); err == nil {
		return recording.Moment{At: at, DayOnly: true}
	}
	if at, err := time.Parse("20060102150405", match[3]); err == nil {
		return recording.Moment{At: at, Local: true}
	}
	return recording.Moment{}
}
