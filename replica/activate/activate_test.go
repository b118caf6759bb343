package activate

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
)

// odd is a directory name that breaks every incomplete quoting.
const odd = `a b 'c' "d" $HOME $(touch x) \e * ;f&#!`

func newReplica(t *testing.T, name string) Replica {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	r := Replica{Bin: filepath.Join(dir, "bin"), OVSRunDir: filepath.Join(dir, "var-run/ovs"),
		OVNRunDir: filepath.Join(dir, "var-run/ovn_nb"),
		OVS:       true, NBSocket: filepath.Join(dir, "var-run/ovn_nb/db.sock"),
		SBSocket: filepath.Join(dir, "var-run/ovn_sb/db.sock")}
	for _, run := range []string{"ovs", "ovn_nb", "ovn_sb"} {
		if err := os.MkdirAll(filepath.Join(dir, "var-run", run), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// shells returns the supported shells, with the options that keep them from reading the
// user's start files.
func shells() map[string][]string {
	return map[string][]string{"bash": {"--norc", "--noprofile"}, "zsh": {"-f"}}
}

func eachShell(t *testing.T, test func(t *testing.T, run func(script string, args ...string) string)) {
	for shell, options := range shells() {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			test(t, func(script string, args ...string) string {
				t.Helper()
				cmd := exec.Command(path, append(append(append([]string{}, options...), "-c", script, shell), args...)...)
				cmd.Dir = t.TempDir()
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "TERM=dumb"}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				return string(out)
			})
		})
	}
}

// state defines a shell function that writes all variables with their attributes,
// and all functions, to a file, except variables that change by themselves.
const state = `
state() {
	{ typeset -p; typeset -f; env | sort; } |
	grep -vE '(^|[ ,])(_|BASH_[A-Z]*|FUNCNAME|LINENO|RANDOM|SRANDOM|SECONDS|EPOCH[A-Z]*|PIPESTATUS|pipestatus|TTYIDLE|PPID|funcstack|status|[?]|funcfiletrace|funcsourcetrace|functrace|zsh_eval_context|ZSH_EVAL_CONTEXT|ZSH_SUBSHELL|ZSH_DEBUG_CMD|argv|ARGC|[0*@#])=' >"$1" || :
}
`

func TestDeactivateRestoresTheShellExactly(t *testing.T) {
	ovs.Need(t) // it runs about fifty shells
	first, second := newReplica(t, odd), newReplica(t, "second")
	before := map[string]string{
		"nothing set":    "unset PS1 OVS_RUNDIR",
		"all empty":      "PS1= OVS_RUNDIR= OVN_RUNDIR= OVN_NB_DB= OVN_SB_DB= OVN_NB_DAEMON= OVN_SB_DAEMON= OVN_NBCTL_OPTIONS= OVN_SBCTL_OPTIONS=",
		"exported":       `export PS1='$ ' OVS_RUNDIR=/r OVN_RUNDIR= OVN_NB_DB=tcp:1 OVN_SB_DB="a\"b'c $x" OVN_NB_DAEMON=/d OVN_NBCTL_OPTIONS=--no-leader-only`,
		"not exported":   "OVS_RUNDIR=/r; OVN_NB_DAEMON='two\nlines = x'; PS1='(venv) %~ \\w '",
		"path unshared":  "typeset +x PATH",
		"other function": "deactivate() { echo \"venv's own\"; if true; then echo done; fi; }",
		"strict":         "set -eu",
		"strict, shared": "set -eua",
	}
	// The scripts that are sourced between activate and deactivate.
	between := map[string][]string{
		"once":            {first.Bin},
		"twice":           {first.Bin, first.Bin},
		"another replica": {first.Bin, second.Bin},
	}
	for name, set := range before {
		for times, bins := range between {
			t.Run(name+", "+times, func(t *testing.T) {
				eachShell(t, func(t *testing.T, run func(string, ...string) string) {
					var args []string
					for _, bin := range bins {
						args = append(args, Script(bin))
					}
					out := run(state+set+`
script=; wanted=${1%/activate}; had=$#
state before
for script in "$@"; do . "$script" >/dev/null; wanted=${script%/activate}; done
[ "${PATH%%:*}" = "$wanted" ] || echo "PATH is $PATH"
[ "$(command -v ovs-vsctl)" = "$wanted/ovs-vsctl" ] || echo "ovs-vsctl is $(command -v ovs-vsctl)"
case $PS1 in "(ovs-offline) (ovs-offline) "*) echo twice ;; "(ovs-offline) "*) ;; *) echo "PS1 is $PS1" ;; esac
[ -z "${OVN_NB_DAEMON+set}${OVN_SB_DAEMON+set}${OVN_NBCTL_OPTIONS+set}${OVN_SBCTL_OPTIONS+set}" ] || echo still set
sh -c 'printf "%s\n" "$OVN_NB_DB"' >nb
[ "$(cat nb)" = "unix:${wanted%/bin}/var-run/ovn_nb/db.sock" ] || echo "OVN_NB_DB is $(cat nb)"
deactivate
rm nb
wanted=${1%/activate}; script=
state after
diff before after || :
ls
`, args...)
					expect.Equal(t, out, "after\nbefore\n")
				})
			})
		}
	}
}

func TestActivatePrintsTheReplica(t *testing.T) {
	r := newReplica(t, "plain")
	r.SBSocket = ""
	if err := Write(r); err != nil {
		t.Fatal(err)
	}
	eachShell(t, func(t *testing.T, run func(string, ...string) string) {
		out := run(`set -eu; export OVN_SB_DB=tcp:elsewhere; . "$1"; echo "${OVN_SB_DB-none}"; deactivate; echo "$OVN_SB_DB"`,
			Script(r.Bin))
		want := `* You can now run the following offline commands directly:
    ovs-appctl [...]

    ovs-vsctl [...]
    ovsdb-client [...]

    ovn-nbctl [...]
    ovsdb-client [...] $OVN_NB_DB

    ovs-ofctl [...] [bridge]
* You can restore your previous environment with:
    deactivate
none
tcp:elsewhere
`
		expect.Equal(t, out, want, "printed")
	})
}

// call runs a wrapper as a script would: without the replica's settings in the
// environment, and with wrong ones that the wrapper must ignore.
func call(t *testing.T, r Replica, env []string, argv ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(r.Bin, argv[0]), argv[1:]...)
	cmd.Env = append([]string{"OVS_RUNDIR=/nonexistent", "OVN_NB_DB=tcp:192.0.2.1:1", "OVN_NB_DAEMON=/nonexistent",
		"OVN_SB_DAEMON=/nonexistent", "OVN_NBCTL_OPTIONS=--bad", "OVN_SBCTL_OPTIONS=--bad", "PATH=" + os.Getenv("PATH")},
		env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestWrapperPassesArgumentsInputAndExitCode(t *testing.T) {
	r, other := newReplica(t, odd), newReplica(t, "other")
	real := t.TempDir()
	text := "#!/bin/sh\nfor a in \"$@\"; do printf '<%s>' \"$a\"; done\nprintf '%s' \"$OVN_NB_DB\"; cat\nexit 42\n"
	if err := os.WriteFile(filepath.Join(real, "ovn-nbctl"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{"", ".", r.Bin, other.Bin, filepath.Join(r.Bin, "..", "bin"), real, os.Getenv("PATH")},
		":")
	out, code := call(t, r, []string{"PATH=" + path}, "ovn-nbctl", "a b", "", "*", `$x 'y' "z"`, "--", "-n")
	if want := `<a b><><*><$x 'y' "z"><--><-n>unix:` + r.NBSocket; out != want || code != 42 {
		t.Errorf("%q, exit %d; want %q", out, code, want)
	}
}

func TestWrapperNamesWhatIsMissing(t *testing.T) {
	r := newReplica(t, "plain")
	if out, code := call(t, r, nil, "ovs-vsctl-recorded", "show"); code != 1 ||
		!strings.Contains(out, "as recorded is not served: ovs-offline report") {
		t.Errorf("ovs-vsctl-recorded: exit %d, %q", code, out)
	}
	r.NBSocket, r.OVS = "", false
	if err := Write(r); err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]string{"ovs-vsctl-recorded": "no OVS database was collected",
		"ovn-nbctl": "no OVN NB database was collected", "ovn-detrace": "no OVN NB database was collected",
		"ovs-vsctl": "no OVS database was collected"} {
		if out, code := call(t, r, nil, tool, "show"); code != 1 || !strings.Contains(out, want) {
			t.Errorf("%s: exit %d, %q", tool, code, out)
		}
	}
	// To simulate a system without the tool, this wrapper looks for a name that does
	// not exist.
	text, err := os.ReadFile(filepath.Join(r.Bin, "ovn-sbctl"))
	if err != nil {
		t.Fatal(err)
	}
	none := strings.ReplaceAll(string(text), "$dir/ovn-sbctl", "$dir/ovn-sbctl-none")
	if err := os.WriteFile(filepath.Join(r.Bin, "ovn-sbctl"), []byte(none), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, code := call(t, r, nil, "ovn-sbctl"); code != 127 || !strings.Contains(out, "not installed") ||
		!strings.Contains(out, "ovn-common") {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestDetraceNamesMissingPythonLibrary(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	r := newReplica(t, "plain")
	real := t.TempDir()
	text := "#!/usr/bin/env python3\nimport sys\nprint('ERROR')\nsys.exit(1)\n"
	if err := os.WriteFile(filepath.Join(real, "ovn-detrace"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	// With -I and -S, Python ignores the machine's own libraries.
	python := "#!/bin/sh\nexec /usr/bin/python3 -I -S \"$@\"\n"
	if err := os.WriteFile(filepath.Join(real, "python3"), []byte(python), 0o755); err != nil {
		t.Fatal(err)
	}
	out, code := call(t, r, []string{"PATH=" + real + ":" + os.Getenv("PATH")}, "ovn-detrace")
	if code != 1 || !strings.HasPrefix(out, "ERROR\n") || !strings.Contains(out, "install python3-openvswitch") {
		t.Errorf("exit %d, %q", code, out)
	}
}

func TestUnusablePathsAreRefused(t *testing.T) {
	for _, dir := range []string{"relative", "/tmp/a:b", "/tmp/a,b", "/tmp/a\nb"} {
		if err := Write(Replica{Bin: dir}); err == nil {
			t.Errorf("%q was accepted", dir)
		}
	}
}

func TestRemoveKeepsOtherFiles(t *testing.T) {
	r := newReplica(t, "plain")
	note := filepath.Join(r.Bin, "notes")
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(r.Bin); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(r.Bin, "*"))
	if err != nil || len(left) != 1 || left[0] != note {
		t.Errorf("left: %q %v", left, err)
	}
}

// startDaemons starts the daemons of a replica.
func startDaemons(t *testing.T, r Replica) {
	t.Helper()
	ovs.Need(t, "ovn-nbctl", "ovn-trace")
	ovs.StartIn(t, r.OVSRunDir)
	for socket, schema := range map[string]string{r.NBSocket: ovs.NBSchema, r.SBSocket: ovs.SBSchema} {
		dir := filepath.Dir(socket)
		database := filepath.Join(dir, "db")
		ovs.Run(t, "ovsdb-tool", "create", database, schema)
		ovs.ServeIn(t, dir, database)
	}
}

func TestWrappersReachDaemons(t *testing.T) {
	r := newReplica(t, odd+strings.Repeat(" long", 20))
	startDaemons(t, r)
	for _, step := range []struct {
		argv []string
		want string
	}{
		{[]string{"ovs-vsctl", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=dummy",
			"fail_mode=secure"}, ""},
		{[]string{"ovs-ofctl", "add-flow", "br-int", "cookie=0x12345678,actions=drop"}, ""},
		{[]string{"ovs-ofctl", "dump-flows", "br-int"}, "actions=drop"},
		{[]string{"ovs-appctl", "ofproto/trace", "br-int", "in_port=LOCAL"}, "Final flow"},
		{[]string{"ovsdb-client", "dump", "Bridge", "name"}, "br-int"},
		{[]string{"ovsdb-client", "list-dbs", "unix:" + r.NBSocket}, "OVN_Northbound"},
		{[]string{"ovn-nbctl", "ls-add", "sw0"}, ""},
		{[]string{"ovn-nbctl", "ls-list"}, "(sw0)"},
		{[]string{"ovn-sbctl", "show"}, ""},
		{[]string{"ovn-trace", "none", "tcp"}, "unknown"},
		{[]string{"ovn-appctl", "-t", "ovsdb-server", "ovsdb-server/list-dbs"}, "OVN_Northbound"},
	} {
		out, code := call(t, r, nil, step.argv...)
		if (code != 0 && step.argv[0] != "ovn-trace") || !strings.Contains(out, step.want) {
			t.Errorf("%q: exit %d, %q", step.argv, code, out)
		}
	}
	testDetrace(t, r)
	// The wrapper identifies the server of the recorded database only by its socket;
	// here that socket belongs to the server of the OVS database.
	r.Recorded = filepath.Join(r.OVSRunDir, "db.sock")
	if err := Write(r); err != nil {
		t.Fatal(err)
	}
	if out, code := call(t, r, nil, "ovs-vsctl-recorded", "--columns=name", "list", "bridge"); code != 0 ||
		!strings.Contains(out, "br-int") {
		t.Errorf("ovs-vsctl-recorded: exit %d, %q", code, out)
	}
	eachShell(t, func(t *testing.T, run func(string, ...string) string) {
		out := run(`set -eu; . "$1" >/dev/null; ovs-ofctl dump-flows br-int; ovs-vsctl list-br; ovn-nbctl ls-list; ovsdb-client list-dbs "$OVN_SB_DB"; deactivate`, Script(r.Bin))
		for _, want := range []string{"actions=drop", "br-int", "(sw0)", "OVN_Southbound"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %q", want, out)
			}
		}
	})
}

func testDetrace(t *testing.T, r Replica) {
	if err := exec.Command("/usr/bin/python3", "-c", "import ovs").Run(); err != nil {
		t.Log("ovn-detrace is left out: OVS's Python library is not installed")
		return
	}
	uuid, code := call(t, r, nil, "ovn-sbctl", "create", "Datapath_Binding", "tunnel_key=1", "external_ids:name=sw0")
	if code != 0 {
		t.Fatal(uuid)
	}
	flow, code := call(t, r, nil, "ovn-sbctl", "create", "Logical_Flow", "logical_datapath="+strings.TrimSpace(uuid),
		"pipeline=ingress", "table_id=0",
		"priority=7", "match=1", "actions=next;", "external_ids:stage-name=ls_in_test")
	if code != 0 {
		t.Fatal(flow)
	}
	cmd := exec.Command(filepath.Join(r.Bin, "ovn-detrace"), "--ovs")
	cmd.Stdin = strings.NewReader(" 0. priority 7, cookie 0x" + flow[:8] + "\n    drop\n\nFinal flow: unchanged\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ls_in_test") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRemoveDeletesUnfinishedFiles removes the temporary file of each wrapper, which
// remains if the program was killed while it wrote the wrapper.
func TestRemoveDeletesUnfinishedFiles(t *testing.T) {
	r := newReplica(t, "unfinished")
	var begun int
	err := filepath.WalkDir(r.Bin, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		begun++
		return os.WriteFile(filepath.Join(filepath.Dir(path), "."+e.Name()+".1983488552"), nil, 0o600)
	})
	if err != nil || begun < 10 {
		t.Fatal(begun, err)
	}
	if err := Remove(r.Bin); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(r.Bin); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestPromptNamesTheNode checks that the prompt has the node's name, and that the shell
// expands nothing in it.
func TestPromptNamesTheNode(t *testing.T) {
	for node, want := range map[string]string{
		"":                             "(ovs-offline)",
		"cmp-1-2026-11-21":             "(ovs-offline cmp-1-2026-11-21)",
		"a$(touch x)`touch x`\\u%n\"'": "(ovs-offline a__touch_x__touch_x__u_n__)",
		strings.Repeat("x", 1000):      "(ovs-offline " + strings.Repeat("x", 60) + ")",
	} {
		expect.Equal(t, (Replica{Node: node}).prompt(), want, node)
	}
	r := newReplica(t, "wd")
	r.Node = "cmp-1"
	if err := Write(r); err != nil {
		t.Fatal(err)
	}
	eachShell(t, func(t *testing.T, run func(script string, args ...string) string) {
		expect.Equal(t, run(`PS1='$ '; . "$1" >/dev/null; echo "$PS1"; deactivate; echo "$PS1"`, Script(r.Bin)),
			"(ovs-offline cmp-1) $ \n$ \n")
	})
}
