package build_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/replica/image/build"
	"ovs-offline/replica/runtime/container"
	"ovs-offline/test/check/files"
	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
)

// TestCheckRefusesBadBuilds checks that bad arguments are refused before an engine is
// contacted.
func TestCheckRefusesBadBuilds(t *testing.T) {
	for _, b := range []build.Build{
		{Repo: "ext::sh -c id"}, {Repo: "--upload-pack=id"}, {Repo: "/etc"}, {Repo: "file:///etc"},
		{Repo: "https://host/$(id)"},
		{Repo: "https://host/a b"}, {Repo: "https:///x"}, {Repo: "https://host/\nRUN id"},
		{Commit: "-f"}, {Commit: "a;id"}, {Commit: "main..other"}, {Commit: "a b"}, {Commit: "$(id)"}, {Commit: "a\nb"},
		{Platform: "linux"}, {Platform: "linux/arm64/v8/x"}, {Platform: "--x"}, {Name: "UPPER case"}, {Name: "a:b:c"},
	} {
		if err := b.Check(); !errors.Is(err, build.ErrBadBuild) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	for _, b := range []build.Build{
		{}, {Repo: "https://example.org/ovn-org/ovn.git"}, {Repo: "git://example.org:9418/ovn", Commit: "v24.03.1"},
		{Commit: "b24b1f0"}, {Commit: "branch-23.06"}, {Commit: "origin/main"}, {Platform: "linux/arm64"},
		{Platform: "linux/arm/v7"},
		{Name: "ovs-offline"}, {Name: "localhost/a/b:c"},
	} {
		if err := b.Check(); err != nil {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// TestBuildOnEachEngine runs a complete build, with steps that need no network. Podman of an ordinary user takes the
// same requests as that of root, and is left to the sweep.
func TestBuildOnEachEngine(t *testing.T) {
	h := fromHost(t)
	for _, name := range sweep.Rows(engines.Engines(), func(name string) bool { return name != engines.PodmanRootless }) {
		t.Run(name, func(t *testing.T) {
			e, c := engine(t, name)
			base, err := h.Load(t.Context(), e, "", "1")
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			files.Write(t, filepath.Join(folder, "ovn", "a $(id) ; 'c'", "boot.sh"), "echo booted")
			if err := errors.Join(os.Symlink("boot.sh", filepath.Join(folder, "ovn", "a $(id) ; 'c'", "link")),
				os.Chmod(filepath.Join(folder, "ovn", "a $(id) ; 'c'", "boot.sh"), 0o755)); err != nil {
				t.Fatal(err)
			}
			containerfile := "FROM " + base.Name + `
COPY ovn /ovn
WORKDIR /usr/share/ovs-offline
RUN printf 'ovs-vswitchd (Open vSwitch) 9.8.7\novn-nbctl 99.3.1\n' >versions && ls -Ln /ovn/*/* >copied && sh /ovn/*/link >>copied
`
			var progress strings.Builder
			made, err := build.Build{}.OnHostNetwork().RunContainerfile(t.Context(), e, containerfile, folder, "1.2.3",
				&progress)
			if err != nil {
				t.Fatalf("%v\n%s", err, &progress)
			}
			if made.Labels[container.LabelOVSVersion] != "9.8.7" || made.Labels[container.LabelOVNVersion] != "99.3.1" ||
				made.Labels["ovs-offline.made"] != "source" || !strings.HasSuffix(made.Name, ":ovs-9.8.7-ovn-99.3.1") {
				t.Errorf("%+v", made)
			}
			if !strings.Contains(progress.String(), "RUN printf") {
				t.Errorf("progress:\n%s", &progress)
			}
			copied := strings.Split(c.lockedDown(t, made.Name, "cat /usr/share/ovs-offline/copied"), "\n")
			if len(copied) < 3 || !strings.HasPrefix(copied[0], "-rwxr-xr-x 1 0 0 ") ||
				!strings.HasSuffix(copied[0], "/ovn/a $(id) ; 'c'/boot.sh") || copied[2] != "booted" {
				t.Errorf("the folder became %q", copied)
			}
			if len(made.LeftOut) > 0 || made.Labels["ovs-offline.holds"] != "1.2.3" {
				t.Errorf("%+v", made)
			}
			if said := c.lockedDown(t, made.Name,
				`ovs-offline --version; ls -l /usr/bin/gather; echo "$HOME"`); !strings.HasPrefix(said,
				"ovs-offline of the test\n-rwxr-xr-x ") || !strings.HasSuffix(said, "/tmp\n") {
				t.Errorf("in the image: %s", said)
			}
			checkNoLeftovers(t, c)

			containerfile = "FROM " + base.Name + "\nRUN echo this step failed >&2; exit 7\n"
			progress.Reset()
			_, err = build.Build{}.OnHostNetwork().RunContainerfile(t.Context(), e, containerfile, folder, "1", &progress)
			if err == nil || !strings.Contains(err.Error(), "7") || !strings.Contains(progress.String(), "this step failed") {
				t.Errorf("%v\n%s", err, &progress)
			}
			checkNoLeftovers(t, c)
		})
	}
}

// checkNoLeftovers checks that no container and no temporary image name is left.
func checkNoLeftovers(t *testing.T, c *commandLine) {
	t.Helper()
	if out := c.run(t, "ps", "--all", "--quiet"); out != "" {
		t.Errorf("containers left: %s", out)
	}
	if out := c.run(t, "images", "--format", "{{.Repository}}"); strings.Contains(out, "building") {
		t.Errorf("images left: %s", out)
	}
}

// baseEnv is the environment variable with the path of a tar of a Debian root, which
// replaces the base image if no registry is available.
const baseEnv = "OVS_OFFLINE_TEST_BASE"

// sourceEnv is the environment variable with the source to build: a folder or a URL, and
// a commit if there is a space.
const sourceEnv = "OVS_OFFLINE_TEST_SOURCE"

// TestPackages builds the image from distribution packages, which needs the network.
func TestPackages(t *testing.T) {
	base := os.Getenv(baseEnv)
	if base == "" {
		t.Skipf("downloads packages, for minutes: to have it, make a base image (debootstrap --variant=minbase stable DIR; tar -C DIR -cf FILE .) and name it in %s", baseEnv)
	}
	buildOnBase(t, base, build.Build{})
}

// TestSource builds the image from source, which takes minutes.
func TestSource(t *testing.T) {
	base, source := os.Getenv(baseEnv), os.Getenv(sourceEnv)
	if base == "" || source == "" {
		t.Skipf("compiles OVN, for many minutes: to have it, name a base image in %s and the source in %s: \"FOLDER\" or \"URL COMMIT\"", baseEnv, sourceEnv)
	}
	repo, commit, _ := strings.Cut(source, " ")
	buildOnBase(t, base, build.Build{Repo: repo, Commit: commit})
}

// buildOnBase builds an image on a base image in each engine, and runs its tools.
func buildOnBase(t *testing.T, base string, b build.Build) {
	for _, name := range engines.Engines() {
		t.Run(name, func(t *testing.T) {
			e, c := engine(t, name)
			c.run(t, "import", base, "docker.io/library/debian:stable-slim")
			var progress strings.Builder
			made, err := b.OnHostNetwork().Run(t.Context(), e, "1", &progress)
			if err != nil {
				t.Fatalf("%v\n%s", err, &progress)
			}
			t.Logf("%s: %d MB", made.Name, made.Size/1e6)
			said := c.lockedDown(t, made.Name, "ovs-vswitchd --version; ovn-nbctl --version; ovn-detrace --help")
			for _, want := range []string{" " + made.Versions.OVS + "\n", "ovn-nbctl " + made.Versions.OVN + "\n",
				"ovn-detrace"} {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in:\n%s", want, said)
				}
			}
			checkDetrace(t, c, made.Name)
		})
	}
}
