package build_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/replica/image"
	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/test/daemons/ovs"
)

// compiling prepares a test that compiles: it returns the store of images and the folder
// of temporary files.
func compiling(t *testing.T) (*image.Store, string) {
	t.Helper()
	ovs.Need(t, append(slices.Clone(build.Programs), build.Detrace)...)
	for _, program := range []string{"gcc", "make", "autoreconf", "automake", "libtoolize", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("compiling needs %s, which is not installed", program)
		}
	}
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	return s, temporary
}

// sourceTree writes a tree with the parts of OVN's source that a compilation uses. Its
// configure accepts the options that OVN's knows; make runs a script, and make install
// installs the programs of this host.
func sourceTree(t *testing.T, script string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ovn; touch $(id)") // no shell reads the name
	writeSource(t, filepath.Join(dir, "ovs"), "true", "CFLAGS=-O2",
		[]string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"},
		"/usr/share/openvswitch/vswitch.ovsschema")
	writeSource(t, dir, script, "--with-ovs-source=*/ovs",
		[]string{"ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-appctl", "ovn-detrace", "ovn-controller", "ovn-northd"},
		"/usr/share/ovn/ovn-nb.ovsschema", "/usr/share/ovn/ovn-sb.ovsschema")
	return dir
}

func writeSource(t *testing.T, dir, script, option string, programs []string, others ...string) {
	t.Helper()
	files.Write(t, filepath.Join(dir, "boot.sh"), "#!/bin/sh\nset -e\ntouch booted\n")
	files.Write(t, filepath.Join(dir, "configure"), `#!/bin/sh
set -e
test -e booted
seen=
for argument; do
	case $argument in
	--prefix=/usr | --localstatedir=/var | --sysconfdir=/etc | PYTHON3=*) ;;
	`+option+`) seen=yes ;;
	CFLAGS=-O2) ;;
	*) echo "unknown option $argument" >&2; exit 1 ;;
	esac
done
test "$seen"
mv Makefile.unconfigured Makefile
`)
	var install strings.Builder
	for _, program := range programs {
		path, err := process.Find(program)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&install, "\tinstall -D %s $(DESTDIR)/usr/bin/%s\n", path, program)
	}
	for _, path := range others {
		fmt.Fprintf(&install, "\tinstall -D -m 644 %s $(DESTDIR)%s\n", path, path)
	}
	files.Write(t, filepath.Join(dir, "Makefile.unconfigured"),
		"all:\n\t"+script+"\n\ttouch compiled\ninstall:\n\ttest -e compiled\n"+install.String())
	for _, name := range []string{"boot.sh", "configure"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// listing returns the names, modes, sizes and times of all files below a folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
}

// checkCompiled checks that tools run in the image and that they are those of this host.
func checkCompiled(t *testing.T, i image.Image) {
	t.Helper()
	if want := onHost(t, "ovs-vswitchd"); !strings.Contains(want, i.OVS) || i.OVS == "" || i.OVN == "" {
		t.Errorf("%+v; the host's is %q", i, want)
	}
	expect.Equal(t, i.Remarks, nil, "remarks")
	local := process.New(process.Options{Root: i.Root})
	for _, tool := range append(slices.Clone(build.Programs), build.Detrace) {
		if out, err := local.Tool(t.Context(), "/tmp", nil, tool, "--help"); err != nil || len(out) == 0 {
			t.Errorf("%s in the image: %v", tool, err)
		}
		path, err := process.FindIn(i.Root, tool)
		if err != nil || path != "/usr/bin/"+tool {
			t.Errorf("%s is at %s: %v", tool, path, err)
		}
	}
	for _, schema := range []string{"openvswitch/vswitch.ovsschema", "ovn/ovn-nb.ovsschema", "ovn/ovn-sb.ovsschema"} {
		installed, err := os.ReadFile(filepath.Join("/usr/share", schema))
		if err != nil {
			t.Fatal(err)
		}
		if have, err := os.ReadFile(filepath.Join(i.Root, "usr/share", schema)); err != nil || !bytes.Equal(have, installed) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestCompileFolder(t *testing.T) {
	s, temporary := compiling(t)
	dir := sourceTree(t, "mktemp; echo compiling something")
	before := listing(t, dir)
	var steps, lines []string
	i, err := build.Build{Repo: dir}.Compile(t.Context(), s, "1", func(step, line string) {
		if line == "" {
			steps = append(steps, step)
		}
		lines = append(lines, step+": "+line)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkCompiled(t, i)
	expect.Equal(t, i.Source, dir, i)
	expect.Equal(t, i.Name, "ovs-"+i.OVS+"-ovn-"+i.OVN, i)
	if !slices.Contains(steps, "compiling Open vSwitch") || !slices.Contains(lines, "compiling OVN: compiling something") {
		t.Errorf("progress %q", lines)
	}
	if after := listing(t, dir); after != before {
		t.Errorf("the source was\n%s and is\n%s", before, after)
	}
	checkEmpty(t, temporary)
}

// TestCompileCommit compiles a commit of a work tree whose files do not compile any more,
// and of a bare repository without the submodule.
func TestCompileCommit(t *testing.T) {
	s, temporary := compiling(t)
	gitConfig(t)
	dir, _ := sourceRepositories(t)
	git(t, dir, "tag", "v1")
	short := git(t, dir, "rev-parse", "--short=8", "v1")
	bare := filepath.Join(t.TempDir(), "bare")
	git(t, dir, "clone", "--quiet", "--bare", dir, bare)
	files.Write(t, filepath.Join(dir, "boot.sh"), "exit 1\n")
	git(t, dir, "commit", "--quiet", "--all", "--message", "it does not compile")
	for _, b := range []build.Build{{Repo: dir, Commit: "v1"}, {Repo: dir, Commit: short}, {Repo: bare, Commit: "v1"},
		{Repo: bare}} {
		i, err := b.Compile(t.Context(), s, "1", nil)
		if err != nil {
			t.Fatal(err)
		}
		checkCompiled(t, i)
	}
	if _, err := (build.Build{Repo: dir, Commit: "v2"}).Compile(t.Context(), s, "1", nil); err == nil ||
		!strings.Contains(err.Error(), "v2") {
		t.Errorf("%v", err)
	}
	for _, log := range logs(t, temporary) {
		os.Remove(log)
	}
	checkEmpty(t, temporary)
}

// gitConfig replaces the user's git configuration by settings: names and values in turn.
func gitConfig(t *testing.T, settings ...string) {
	t.Helper()
	settings = append(settings, "user.name", "a", "user.email", "a@b")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_COUNT", fmt.Sprint(len(settings)/2))
	for i := range len(settings) / 2 {
		t.Setenv(fmt.Sprint("GIT_CONFIG_KEY_", i), settings[2*i])
		t.Setenv(fmt.Sprint("GIT_CONFIG_VALUE_", i), settings[2*i+1])
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// sourceRepositories makes a repository of a source tree that compiles, and one of the Open
// vSwitch that it pins.
func sourceRepositories(t *testing.T) (ovn, ovs string) {
	t.Helper()
	ovn, ovs = sourceTree(t, "true"), filepath.Join(t.TempDir(), "ovs")
	if err := os.Rename(filepath.Join(ovn, "ovs"), ovs); err != nil {
		t.Fatal(err)
	}
	for _, repo := range []string{ovs, ovn} {
		git(t, repo, "init", "--quiet")
		if repo == ovn {
			git(t, repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", ovs, "ovs")
		}
		git(t, repo, "add", ".")
		git(t, repo, "commit", "--quiet", "--message", "it compiles")
	}
	return ovn, ovs
}

// TestCompileFromMirrors compiles from mirrors on this machine that the user's insteadOf
// selects. Only OVN's .gitmodules names the second, and may not choose any repository itself.
func TestCompileFromMirrors(t *testing.T) {
	s, _ := compiling(t)
	mirrors := t.TempDir()
	gitConfig(t, "url."+mirrors+"/.insteadOf", "https://example.org/")
	ovn, ovs := sourceRepositories(t)
	git(t, ovs, "clone", "--quiet", "--bare", ovs, filepath.Join(mirrors, "ovs.git"))
	git(t, ovn, "clone", "--quiet", "--bare", ovn, filepath.Join(mirrors, "ovn.git"))
	for url, refused := range map[string]bool{"https://example.org/ovs.git": false, "../ovs.git": false, ovs: true,
		"file://" + ovs: true} {
		git(t, ovn, "config", "--file", ".gitmodules", "submodule.ovs.url", url)
		git(t, ovn, "commit", "--quiet", "--all", "--allow-empty", "--message", url)
		git(t, ovn, "push", "--quiet", "--force", filepath.Join(mirrors, "ovn.git"), "HEAD:mirrored")
		i, err := build.Build{Repo: "https://example.org/ovn.git", Commit: "mirrored"}.Compile(t.Context(), s, "1", nil)
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), "transport 'file' not allowed")):
			t.Errorf("Open vSwitch of %s was taken: %v", url, err)
		case !refused && err != nil:
			t.Errorf("Open vSwitch of %s: %v", url, err)
		case !refused:
			checkCompiled(t, i)
		}
	}
}

func logs(t *testing.T, temporary string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(temporary, "ovs-offline-build-*.log"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFailedCompilationKeepsItsLog(t *testing.T) {
	s, temporary := compiling(t)
	dir := sourceTree(t, "echo lib/x.c:1: a warning >&2; echo lib/y.c:2: this is the reason >&2; exit 7")
	_, err := build.Build{Repo: dir}.Compile(t.Context(), s, "1", nil)
	kept := logs(t, temporary)
	if len(kept) != 1 || err == nil || !strings.HasPrefix(err.Error(),
		"compiling OVN: make: exit status 2; the log is "+kept[0]) || !strings.Contains(err.Error(), "this is the reason") {
		t.Fatalf("%v; kept %q", err, kept)
	}
	log, err := os.ReadFile(kept[0])
	if err != nil || !strings.Contains(string(log), "a warning") || !strings.Contains(string(log), "--with-ovs-source=") {
		t.Errorf("%v\n%s", err, log)
	}
	os.Remove(kept[0])
	checkEmpty(t, temporary)
	if images, err := s.List(); err != nil || len(images) > 0 {
		t.Errorf("%v, %v", images, err)
	}
}

// TestInterruptedCompilationLeavesNothing interrupts make while a program that it started
// runs.
func TestInterruptedCompilationLeavesNothing(t *testing.T) {
	s, temporary := compiling(t)
	started := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := sourceTree(t, "sleep 600 & echo $$! >"+started+"; wait")
	ctx, cancel := context.WithCancel(t.Context())
	var pid int
	go func() {
		text, _ := os.ReadFile(started)
		_, _ = fmt.Sscan(string(text), &pid)
		cancel()
	}()
	_, err := build.Build{Repo: dir}.Compile(ctx, s, "1", nil)
	if !errors.Is(err, context.Canceled) || pid == 0 {
		t.Fatalf("pid %d: %v", pid, err)
	}
	ovs.Await(t, "the end of the compilation's process",
		func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) })
	checkEmpty(t, temporary)
	if images, err := s.List(); err != nil || len(images) > 0 {
		t.Errorf("%v, %v", images, err)
	}
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}

// TestMissingCompilersAreNamed checks that the error has a command that installs them.
func TestMissingCompilersAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s, err := image.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	_, err = build.Build{Commit: "v24.03.2"}.Compile(t.Context(), s, "1", nil)
	if err == nil {
		t.Fatal("it compiled without programs")
	}
	for _, want := range []string{"gcc, make, autoreconf, automake, libtoolize, python3, git",
		"apt-get install gcc libc6-dev make autoconf automake libtool python3 git\"", "dnf install"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
