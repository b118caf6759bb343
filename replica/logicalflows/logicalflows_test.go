package logicalflows

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ovs-offline/internal/versions"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/daemons/ovs"
)

// fixture serves the SB database that ovn-northd 25.03 wrote.
func fixture(t *testing.T) *ovs.Server {
	t.Helper()
	ovs.Need(t, "ovsdb-server", "ovn-trace", "ovn-sbctl")
	packed, err := os.Open("../../testdata/versions/ovn-25.03/ovnsb_db.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	dir := ovs.Dir(t)
	path := filepath.Join(dir, "sb.db")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return ovs.ServeIn(t, dir, path)
}

// find runs Find and checks that it leaves nothing behind.
func find(t *testing.T, s *ovs.Server) *report.LogicalFlows {
	t.Helper()
	folder := filepath.Join(s.Dir, "tracer")
	found, err := Find(t.Context(), process.New(process.Options{}), strings.TrimPrefix(s.Remote, "unix:"), folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the files of ovn-trace: %v", err)
	}
	return found
}

// stages returns the number of flows by stage.
func stages(l *report.LogicalFlows) map[string]int {
	counts := map[string]int{}
	for _, s := range l.Stages {
		counts[fmt.Sprintf("%s %d %s", s.Pipeline, s.Table, s.Name)] += s.Flows
	}
	return counts
}

// flow is a logical flow as ovn-sbctl prints it.
type flow struct {
	stage          string
	table          int
	match, actions string
	datapaths      int
}

// flows returns all logical flows. The columns come in the order in which they are named.
func flows(t *testing.T, s *ovs.Server) []flow {
	t.Helper()
	list := func(table, columns string) [][]any {
		var printed struct{ Data [][]any }
		out := s.Run("ovn-sbctl", ovs.Timeout(), "--db="+s.Remote, "--format=json", "--columns="+columns, "list", table)
		if err := json.Unmarshal([]byte(out), &printed); err != nil {
			t.Fatal(err)
		}
		return printed.Data
	}
	groups := map[string]int{}
	for _, row := range list("Logical_DP_Group", "_uuid,datapaths") {
		value := row[1].([]any)
		groups[row[0].([]any)[1].(string)] = 1
		if value[0] == "set" {
			groups[row[0].([]any)[1].(string)] = len(value[1].([]any))
		}
	}
	var all []flow
	for _, row := range list("Logical_Flow", "pipeline,table_id,match,actions,logical_dp_group,external_ids") {
		f := flow{table: int(row[1].(float64)), match: row[2].(string), actions: row[3].(string), datapaths: 1}
		if ref := row[4].([]any); ref[0] == "uuid" {
			f.datapaths = groups[ref[1].(string)]
		}
		for _, pair := range row[5].([]any)[1].([]any) {
			if pair.([]any)[0] == "stage-name" {
				f.stage = fmt.Sprintf("%s %d %s", row[0], f.table, pair.([]any)[1])
			}
		}
		all = append(all, f)
	}
	return all
}

// traceWarning matches the last line of a warning: a text can have several.
var traceWarning = regexp.MustCompile(`(?m)^(?:[0-9TZ:.-]+\|[0-9]+\|ovntrace\|WARN\|)?(.*): parsing (expression|actions) failed`)

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }

// truth counts by stage the flows that the installed ovn-trace warns about when a user
// runs it. It prints a text once for each datapath of each flow. Where it warns of some of
// the flows with a text only, those are in the last tables: "next" leads beyond the last.
func truth(t *testing.T, s *ovs.Server) map[string]int {
	t.Helper()
	out, _ := exec.Command("ovn-trace", "--db="+s.Remote, `inport == "none"`).CombinedOutput()
	if version := versions.PrintedOVN(bytes.Replace([]byte(s.Run("ovn-trace", "--version")), []byte("ovn-trace"),
		[]byte("ovn-nbctl"), 1)); versions.Compare(version, "26.03") >= 0 {
		t.Skip("ovn-trace prints only the first warnings")
	}
	warned := map[[2]string]int{}
	for _, m := range traceWarning.FindAllSubmatch(out, -1) {
		warned[[2]string{string(m[2]), string(m[1])}]++
	}
	all := flows(t, s)
	slices.SortStableFunc(all, func(a, b flow) int { return b.table - a.table })
	counts := map[string]int{}
	for _, f := range all {
		for _, key := range [][2]string{{"expression", lastLine(f.match)}, {"actions", lastLine(f.actions)}} {
			if warned[key] >= f.datapaths {
				warned[key] -= f.datapaths
				counts[f.stage]++
				break
			}
		}
	}
	for key, left := range warned {
		if left > 0 {
			t.Errorf("no flow for %d warnings: %v", left, key)
		}
	}
	return counts
}

func same(t *testing.T, found *report.LogicalFlows, want map[string]int) {
	t.Helper()
	got, sum := stages(found), 0
	for _, n := range want {
		sum += n
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || found.Unparsed != sum {
		t.Errorf("%d flows: %v, want %d: %v", found.Unparsed, got, sum, want)
	}
}

// TestFlowsOfANewerOVN compares with what the installed ovn-trace warns of.
func TestFlowsOfANewerOVN(t *testing.T) {
	s := fixture(t)
	want, found := truth(t, s), find(t, s)
	same(t, found, want)
	if all := len(flows(t, s)); found.Total != all {
		t.Errorf("%d flows, want %d", found.Total, all)
	}
	for _, stage := range found.Stages {
		if stage.Reason == "" {
			t.Errorf("no reason for %+v", stage)
		}
	}
	t.Logf("%d of %d flows: %v", found.Unparsed, found.Total, want)
}

// TestEveryFlowIsCounted needs no certain version of OVN: no version knows the action.
// Releases from 26.03 on print one warning a second.
func TestEveryFlowIsCounted(t *testing.T) {
	s := fixture(t)
	before := stages(find(t, s))
	db, err := ovsdb.Connect(t.Context(), strings.TrimPrefix(s.Remote, "unix:"), ovsdb.SB)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Select(t.Context(), "Logical_Flow", "pipeline", "table_id", "priority", "external_ids")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, row := range rows {
		table, _ := row.Int("table_id")
		stage := fmt.Sprintf("%s %d %s", row.String("pipeline"), table, row.Map("external_ids")["stage-name"])
		if priority, _ := row.Int("priority"); priority == 0 && before[stage] == 0 {
			s.Run("ovn-sbctl", ovs.Timeout(), "--db="+s.Remote, "set", "Logical_Flow", row.UUID, `actions="frobnicate; next;"`)
			want[stage]++
		} else if before[stage] > 0 {
			want[stage] = before[stage]
		}
	}
	same(t, find(t, s), want)
}

// TestOddTexts checks that the mark does not change what ovn-trace can parse.
func TestOddTexts(t *testing.T) {
	s := fixture(t)
	ids := strings.Fields(s.Run("ovn-sbctl", ovs.Timeout(), "--db="+s.Remote, "--bare", "--columns=_uuid", "find",
		"Logical_Flow", "priority=0", "pipeline=egress"))
	odd := []string{`next; // comment`, `next; /* comment */`, `next; /* open`, `next; /`, `next; \"`, `next; \"open`,
		`next;\n`, `next;\nfrobnicate`, `next; //ovs-offline:` + flowID, ``, `drop;`, `next;\\\\`}
	if len(ids) < len(odd) {
		t.Fatalf("%d flows for %d texts", len(ids), len(odd))
	}
	for i, text := range odd {
		s.Run("ovn-sbctl", ovs.Timeout(), "--db="+s.Remote, "set", "Logical_Flow", ids[i], `actions="`+text+`"`)
	}
	want := truth(t, s)
	same(t, find(t, s), want)
}

// TestNoDatabaseServer checks that a connection that can't be made is an error, and ends
// ovn-trace.
func TestNoDatabaseServer(t *testing.T) {
	ovs.Need(t, "ovn-trace")
	dir := ovs.Dir(t)
	folder := filepath.Join(dir, "tracer")
	_, err := Find(t.Context(), process.New(process.Options{}), filepath.Join(dir, "none.sock"), folder)
	if err == nil || !strings.Contains(err.Error(), "connecting to the OVN SB database") {
		t.Error(err)
	}
	checkEnded(t, folder)
}

// TestFindEndsWithItsContext cancels a check that waits for a server that does not answer.
func TestFindEndsWithItsContext(t *testing.T) {
	s := fixture(t)
	pid, err := os.ReadFile(filepath.Join(s.Dir, "ovsdb-server.pid"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(server, syscall.SIGCONT) }()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	folder := filepath.Join(s.Dir, "tracer")
	if _, err := Find(ctx, process.New(process.Options{}), strings.TrimPrefix(s.Remote, "unix:"), folder); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Error(err)
	}
	checkEnded(t, folder)
}

// checkEnded checks that no process of an ovn-trace of the folder is left.
func checkEnded(t *testing.T, folder string) {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range commands {
		if words, err := os.ReadFile(path); err == nil && strings.Contains(string(words), folder) {
			t.Errorf("left: %s: %q", path, words)
		}
	}
}
