package sosreport

import (
	"testing"
	"time"

	"ovs-offline/internal/archive"
)

// TestTimeOfAReport checks that the best known time of a report is used.
func TestTimeOfAReport(t *testing.T) {
	const (
		listBr    = "sos_commands/openvswitch/ovs-vsctl_-t_5_list-br"
		manifests = "sos_reports/manifest.json"
		date      = "sos_commands/date/date_--utc"
		commands  = `{"end_time": "2026-11-22 01:43:09.4", "components": {"report": {"plugins": {"openvswitch": {"commands": [{"start_time": 1795304582.3}, {"start_time": 1795304589}]}}}}}`
		endOnly   = `{"end_time": "2026-11-22 01:43:09.4", "components": {"report": {"plugins": {"openvswitch": {"commands": [{"start_time": "2026-11-22 01:43:02"}]}}}}}`
	)
	for what, c := range map[string]struct {
		top   string
		files []member
		want  string
		day   bool
	}{
		"times of commands":    {"sosreport-n1-2026-11-22-abcdefg/", []member{file(manifests, commands), file(date, "Sat Nov 21 12:00:00 UTC 2026\n")}, "2026-11-21 23:43:09", false},
		"output of date":       {"sosreport-n1-2026-11-22-abcdefg/", []member{file(manifests, endOnly), file(date, "Sat Nov  7 23:43:01 UTC 2026\n")}, "2026-11-07 23:43:01", false},
		"end in the manifest":  {"sosreport-n1-2026-11-22-abcdefg/", []member{file(manifests, endOnly)}, "2026-11-22 01:43:09", false},
		"name with a day":      {"sosreport-n1-label-0123-2026-11-22-abcdefg/", nil, "2026-11-22 00:00:00", true},
		"name with a time":     {"sosreport-n1.0123-20261122014309/", nil, "2026-11-22 01:43:09", false},
		"no date in the name":  {"n1/", nil, "", false},
		"an impossible date":   {"sosreport-n1-2026-13-42-abcdefg/", nil, "", false},
		"an impossible number": {"x/", []member{file(manifests, `{"components": {"report": {"plugins": {"a": {"commands": [{"start_time": 1e300}]}}}}}`)}, "", false},
	} {
		members := under(c.top, append(c.files, file(listBr, "br-int\n"))...)
		r, err := Open(t.Context(), write(t, "x.tar", tarOf(t, members...)), t.TempDir(), archive.Limits{}, nil)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		have := ""
		if r.Taken.Known() {
			have = r.Taken.At.Format(time.DateTime)
		}
		if have != c.want || r.Taken.DayOnly != c.day {
			t.Errorf("%s: %q, only the day: %v; want %q", what, have, r.Taken.DayOnly, c.want)
		}
	}
}
