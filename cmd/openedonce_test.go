package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

var (
	openedPath = regexp.MustCompile(`openat\([^,]*, "([^"]*)"`)
	executed   = regexp.MustCompile(`execve\("[^"]*/(ovs-vswitchd|ovn-controller)"`)
)

// TestQuestionsOpenEachFileOnce asks questions about a capture under strace: each collected file is opened at most
// twice, once for all readers and once to copy it for daemons, and no question computes drift twice.
func TestQuestionsOpenEachFileOnce(t *testing.T) {
	ovs.Need(t, "ovs-vswitchd", "ovsdb-server", "ovn-controller", "ovs-ofctl")
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: ", err)
	}
	b := newBench(t)
	questions := [][]string{{"report", "-o", "html"}, {"slow"}, {"timeline"},
		{"compare", b.pristine, filepath.Join(b.dir, "becomes")}}
	if sweep.Whole() { // the page asks these
		questions = append(questions, []string{"check"}, []string{"drift"})
	}
	for _, question := range questions {
		t.Run(question[0], func(t *testing.T) {
			log := filepath.Join(b.dir, question[0]+".trace")
			code, printed := b.strace(t, b.pristine, log, killPoint{}, []string{"-e", "trace=openat,execve", "-s", "4096"},
				question...)
			if strings.Contains(printed, "Operation not permitted") {
				t.Skip("strace may not trace here: ", printed)
			}
			if code != exitDone && code != exitFound && code != exitIncomplete {
				t.Fatalf("%v: exit code %d\n%s", question, code, printed)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			opened := b.opened(string(text))
			if opened["/pristine/db/ovn_sb/ovnsb_db.db"] == 0 {
				t.Errorf("the southbound database was not opened: %v", opened)
			}
			for path, times := range opened {
				if times > 2 {
					t.Errorf("%s is opened %d times", path, times)
				}
			}
			for program, times := range succeeded(executed, string(text)) {
				// ovs-vswitchd starts itself as its monitor's child, and says its version.
				if times > 3 {
					t.Errorf("%s is started %d times", program, times)
				}
			}
		})
	}
}

// opened counts how often each collected file was opened, from a log of strace.
func (b *bench) opened(log string) map[string]int {
	times := map[string]int{}
	for path, n := range succeeded(openedPath, log) {
		info, err := os.Stat(path)
		if strings.HasPrefix(path, b.dir) && !strings.Contains(path, "/.") && err == nil && info.Mode().IsRegular() {
			times[strings.TrimPrefix(path, b.dir)] = n
		}
	}
	return times
}

// succeeded counts the texts that a pattern finds in the calls of a log of strace that did not fail. The result of a
// call that another process interrupted is on another line.
func succeeded(pattern *regexp.Regexp, log string) map[string]int {
	times := map[string]int{}
	for line := range strings.Lines(log) {
		if found := pattern.FindStringSubmatch(line); found != nil && !strings.Contains(line, " = -1 ") {
			times[found[1]]++
		}
	}
	return times
}
