//go:build linux

package keeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ovs-offline/replica/linux"
	"ovs-offline/replica/linux/keeper"
	"ovs-offline/replica/report"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/workdir"
)

// asStarter is the variable that makes this program start a keeper of a workdir and wait to be killed.
const asStarter = "OVS_OFFLINE_TEST_START"

// asAsker is the variable that makes it restore a workdir, ask one question, and print what it got.
const asAsker = "OVS_OFFLINE_TEST_ASK"

func TestMain(m *testing.M) {
	_, isPlanted := planted()[filepath.Base(os.Args[0])]
	switch {
	case isPlanted:
		os.Exit(beTakenOver())
	case os.Getenv(asStarter) != "":
		os.Exit(startAndWait(os.Getenv(asStarter)))
	case os.Getenv(asAsker) != "":
		os.Exit(ask(os.Getenv(asAsker)))
	}
	os.Exit(m.Run())
}

// startAndWait starts a keeper, and never says that the start is complete.
func startAndWait(path string) int {
	wd, err := workdir.Find(path)
	if err == nil {
		var started *keeper.Started
		if started, err = keeper.Start(wd); err == nil {
			if _, err = started.Report(context.Background()); err == nil {
				fmt.Println("started")
				select {}
			}
		}
	}
	fmt.Println(err)
	return 1
}

// ask restores a workdir and prints what became of it.
func ask(path string) int {
	wd, err := workdir.Find(path)
	if err == nil {
		var started *keeper.Started
		if started, err = keeper.Start(wd); err == nil {
			defer func() { _ = keeper.Stop(context.Background(), wd) }()
			var list []*report.Namespace
			if list, err = started.Report(context.Background()); err == nil {
				for _, n := range list {
					for _, part := range report.Parts() {
						fmt.Printf("%s %s %+v\n", n.Title(), part, *n.Counts[part])
					}
					for _, entry := range n.Named {
						fmt.Printf("named %+v\n", entry)
					}
					for _, remark := range n.Remarks {
						fmt.Println("remark", remark)
					}
				}
				return 0
			}
		}
	}
	fmt.Println("error:", err)
	return 0
}

// simple records a namespace that needs no live one.
func simple(t *testing.T, wd *workdir.Dir, name string) {
	write(t, wd.NamespaceRecorded(name, workdir.RecordedLinks), `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
2: qr-1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UNKNOWN
    link/ether `+routerMAC+` brd ff:ff:ff:ff:ff:ff
    inet 10.1.0.1/24 brd 10.1.0.255 scope global qr-1
3: qg-1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN
    link/ether `+gateMAC+` brd ff:ff:ff:ff:ff:ff
    inet 172.24.4.10/24 brd 172.24.4.255 scope global qg-1
`)
	write(t, wd.NamespaceRecorded(name, workdir.RecordedKernelRoutes),
		"default via 172.24.4.1 dev qg-1\n10.1.0.0/24 dev qr-1 proto kernel scope link src 10.1.0.1\n172.24.4.0/24 dev qg-1 proto kernel scope link src 172.24.4.10\n")
	write(t, wd.NamespaceRecorded(name, workdir.HostNeighbours), "172.24.4.1 dev qg-1 lladdr "+worldMAC+" REACHABLE\n")
	write(t, wd.NamespaceRecorded(name, workdir.HostSysctl), "net.ipv4.ip_forward = 1\n")
}

// keepers returns the process IDs of the keepers of a workdir, as anyone would look for them.
func keepers(t *testing.T, wd *workdir.Dir) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if pid, err := strconv.Atoi(entry.Name()); err == nil && bytes.Contains(line, []byte(wd.Path())) &&
			bytes.HasPrefix(line, []byte(keeper.Name)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until no keeper of a workdir is left.
func gone(t *testing.T, wd *workdir.Dir) {
	t.Helper()
	ovs.Await(t, "the end of the keepers", func() bool { return len(keepers(t, wd)) == 0 })
}

func TestKilledStartLeavesNothing(t *testing.T) {
	for name, signal := range map[string]os.Signal{"SIGKILL": syscall.SIGKILL, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			wd := newWorkdir(t)
			simple(t, wd, "qrouter-1")
			starter := exec.Command("/proc/self/exe")
			starter.Env = append(os.Environ(), asStarter+"="+wd.Path())
			out, err := starter.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := starter.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 1000)
			n, _ := out.Read(line)
			if string(line[:n]) != "started\n" {
				_ = starter.Wait()
				t.Skip(string(line[:n]))
			}
			if len(keepers(t, wd)) != 1 {
				t.Errorf("keepers %v", keepers(t, wd))
			}
			_ = starter.Process.Signal(signal)
			_ = starter.Wait()
			gone(t, wd)
		})
	}
}

func TestKilledKeeperLeavesNothing(t *testing.T) {
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	_, client := restored(t, wd)
	list, err := client.Namespaces(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	// A program in the namespaces of the keeper, and one that was started into its network namespace.
	argv, err := linux.Enter(t.Context(), wd, "qrouter-1", []string{"ip", "-br", "link"})
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "qr-1") {
		t.Errorf("%v: %s", err, out)
	}
	pid := keeper.PID(wd)
	if got := keepers(t, wd); len(got) != 1 || got[0] != pid {
		t.Fatalf("keepers %v, want %d", got, pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gone(t, wd)
	ovs.Await(t, "the end of the killed keeper's socket, which it closes last", func() bool {
		client, err := linux.Dial(wd)
		if err == nil {
			_ = client.Close()
		}
		return errors.Is(err, linux.ErrNone)
	})
	if _, err := client.Namespaces(t.Context()); err == nil {
		t.Error("a killed keeper answers")
	}
}

// TestManyNamespacesAreBounded restores more namespaces than are taken: the error counts those that are left out, the
// others are complete, and stop ends them.
func TestManyNamespacesAreBounded(t *testing.T) {
	wd := newWorkdir(t)
	for i := range 1020 {
		write(t, wd.NamespaceRecorded(fmt.Sprintf("ns%d", i), workdir.RecordedLinks),
			"1: lo: <LOOPBACK> mtu 65536 qdisc noop state DOWN\n    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n")
	}
	started, err := keeper.Start(wd)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = started.Close() }()
	list, err := started.Report(t.Context())
	if want := "only the first 1000 network namespaces are restored: 20 more are not"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	expect.Equal(t, len(list), 1000, "namespaces in the report")
	for _, n := range list {
		if !n.Complete() {
			t.Fatalf("%s: %+v", n.Name, n.Named)
		}
	}
	if err := keeper.Stop(t.Context(), wd); err != nil {
		t.Fatal(err)
	}
	if left := keepers(t, wd); len(left) > 0 {
		t.Errorf("keepers %v", left)
	}
}

// TestTooFewDescriptorsAreNamed restores namespaces where the keeper can open few files: the remark names the limit,
// and not the kernel.
func TestTooFewDescriptorsAreNamed(t *testing.T) {
	ovs.Need(t, "prlimit")
	wd := newWorkdir(t)
	for i := range 20 {
		simple(t, wd, fmt.Sprintf("ns%d", i))
	}
	cmd := exec.Command("prlimit", "--nofile=60:60", os.Args[0])
	cmd.Env = append(os.Environ(), asAsker+"="+wd.Path())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.HasPrefix(string(out), "error:") {
		t.Skip(string(out))
	}
	if !strings.Contains(string(out), "can open no more files (ulimit -n)") ||
		strings.Contains(string(out), "does not trace") {
		t.Errorf("%s", out)
	}
}

func TestStopEndsAKeeperWhoseSocketIsLost(t *testing.T) {
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	restored(t, wd)
	if err := os.RemoveAll(wd.VarRuns()); err != nil {
		t.Fatal(err)
	}
	if err := keeper.Stop(t.Context(), wd); err != nil {
		t.Fatal(err)
	}
	if left := keepers(t, wd); len(left) > 0 {
		t.Errorf("keepers %v", left)
	}
}

// openTun runs a program as another user in a mount namespace in which /dev/net/tun is open to all, as it is on most
// systems. Where that can't be had, it stays as it is.
const openTun = `mknod "$1" c 10 200 && chmod 666 "$1" && mount --bind "$1" /dev/net/tun; shift; exec setpriv --reuid=12345 --regid=12345 --clear-groups "$@"`

// TestOrdinaryUser restores a namespace as an ordinary user. Where /dev/net/tun is for root alone, the devices are
// named.
func TestOrdinaryUser(t *testing.T) {
	ovs.Need(t, "setpriv", "unshare")
	if os.Geteuid() != 0 {
		t.Skip("it is one already")
	}
	wd := newWorkdir(t)
	simple(t, wd, "qrouter-1")
	write(t, wd.NamespaceRecorded("qrouter-1", workdir.NamespaceFilters),
		"*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD -i qr-1 -j ACCEPT\nCOMMIT\n")
	const uid = 12345
	program := filepath.Join(t.TempDir(), "test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := wd.Path(); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := filepath.WalkDir(wd.Path(), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, uid))
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", openTun, "sh", filepath.Join(t.TempDir(), "tun"), program)
	cmd.Env = append(os.Environ(), asAsker+"="+wd.Path())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	switch text := string(out); {
	case strings.HasPrefix(text, "error:"):
		t.Skip(text)
	case !strings.Contains(text, "qrouter-1 filter_rules {Recorded:1 Restored:1"):
		t.Errorf("the rule is not restored:\n%s", text)
	case !strings.Contains(text, "qrouter-1 devices {Recorded:3 Restored:3") &&
		!strings.Contains(text, "/dev/net/tun: permission denied"):
		t.Errorf("the devices are neither restored nor named:\n%s", text)
	}
}
