package cmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// The tutorials are tests: the ```console blocks of docs/tutorial-*.md and README.md are run in
// order, each tutorial in one bash. The text below a command must be its output; a
// line `...` matches any lines, and ... in a line any text. Blocks marked ```console
// elsewhere need other machines: the test only parses the command lines of ovs-offline
// in them.

// step is one command of a tutorial, and the output that the tutorial shows.
type step struct {
	at      string // file and line
	active  bool   // at the prompt of an activated shell
	command string
	shown   []string
}

const (
	prompt       = "$ "
	activePrompt = "(ovs-offline) $ "
	more         = "> "
)

// tutorial reads the steps of a file: the steps to run here, and the steps for other
// machines.
func tutorial(t *testing.T, path string) (here, elsewhere []step) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fence, info := false, ""
	var s *step
	for i, line := range strings.Split(string(raw), "\n") {
		at := fmt.Sprintf("%s:%d", filepath.Base(path), i+1)
		if after, ok := strings.CutPrefix(line, "```"); ok {
			fence, info, s = !fence, after, nil
			continue
		}
		if !fence {
			continue
		}
		steps := &here
		switch info {
		case "console":
		case "console elsewhere":
			steps = &elsewhere
		default:
			if strings.HasPrefix(line, prompt) || strings.HasPrefix(line, activePrompt) {
				t.Errorf("%s: a command in a block %q, which is not tested: use console", at, info)
			}
			continue
		}
		plain, isPlain := strings.CutPrefix(line, prompt)
		active, isActive := strings.CutPrefix(line, activePrompt)
		rest, isMore := strings.CutPrefix(line, more)
		switch {
		case isPlain:
			*steps = append(*steps, step{at: at, command: plain})
		case isActive:
			*steps = append(*steps, step{at: at, command: active, active: true})
		case s != nil && isMore && len(s.shown) == 0 && strings.HasSuffix(s.command, `\`):
			s.command += "\n" + rest
		case s == nil:
			t.Errorf("%s: output without a command: %q", at, line)
		default:
			s.shown = append(s.shown, line)
		}
		if len(*steps) > 0 {
			s = &(*steps)[len(*steps)-1]
		}
	}
	return here, elsewhere
}

// elsewhereWord matches syntax that needs a shell.
var elsewhereWord = regexp.MustCompile(`[$|<>&;]`)

// parses checks that ovs-offline has the command and its flags.
func (s step) parses(t *testing.T) {
	t.Helper()
	args := strings.Fields(s.command)
	if args[0] != "ovs-offline" {
		return
	}
	if elsewhereWord.MatchString(s.command) {
		t.Fatalf("%s: %q needs a shell, which this test does not run", s.at, s.command)
	}
	c, rest, err := newRoot(&options{}).Find(args[1:])
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && c.Args != nil {
		err = c.Args(c, c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %s: %v", s.at, s.command, err)
	}
}

// stepOutcome is the result of a step.
type stepOutcome struct {
	ran    bool
	prompt string
	out    string
	status string
}

// mark separates steps in the output of the shell; no tool prints it.
const mark = "\x1e"

// runSteps runs all steps in one shell, in dir.
func runSteps(t *testing.T, dir string, env []string, steps []step) []stepOutcome {
	t.Helper()
	var script strings.Builder
	script.WriteString("exec 2>&1 </dev/null\nPS1='" + prompt + "'\n")
	for _, s := range steps {
		fmt.Fprintf(&script, "printf '%s%%s%s' \"${PS1-}\"\n%s\nprintf '%s%%s' $?\n", mark, mark, s.command, mark)
	}
	path := filepath.Join(dir, ".tutorial")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := exec.CommandContext(ctx, "bash", path)
	c.Dir, c.Env = dir, env
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Errorf("the shell: %v", err)
	}
	parts := strings.Split(out.String(), mark)[1:]
	outcomes := make([]stepOutcome, len(steps))
	for i := range outcomes {
		if len(parts) < 3 {
			break
		}
		outcomes[i] = stepOutcome{ran: true, prompt: parts[0], out: parts[1], status: parts[2]}
		parts = parts[3:]
	}
	return outcomes
}

var (
	blanks = regexp.MustCompile(`[ \t]+`)
	stars  = regexp.MustCompile(`\*{5,}`)
)

// plain normalises what depends on the length of the workdir's path: the columns of
// tables, and the lines below headlines.
func plain(line string) string {
	return strings.TrimRight(stars.ReplaceAllString(blanks.ReplaceAllString(line, " "), "*****"), " ")
}

// shows reports whether the lines of a tutorial match the printed ones.
func shows(shown, printed []string) bool {
	if len(shown) == 0 {
		return len(printed) == 0
	}
	if shown[0] == "..." {
		for skip := 0; skip <= len(printed); skip++ {
			if shows(shown[1:], printed[skip:]) {
				return true
			}
		}
		return false
	}
	return len(printed) > 0 && showsLine(shown[0], printed[0]) && shows(shown[1:], printed[1:])
}

func showsLine(shown, printed string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(plain(shown), "...") {
		if i > 0 {
			pattern.WriteString(".*")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	return regexp.MustCompile("^" + pattern.String() + "$").MatchString(plain(printed))
}

var logged = regexp.MustCompile(`\|[0-9]{5}\|[a-z_]+\|(WARN|ERR)\|`)

// logsFirst moves log lines, which tools print to stderr, before other output: an
// engine transports the streams separately, so their order varies.
func logsFirst(printed []string) []string {
	var logs, rest []string
	for _, line := range printed {
		if logged.MatchString(line) {
			logs = append(logs, line)
		} else {
			rest = append(rest, line)
		}
	}
	return append(logs, rest...)
}

func lines(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func TestTutorials(t *testing.T) {
	tutorials, err := filepath.Glob("../docs/tutorial-*.md")
	if err != nil || len(tutorials) == 0 {
		t.Fatal(tutorials, err)
	}
	for _, path := range append(tutorials, "../README.md") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".md"), func(t *testing.T) {
			runTutorial(t, engines.Get(t, engines.Process), path)
		})
	}
}

// TestTutorialEverywhere runs the longest tutorial on each engine.
func TestTutorialEverywhere(t *testing.T) {
	sweep.Only(t, "TestScriptsEverywhere, and TestTutorials with local processes,")
	engines.EachEngine(t, func(t *testing.T, r engines.Runtime) {
		runTutorial(t, r, "../docs/tutorial-debugging.md")
	})
}

func runTutorial(t *testing.T, r engines.Runtime, path string) {
	ovs.Need(t, "ovs-vswitchd", "ovn-nbctl", "ovn-detrace", "ovn-trace")
	here, elsewhere := tutorial(t, path)
	if len(here) == 0 {
		t.Fatal("the tutorial has no command to run")
	}
	for _, s := range elsewhere {
		s.parses(t)
	}
	dir := t.TempDir()
	testdata, err := filepath.Abs("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testdata, filepath.Join(dir, "testdata")); err != nil {
		t.Fatal(err)
	}
	const shownDir = "/tmp/ovs-offline"
	wd := filepath.Join(dir, "wd")
	env := append(r.Env(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "HOME="+dir, "OVS_DBG_WORKDIR="+wd,
		"XDG_RUNTIME_DIR="+os.Getenv("XDG_RUNTIME_DIR"))
	t.Cleanup(func() {
		c := exec.Command("ovs-offline", "stop", "--purge")
		c.Env = env
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	real := make([]step, len(here))
	for i, s := range here {
		real[i] = s
		real[i].command = strings.ReplaceAll(s.command, shownDir, wd)
	}
	for i, o := range runSteps(t, dir, env, real) {
		s := here[i]
		printed := logsFirst(lines(strings.ReplaceAll(o.out, wd, shownDir)))
		switch {
		case !o.ran:
			t.Fatalf("%s: %s: the shell did not reach this command, or the command did not end", s.at, s.command)
		case o.status != "0":
			t.Errorf("%s: %s: exit code %s:\n%s", s.at, s.command, o.status, strings.Join(printed, "\n"))
		case s.active != strings.HasPrefix(o.prompt, "(ovs-offline) "):
			t.Errorf("%s: %s: the prompt is %q", s.at, s.command, o.prompt)
		case !shows(s.shown, printed):
			t.Errorf("%s: %s\nthe tutorial shows:\n%s\nand it printed:\n%s", s.at, s.command, strings.Join(s.shown, "\n"),
				strings.Join(printed, "\n"))
		}
	}
}

// TestTutorialIsShort counts the commands from two archives of an OpenStack cloud to
// the trace that answers a question.
func TestTutorialIsShort(t *testing.T) {
	const most = 8
	here, _ := tutorial(t, "../docs/tutorial-openstack.md")
	traces := func(s step) bool { return strings.Contains(s.command, "ofproto/trace") }
	if answer := slices.IndexFunc(here, traces); answer < 0 || answer+1 > most {
		t.Errorf("the trace is command %d; it should be among the first %d", answer+1, most)
	}
}

func TestTutorialComparisonFindsDifferences(t *testing.T) {
	printed := []string{"one", "two  words", "***********", "three"}
	for shown, want := range map[string]bool{
		"one\ntwo words\n******\nthree":      true,
		"...\nthree":                         true,
		"one\n...":                           true,
		"one\n...\nthr...":                   true,
		"...":                                true,
		"one\ntwo words\n******\nthree\n...": true,
		"":                                   false,
		"one":                                false,
		"one\n...\nfour":                     false,
		"one\ntwo ... here\n...":             false,
		"three\n...\none":                    false,
		"one\ntwo words\n...\nthree\nand one more":      false,
		"one\ntwo words\n******\nthree\n...\nafter all": false,
	} {
		expect.Equal(t, shows(lines(shown), printed), want, shown)
	}
}
