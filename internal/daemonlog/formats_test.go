package daemonlog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ovs-offline/test/check/expect"
)

// read is a line with its texts as strings.
type read struct {
	At                            string
	Program, Host, Module, Thread string
	Level                         Level
	Text                          string
}

func readAll(t testing.TB, text string, options Options) (lines []read, result Result) {
	t.Helper()
	r, err := NewReader(t.Context(), strings.NewReader(text), "ovn-controller", options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		line, err := r.Next()
		if err != nil {
			return lines, r.Result()
		}
		at := ""
		if !line.At.IsZero() {
			at = line.At.Format(time.RFC3339Nano)
		}
		lines = append(lines, read{at, string(line.Program), string(line.Host), string(line.Module), string(line.Thread),
			line.Level, string(line.Text)})
	}
}

// TestFormats reads a line of each format. The reference is of January, as a report that was made then
// with lines of the year before.
func TestFormats(t *testing.T) {
	zone := time.FixedZone("", 3600)
	options := Options{Reference: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC), Location: zone}
	const own = "ovn-controller"
	for name, c := range map[string]struct {
		line string
		want read
	}{
		"vlog": {"2022-03-25T00:00:12.913Z|10324|dpif_netlink(handler10)|WARN|system@ovs-system: lost packet",
			read{"2022-03-25T00:00:12.913Z", own, "", "dpif_netlink", "handler10", Warn, "system@ovs-system: lost packet"}},
		"vlog of the main thread": {"2022-03-25T00:00:12.913Z|00001|vlog|INFO|opened log file /var/log/a|b.log\r",
			read{"2022-03-25T00:00:12.913Z", own, "", "vlog", "", Info, "opened log file /var/log/a|b.log"}},
		"vlog without milliseconds": {"2013-03-25T00:00:12Z|00001|poll_loop|DBG|wakeup",
			read{"2013-03-25T00:00:12Z", own, "", "poll_loop", "", Debug, "wakeup"}},
		"vlog of a full level": {"2022-03-25T00:00:12.913Z|00001|util|EMER|assertion a failed",
			read{"2022-03-25T00:00:12.913Z", own, "", "util", "", Emergency, "assertion a failed"}},
		"vlog in the log of a container": {"2026-01-01T00:00:00.123456789Z stdout F 2025-12-31T23:59:59.999Z|00012|binding|ERR|text",
			read{"2025-12-31T23:59:59.999Z", own, "", "binding", "", Error, "text"}},
		"vlog in the log of a container of a zone": {"2026-01-01T00:00:00.123456789+01:00 stderr P 2025-12-31T23:59:59.999Z|00012|binding|ERR|text",
			read{"2025-12-31T23:59:59.999Z", own, "", "binding", "", Error, "text"}},
		"vlog of kubectl": {"2026-01-01T00:00:00.123456789Z 2025-12-31T23:59:59.999Z|00012|binding|INFO|Claiming lport a",
			read{"2025-12-31T23:59:59.999Z", own, "", "binding", "", Info, "Claiming lport a"}},
		"another text of kubectl": {"2026-01-01T00:00:00.123456789Z + exec ovn-controller: now",
			read{"2026-01-01T00:00:00.123456789Z", own, "", "", "", Unknown, "+ exec ovn-controller: now"}},
		"klog of a container": {"2026-01-01T00:00:00.123456789Z stderr F E0101 01:00:00.100000    1234 ovn.go:12] failed [a] b",
			read{"2026-01-01T00:00:00.123456789Z", own, "", "", "", Error, "failed [a] b"}},
		"klog": {"I1127 10:00:00.123456   1234 file.go:12] Starting",
			read{"2025-11-27T09:00:00.123456Z", own, "", "", "", Info, "Starting"}},
		"syslog": {"Apr  6 06:36:09 compute-1 ovs-vswitchd[123]: ovs|00012|bridge|WARN|bridge br-int: cannot",
			read{"2025-04-06T05:36:09Z", "ovs-vswitchd", "compute-1", "bridge", "", Warn, "bridge br-int: cannot"}},
		"syslog with a time of vlog": {"Jan  1 00:00:00 compute-1 ovs-vswitchd[123]: 2025-12-31T23:00:01.001Z|00012|a(b)|INFO|c",
			read{"2025-12-31T23:00:01.001Z", "ovs-vswitchd", "compute-1", "a", "b", Info, "c"}},
		"syslog of the kernel": {"Jan  1 00:00:00 compute-1 kernel: device eth0 entered promiscuous mode: a",
			read{"2025-12-31T23:00:00Z", "kernel", "compute-1", "", "", Unknown, "device eth0 entered promiscuous mode: a"}},
		"syslog of the day after the reference": {"Jan  4 00:00:00 compute-1 cron[1]: x",
			read{"2026-01-03T23:00:00Z", "cron", "compute-1", "", "", Unknown, "x"}},
		"syslog of a leap day": {"Feb 29 12:00:00 compute-1 cron[1]: x",
			read{"2024-02-29T11:00:00Z", "cron", "compute-1", "", "", Unknown, "x"}},
		"journal, short-precise": {"Feb 10 17:52:37.123456 compute-1 ovn-controller[77]: ovs|00005|main|INFO|OVS IDL",
			read{"2025-02-10T16:52:37.123456Z", "ovn-controller", "compute-1", "main", "", Info, "OVS IDL"}},
		"journal, short-iso": {"2026-02-10T17:52:37+0100 compute-1 systemd[1]: Starting Open vSwitch",
			read{"2026-02-10T16:52:37Z", "systemd", "compute-1", "", "", Unknown, "Starting Open vSwitch"}},
		"syslog of RFC 3339": {"2026-02-10T17:52:37.000250+01:00 compute-1 ovs-vsctl: ovs|00001|vsctl|INFO|Called as ovs-vsctl show",
			read{"2026-02-10T16:52:37.00025Z", "ovs-vsctl", "compute-1", "vsctl", "", Info, "Called as ovs-vsctl show"}},
		"OpenStack": {"2023-11-23 02:53:06.226 5571 INFO ovsdbapp.backend.ovs_idl.vlog [-] tcp:127.0.0.1:6640: connected",
			read{"2023-11-23T01:53:06.226Z", own, "", "ovsdbapp.backend.ovs_idl.vlog", "", Info,
				"tcp:127.0.0.1:6640: connected"}},
		"OpenStack with a request": {"2023-11-23 02:53:06.226 5571 WARNING neutron.agent [None req-1 - - - - -] a [b] c",
			read{"2023-11-23T01:53:06.226Z", own, "", "neutron.agent", "", Warn, "a [b] c"}},
		"vlog with another text": {"2022-03-25T00:00:12.913Z|no number|WARN|x",
			read{"2022-03-25T00:00:12.913Z", own, "", "", "", Unknown, "no number|WARN|x"}},
		"Open vSwitch 1.x": {"Oct 30 20:50:21|00466|netdev|WARN|failed to get flags for network device qr-aee0b42e-33: No such device",
			read{"2025-10-30T19:50:21Z", own, "", "netdev", "", Warn,
				"failed to get flags for network device qr-aee0b42e-33: No such device"}},
		"syslog without a process ID": {"May 24 20:51:10 n1 ovs-vswitchd: ovs|00170|poll_loop(urcu5)|DBG|wakeup due to [POLLIN] on fd 37",
			read{"2025-05-24T19:51:10Z", "ovs-vswitchd", "n1", "poll_loop", "urcu5", Debug, "wakeup due to [POLLIN] on fd 37"}},
		"syslog with a priority": {"<28>May 24 20:51:10 n1 ovs-vswitchd[7]: ovs|00592|bridge|WARN|could not",
			read{"2025-05-24T19:51:10Z", "ovs-vswitchd", "n1", "bridge", "", Warn, "could not"}},
		"syslog of RFC 5424": {"<28>1 2022-01-01T00:00:00.5+02:00 n1 ovn-northd 123 - - ovs|00592|northd|WARN|text",
			read{"2021-12-31T22:00:00.5Z", "ovn-northd", "n1", "northd", "", Warn, "text"}},
		"syslog in UTC": {"2022-01-01T00:00:00Z n1 ovs-vswitchd: ovs|00592|bridge|WARN|text",
			read{"2022-01-01T00:00:00Z", "ovs-vswitchd", "n1", "bridge", "", Warn, "text"}},
		"syslog in UTC with a process ID": {"2022-01-01T00:00:00Z n1 ovs-vswitchd[1]: 2022-01-01T00:00:00.7Z|00592|bridge|WARN|text",
			read{"2022-01-01T00:00:00.7Z", "ovs-vswitchd", "n1", "bridge", "", Warn, "text"}},
		"journal, short-full": {"Tue 2022-05-24 20:51:10 UTC n1 ovs-vswitchd[1]: ovs|00592|bridge|WARN|text",
			read{"2022-05-24T20:51:10Z", "ovs-vswitchd", "n1", "bridge", "", Warn, "text"}},
		"journal, short-full, of a zone": {"Tue 2022-05-24 20:51:10 CEST n1 ovs-vswitchd[1]: ovs|00592|bridge|WARN|text",
			read{"2022-05-24T19:51:10Z", "ovs-vswitchd", "n1", "bridge", "", Warn, "text"}},
		"journal, cat": {"ovs|00592|bridge|WARN|text", read{"", own, "", "bridge", "", Warn, "text"}},
		"vlog behind klog": {"I1127 10:00:00.123456   1234 ovn.go:12] 2025-11-27T09:00:00.1Z|00001|binding|INFO|Claiming lport a",
			read{"2025-11-27T09:00:00.1Z", own, "", "binding", "", Info, "Claiming lport a"}},
		"vlog in Docker's JSON": {`{"log":"2025-12-31T23:59:59.999Z|00012|binding|ERR|\"text\"\n","stream":"stderr","time":"2026-01-01T00:00:00.1Z"}`,
			read{"2025-12-31T23:59:59.999Z", own, "", "binding", "", Error, `"text"`}},
		"another text in Docker's JSON": {`{"log":"starting\n","stream":"stdout","time":"2026-01-01T00:00:00.1Z"}`,
			read{"2026-01-01T00:00:00.1Z", own, "", "", "", Unknown, "starting"}},
		"vlog of kubectl with the pod": {"[pod/ovnkube-node-x/ovn-controller] 2025-12-31T23:59:59.999Z|00012|binding|ERR|text",
			read{"2025-12-31T23:59:59.999Z", own, "", "binding", "", Error, "text"}},
		"after a crash": {"\x00\x00\x002022-03-25T00:00:12.913Z|00001|a|INFO|b",
			read{"2022-03-25T00:00:12.913Z", own, "", "a", "", Info, "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, result := readAll(t, c.line+"\n", options)
			expect.Equal(t, got, []read{c.want})
			expect.Equal(t, result.Continued, 0)
		})
	}
}

// TestContinuation reads lines of no format: they have the time of the line before them.
func TestContinuation(t *testing.T) {
	const text = "-- Logs begin at Mon --\n2022-03-25T00:00:12.913Z|00001|a|INFO|b\nTraceback (most recent call last):\n  File: a\n" +
		"2022-99-25T00:00:13.913Z|00001|a|INFO|b\n99\n"
	got, result := readAll(t, text, Options{})
	expect.Equal(t, got, []read{{"", "ovn-controller", "", "", "", Unknown, "-- Logs begin at Mon --"},
		{"2022-03-25T00:00:12.913Z", "ovn-controller", "", "a", "", Info, "b"},
		{"2022-03-25T00:00:12.913Z", "ovn-controller", "", "", "", Unknown, "Traceback (most recent call last):"},
		{"2022-03-25T00:00:12.913Z", "ovn-controller", "", "", "", Unknown, "  File: a"},
		{"2022-03-25T00:00:12.913Z", "ovn-controller", "", "", "", Unknown, "2022-99-25T00:00:13.913Z|00001|a|INFO|b"},
		{"2022-03-25T00:00:12.913Z", "ovn-controller", "", "", "", Unknown, "99"}})
	expect.Equal(t, result.Continued, 5)
	expect.Equal(t, result.Lines, 6)
}

// TestZone reads lines without a zone: they have no time unless the caller names a zone.
func TestZone(t *testing.T) {
	const text = "2023-11-23 02:53:06.226 5571 INFO a [-] b\nApr  6 06:36:09 compute-1 a[1]: b\n"
	got, result := readAll(t, text, Options{})
	if got[0].At != "" || got[1].At != "" {
		t.Errorf("%+v", got)
	}
	expect.Equal(t, result, Result{Lines: 2, NoZone: 2, NoYear: 1})
	got, result = readAll(t, text, Options{Location: time.UTC, Reference: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)})
	expect.Equal(t, got[0].At+" "+got[1].At, "2023-11-23T02:53:06.226Z 2024-04-06T06:36:09Z")
	expect.Equal(t, result.First.Year()+result.Last.Year(), 2023+2024)
}

// TestZoneOfASyslog reads lines with the time of the host and that of the program, which is in UTC.
func TestZoneOfASyslog(t *testing.T) {
	for line, want := range map[string]string{
		"Apr  6 06:36:10 compute-1 ovn_controller[1]: 2024-04-06T04:36:09.913Z|00001|a|INFO|b": "+02:00",
		"Apr  6 06:36:10 compute-1 ovn_controller[1]: 2024-04-06T12:06:09.913Z|00001|a|INFO|b": "-05:30",
		"Apr  6 06:36:10 compute-1 ovn_controller[1]: 2024-04-06T12:13:09.913Z|00001|a|INFO|b": "<nil>",
		"Apr  6 06:36:10 compute-1 ovn_controller[1]: ovs|00001|a|INFO|b":                      "<nil>",
	} {
		_, result := readAll(t, line+"\n", Options{Location: time.UTC,
			Reference: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)})
		expect.Equal(t, strings.ReplaceAll(fmt.Sprint(result.Zone), "UTC", "<nil>"), want, line)
	}
}
