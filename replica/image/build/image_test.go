package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime/container"
	enginepkg "ovs-offline/replica/runtime/engine"
	"ovs-offline/replica/runtime/process"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
)

// fromHostOnly is the environment variable that makes the test program call only
// FromHost, in a namespace in which the test has removed a tool.
const fromHostOnly = "IMAGE_TEST_FROM_HOST_ONLY"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "--version" { // in an image, the test program is ovs-offline
		fmt.Println("ovs-offline of the test")
		os.Exit(0)
	}
	if os.Getenv(fromHostOnly) != "" {
		h, err := build.FromHost(context.Background())
		if err == nil {
			fmt.Println("left out:", h.LeftOut)
		}
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func fromHost(t *testing.T) *build.Content {
	t.Helper()
	ovs.Need(t, append(slices.Clone(build.Programs), build.Detrace)...)
	h, err := build.FromHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// engine starts an engine and connects to it.
func engine(t *testing.T, name string) (enginepkg.Engine, *commandLine) {
	t.Helper()
	address := engines.Alone(t, name)
	t.Setenv("CONTAINER_HOST", address)
	t.Setenv("DOCKER_HOST", address)
	kind, _, _ := strings.Cut(name, "-")
	e, err := enginepkg.Connect(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	c := &commandLine{argv: []string{"podman", "--url", address}}
	if kind == "docker" {
		c = &commandLine{argv: []string{"docker", "--host", address}}
	}
	return e, c
}

// commandLine is the engine's own command line.
type commandLine struct{ argv []string }

func (c *commandLine) command(t *testing.T, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), c.argv[0], slices.Concat(c.argv[1:], args)...)
}

func (c *commandLine) run(t *testing.T, args ...string) string {
	t.Helper()
	command := c.command(t, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

// lockedDown runs a script in a container without privileges, as a user that the image
// does not know.
func (c *commandLine) lockedDown(t *testing.T, name, script string, args ...string) string {
	t.Helper()
	argv := []string{"run", "--rm", "--network", "none", "--cap-drop", "all", "--security-opt", "no-new-privileges",
		"--read-only", "--tmpfs", "/tmp", "--user", "12345:12345", name, "bash", "-c", script, "bash"}
	return c.run(t, append(argv, args...)...)
}

// TestFromHost loads an image of this host's tools into each engine, and runs what it holds: outside of a sweep, in one
// engine, since the others get the same layers. TestBuildOnEachEngine loads it into the others and runs containers
// there.
func TestFromHost(t *testing.T) {
	h := fromHost(t)
	tools := h.Size()
	if err := h.AddSelf(t.Context(), "1.2.3"); err != nil {
		t.Fatal(err)
	}
	if len(h.LeftOut) > 0 {
		t.Errorf("left out: %v", h.LeftOut)
	}
	t.Logf("%d MB in %d files; %d MB without ovs-offline", h.Size()/1e6, h.Files(), tools/1e6)
	if tools > 70e6 {
		t.Errorf("the tools have %d bytes", tools)
	}
	for _, name := range sweep.Rows(engines.Engines(), func(name string) bool { return name != engines.Podman }) {
		t.Run(name, func(t *testing.T) {
			e, c := engine(t, name)
			made, err := h.Load(t.Context(), e, "", "1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			checkVersions(t, made)
			want := map[string]string{container.LabelOVSVersion: made.Versions.OVS, container.LabelOVNVersion: made.Versions.OVN,
				"ovs-offline.made": "from-host", "ovs-offline.version": "1.2.3", "ovs-offline.holds": "1.2.3"}
			expect.Equal(t, made.Labels, want, "labels")
			if !strings.HasSuffix(made.Name, "ovs-offline:ovs-"+made.Versions.OVS+"-ovn-"+made.Versions.OVN) {
				t.Errorf("name %s", made.Name)
			}
			if !sweep.Whole() && name != engines.PodmanRootless {
				return
			}
			checkTools(t, c, made.Name)
			checkDetrace(t, c, made.Name)
			checkSelf(t, c, made.Name)
		})
	}
}

// checkSelf checks that an image holds this program and the programs that oc runs, for a
// user that the image does not know.
func checkSelf(t *testing.T, c *commandLine, name string) {
	t.Helper()
	out := c.lockedDown(t, name, `ovs-offline --version && echo "home $HOME"
		for tool in gather mkdir tee sleep sync tar df awk sed sort setsid ps pkill; do command -v "$tool" >/dev/null || echo "no $tool"; done
		setsid -w bash -c 'ps -o sess --no-headers | sort -u' | awk 'NR==1 {print "a session"}'
		for certificates in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do if [[ -s $certificates ]]; then echo certificates; fi; done`)
	expect.Equal(t, out, "ovs-offline of the test\nhome /tmp\na session\ncertificates\n", "in the image")
}

// checkVersions compares the versions with the output of the same tools on this host.
func checkVersions(t *testing.T, made build.Made) {
	t.Helper()
	for tool, version := range map[string]string{"ovs-vswitchd": made.Versions.OVS, "ovn-nbctl": made.Versions.OVN} {
		line, _, _ := strings.Cut(onHost(t, tool), "\n")
		if version == "" || !strings.HasSuffix(line, " "+version) {
			t.Errorf("%s prints %q, the image %q", tool, line, version)
		}
	}
}

func onHost(t *testing.T, tool string) string {
	t.Helper()
	path, err := process.Find(tool)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// checkTools checks that each tool prints the same version in the container as on this
// host.
func checkTools(t *testing.T, c *commandLine, name string) {
	t.Helper()
	tools := slices.Concat(build.Programs, []string{"bash", "cat", "ls", "mv", "rm"})
	out := c.lockedDown(t, name, `for tool; do "$tool" --version || exit; printf '\0'; done`, tools...)
	said := strings.Split(out, "\x00")
	for i, tool := range tools {
		if i >= len(said) || said[i] != onHost(t, tool) {
			t.Errorf("%s: %q", tool, said[min(i, len(said)-1)])
		}
	}
}

// checkDetrace runs the image's ovn-detrace on a trace, with the image's ovsdb-servers
// and schemas.
func checkDetrace(t *testing.T, c *commandLine, name string) {
	t.Helper()
	out := c.lockedDown(t, name, `
		export OVS_RUNDIR=/tmp OVN_RUNDIR=/tmp
		for db in nb sb; do
			ovsdb-tool create /tmp/$db.db /usr/share/ovn/ovn-$db.ovsschema
			ovsdb-server --detach --no-chdir --pidfile=/tmp/$db.pid --unixctl=/tmp/$db.ctl -vconsole:off --remote=punix:/tmp/$db.sock /tmp/$db.db || exit
		done
		ovn-sbctl --db=unix:/tmp/sb.sock --id=@d create Datapath_Binding tunnel_key=7 external_ids:name=sw0 -- \
			create Logical_Flow logical_datapath=@d pipeline=ingress table_id=0 priority=50 match='"ip4"' actions='"next;"' >/tmp/ids
		{ read -r _; read -r flow; } </tmp/ids
		ovn-detrace --ovnsb=unix:/tmp/sb.sock --ovnnb=unix:/tmp/nb.sock <<< "8. ip, priority 50, cookie 0x${flow%%-*}"
	`)
	for _, want := range []string{"8. ip, priority 50, cookie 0x", `"sw0"`, "priority=50, match=(ip4), actions=(next;)"} {
		if !strings.Contains(out, want) {
			t.Errorf("ovn-detrace did not say %q:\n%s", want, out)
		}
	}
}

// TestImageIsReproducible checks that the same tools give the same image, byte for
// byte, and that it holds nothing that an image should not have.
func TestImageIsReproducible(t *testing.T) {
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		h := fromHost(t)
		if err := errors.Join(h.AddSelf(t.Context(), "1"),
			h.Write(t.Context(), b, "localhost/ovs-offline:same", "1")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two images of the same tools differ")
	}
	layers, roots := 0, 0
	for name, content := range entries(t, &first) {
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		layers++
		roots += checkLayer(t, bytes.NewReader(content))
	}
	if layers != 2 || roots != 1 {
		t.Errorf("%d layers, of which %d say what / is: an engine makes it up if no layer does", layers, roots)
	}
}

func entries(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

// checkLayer checks each file of a layer, and returns how often the layer has /.
func checkLayer(t *testing.T, r io.Reader) (roots int) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return roots
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "./" {
			roots++
		}
		wrong := h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(build.Epoch) || h.Mode&0o6000 != 0
		switch h.Typeflag {
		case tar.TypeDir:
			wrong = wrong || h.Mode != 0o755 && h.Name != "./tmp/"
		case tar.TypeReg:
			wrong = wrong || h.Mode&0o444 != 0o444 || h.Mode&0o022 != 0
		case tar.TypeSymlink:
		default:
			wrong = true
		}
		if wrong {
			t.Errorf("%+v", h)
		}
	}
}

// TestMissingToolIsNamed hides a file of this host in a mount namespace.
func TestMissingToolIsNamed(t *testing.T) {
	fromHost(t)
	if os.Geteuid() != 0 {
		t.Skip("taking a tool away takes a mount, and that takes root")
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespace: %s", out)
	}
	for what, want := range map[string][]string{
		"ovn-trace":                       {"ovn-trace is not installed", "ovn-common"},
		"ovs-vswitchd":                    {"ovs-vswitchd is not installed", "openvswitch-switch"},
		"ovn-detrace":                     {"left out: [ovn-detrace", "python3-openvswitch", "<nil>"},
		"/usr/share/ovn/ovn-nb.ovsschema": {"left out: [ovn/ovn-nb.ovsschema", "ovn-central", "<nil>"},
	} {
		out := without(t, what)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("without %s there is no %q in: %s", what, w, out)
			}
		}
	}
}

// without runs FromHost on this host without a file, and returns its output.
func without(t *testing.T, what string) string {
	t.Helper()
	path, err := process.Find(what)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("unshare", "--mount", "sh", "-c", `mount --bind /dev/null "$1" && exec "$2"`, "sh", path, self)
	c.Env = append(os.Environ(), fromHostOnly+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestInterruptedBuildEnds checks that a build that is interrupted ends with the
// reason.
func TestInterruptedBuildEnds(t *testing.T) {
	h := fromHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		io.CopyN(io.Discard, r, 1e6)
		cancel()
		io.Copy(io.Discard, r)
	}()
	if err := h.Write(ctx, w, "localhost/ovs-offline:never", "1"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
