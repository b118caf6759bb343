package sosreport

import (
	"testing"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
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
		"times of commands": {"sosreport-n1-2026-11-22-abcdefg/",
			[]member{file(manifests, commands), file(date, "Sat Nov 21 12:00:00 UTC 2026\n")}, "2026-11-21 23:43:09", false},
		"output of date": {"sosreport-n1-2026-11-22-abcdefg/",
			[]member{file(manifests, endOnly), file(date, "Sat Nov  7 23:43:01 UTC 2026\n")}, "2026-11-07 23:43:01", false},
		"end in the manifest": {"sosreport-n1-2026-11-22-abcdefg/", []member{file(manifests, endOnly)},
			"2026-11-22 01:43:09", false},
		"name with a day":     {"sosreport-n1-label-0123-2026-11-22-abcdefg/", nil, "2026-11-22 00:00:00", true},
		"name with a time":    {"sosreport-n1.0123-20261122014309/", nil, "2026-11-22 01:43:09", false},
		"no date in the name": {"n1/", nil, "", false},
		"an impossible date":  {"sosreport-n1-2026-13-42-abcdefg/", nil, "", false},
		"an impossible number": {"x/", []member{file(manifests,
			`{"components": {"report": {"plugins": {"a": {"commands": [{"start_time": 1e300}]}}}}}`)}, "", false},
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

// TestOutputsHaveTheTimeOfTheirCommand checks that an output has the start_time of its command in
// the manifest, and none where that is a local time.
func TestOutputsHaveTheTimeOfTheirCommand(t *testing.T) {
	const (
		listBr = "sos_commands/openvswitch/ovs-vsctl_-t_5_list-br"
		flows  = "sos_commands/openvswitch/ovs-appctl_dpctl.dump-flows_-m_system_ovs-system"
		bfd    = "sos_commands/openvswitch/ovs-appctl_bfd.show"
		ran    = `{"components": {"report": {"plugins": {"openvswitch": {"commands": [
			{"exec": "ovs-appctl dpctl/dump-flows -m system@ovs-system", "filepath": "` + flows + `", "start_time": 1795304582.25},
			{"exec": "ovs-appctl bfd/show", "filepath": "` + bfd + `", "start_time": "2026-11-22 01:43:02"}]}}}}}`
	)
	members := under("sosreport-n1-2026-11-22-abcdefg/", file("sos_reports/manifest.json", ran), file(listBr, "br-int\n"),
		file(flows, "ufid:1, recirc_id(0), actions:drop\n"), file(bfd, "---- p0 ----\n"))
	r, err := Open(t.Context(), write(t, "x.tar", tarOf(t, members...)), t.TempDir(), archive.Limits{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[recording.Name]time.Time{
		workdir.RecordedDatapathFlows: time.Date(2026, 11, 21, 23, 43, 2, 250e6, time.UTC),
		workdir.RecordedBFD:           {},
	} {
		outputs := r.Outputs(command, "")
		if len(outputs) != 1 {
			t.Fatalf("%s: %d outputs", command, len(outputs))
		}
		expect.Equal(t, outputs[0].Ran, want, command)
	}
}
