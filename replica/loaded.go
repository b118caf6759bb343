package replica

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// CountCommand is the command by which ovs-vswitchd prints how many flows and ports it has.
// It takes less than a millisecond, whatever their number.
const CountCommand = "memory/show"

// countLoaded records what ovs-vswitchd has now that everything is restored.
func (s *starter) countLoaded(ctx context.Context) error {
	shown, err := daemon.Ask(ctx, s.rt, s.wd.VarRun(workdir.OVS), "ovs-vswitchd", CountCommand)
	if err != nil {
		return err
	}
	rules, ports := counted(string(shown))
	s.report.Loaded, s.restored = &report.Loaded{Rules: rules, Ports: ports}, time.Now().UTC()
	return nil
}

var shownCount = lazyregexp.New(`\b(rules|ports):([0-9]+)`)

// counted returns the numbers that CountCommand printed. A number of 0 is not printed.
func counted(shown string) (rules, ports int) {
	for _, match := range shownCount.FindAllStringSubmatch(shown, -1) {
		n, _ := strconv.Atoi(match[2])
		if match[1] == "rules" {
			rules = n
		} else {
			ports = n
		}
	}
	return rules, ports
}

// Changes returns how a running replica differs from what its start left, in words, "" if
// nothing shows a difference. shown is what its ovs-vswitchd prints for CountCommand now.
// The log of ovs-vswitchd names what was done to flows, and is there if the replica runs on
// this host; a change of groups or meters alone is not noticed.
func Changes(wd *workdir.Dir, report *report.Report, shown string) string {
	if report.Loaded == nil { // by an earlier version
		return ""
	}
	rules, ports := counted(shown)
	var all []string
	state, err := LastState(wd)
	if err == nil && state.Pod == nil {
		all = loggedChanges(wd.Log(roleVswitchd), state.Restored)
	}
	if len(all) == 0 && rules != report.Loaded.Rules {
		all = append(all, fmt.Sprintf("it has %d flows, and its start left %d", rules, report.Loaded.Rules))
	}
	if ports != report.Loaded.Ports {
		all = append(all, fmt.Sprintf("it has %d ports, and its start left %d", ports, report.Loaded.Ports))
	}
	return strings.Join(all, "; ")
}

// flowMods matches a line in which ovs-vswitchd logs how a connection changed the flows of a
// bridge (ofconn_log_flow_mods in ofproto/connmgr.c).
var flowMods = lazyregexp.New(`^(\S+)\|\d+\|connmgr\|INFO\|(.+)<->\S+: \d+ flow_mods .*\((.+)\)`)

// loggedChanges returns the changes of flows that a log of ovs-vswitchd reports after a time,
// a text for each bridge.
func loggedChanges(path string, after time.Time) []string {
	const maxTail = 1 << 20 // bytes of the end
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxTail {
		_, _ = file.Seek(-maxTail, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(file, maxTail))
	var bridges []string
	changes := map[string]map[string]int{} // by bridge: the number of adds, deletes and modifications
	for line := range bytes.Lines(text) {
		match := flowMods.FindSubmatch(line)
		if match == nil {
			continue
		}
		if at, err := time.Parse(time.RFC3339, string(match[1])); err != nil || !at.After(after) {
			continue
		}
		bridge := string(match[2])
		if changes[bridge] == nil {
			changes[bridge] = map[string]int{}
			bridges = append(bridges, bridge)
		}
		for part := range strings.SplitSeq(string(match[3]), ", ") {
			number, what, _ := strings.Cut(part, " ")
			n, _ := strconv.Atoi(number)
			changes[bridge][what] += n
		}
	}
	var all []string
	for _, bridge := range bridges {
		var parts []string
		for _, kind := range []struct{ logged, printed string }{{"adds", "added"}, {"modifications", "modified"}, {"deletes", "deleted"}} {
			if n := changes[bridge][kind.logged]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, kind.printed))
			}
		}
		all = append(all, fmt.Sprintf("flows of %s: %s", bridge, strings.Join(parts, ", ")))
	}
	return all
}
