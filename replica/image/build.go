package image

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
)

//go:embed Containerfile
var fromPackages string

//go:embed Containerfile.source
var fromSource string

// versionsFile is where a Containerfile's last step writes what is inside.
const versionsFile = "/usr/share/ovs-offline/versions"

// DefaultRepo is where OVN's source comes from when a commit of it is asked for.
const DefaultRepo = "https://github.com/ovn-org/ovn.git"

// Build says what to build. Without Repo and Commit it is an image of
// distribution packages, with either one of OVN's source, and of the Open
// vSwitch that this source names.
type Build struct {
	Repo     string // git URL; DefaultRepo if only Commit is given
	Commit   string // commit, tag or branch; the repository's HEAD if only Repo is given
	NoCache  bool   // run each step anew
	Platform string // OS/ARCH[/VARIANT]; "" is the engine's own
	Name     string // "" is the repository and the versions inside
	network  string // of the steps: "host", as tests have it, or "" for the engine's usual
}

// containerBuild is one build as an engine does it.
type containerBuild struct {
	containerfile string
	name          string
	args          map[string]string
	labels        map[string]string
	noCache       bool
	platform      string
	network       string
}

// ErrBadBuild is wrapped by errors in what a Build says.
var ErrBadBuild = errors.New("can't build that")

var (
	// A name of git's; no option, no range, no shell character.
	commitName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
	platformName = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$`)
)

// Check tells what is wrong with a Build; the error wraps ErrBadBuild. Repo and Commit go into build
// arguments; they are checked all the same, before an engine is asked.
func (b Build) Check() error {
	if b.Repo != "" {
		u, err := url.Parse(b.Repo)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "git" {
			return fmt.Errorf("%w: the repository %q is no https://, http:// or git:// URL", ErrBadBuild, b.Repo)
		}
		if strings.ContainsAny(b.Repo, " \t\r\n'\"\\$`;&|<>*?(){}") {
			return fmt.Errorf("%w: the repository %q has characters that a URL does not need", ErrBadBuild, b.Repo)
		}
	}
	if b.Commit != "" && (!commitName.MatchString(b.Commit) || strings.Contains(b.Commit, "..")) {
		return fmt.Errorf("%w: the commit %q is no name of a commit, tag or branch", ErrBadBuild, b.Commit)
	}
	if b.Platform != "" && !platformName.MatchString(b.Platform) {
		return fmt.Errorf("%w: the platform %q is not like linux/arm64", ErrBadBuild, b.Platform)
	}
	return checkName(b.Name)
}

// splitPlatform splits "linux/arm/v7".
func splitPlatform(platform string) (os, arch, variant string) {
	parts := append(strings.SplitN(platform, "/", 3), "", "")
	return parts[0], parts[1], parts[2]
}

// Run builds the image in an engine. What the steps print goes to progress;
// version is that of ovs-offline. An image is named and labelled once it is
// known what is inside; a build that fails leaves no name behind.
func (b Build) Run(ctx context.Context, e Engine, version string, progress io.Writer) (Made, error) {
	if err := b.Check(); err != nil {
		return Made{}, err
	}
	if b.Repo == "" && b.Commit == "" {
		return b.run(ctx, e, containerBuild{containerfile: fromPackages}, madeFromPackages, version, progress)
	}
	args := map[string]string{"REPO": cmp.Or(b.Repo, DefaultRepo), "COMMIT": cmp.Or(b.Commit, "HEAD")}
	return b.run(ctx, e, containerBuild{containerfile: fromSource, args: args}, madeFromSource, version, progress)
}

func (b Build) run(ctx context.Context, e Engine, step containerBuild, how, version string, progress io.Writer) (Made, error) {
	step.name = e.Repository() + "-building:" + strings.ToLower(rand.Text())
	step.noCache, step.platform, step.network = b.NoCache, b.Platform, b.network
	if err := e.Build(ctx, step, progress); err != nil {
		return Made{}, fmt.Errorf("building an image in %s: %w", e.Name(), err)
	}
	defer func() { _ = e.Untag(context.WithoutCancel(ctx), step.name) }()
	inside, err := readVersions(ctx, e, step.name)
	if err != nil {
		return Made{}, fmt.Errorf("the versions in the image that %s built: %w", e.Name(), err)
	}
	name := cmp.Or(b.Name, inside.name(e))
	// Nothing runs for labels, so nothing is built again.
	labels := containerBuild{containerfile: "FROM " + step.name + "\n", name: name, platform: b.Platform, labels: inside.labels(how, version)}
	if err := e.Build(ctx, labels, io.Discard); err != nil {
		return Made{}, fmt.Errorf("labelling the image that %s built: %w", e.Name(), err)
	}
	return inspect(ctx, e, name)
}

// readVersions reads what the image's tools said to --version when it was
// built: a line each.
func readVersions(ctx context.Context, e Engine, name string) (Versions, error) {
	content, err := e.ReadFile(ctx, name, versionsFile)
	if err != nil {
		return Versions{}, err
	}
	ovs, ovn, _ := strings.Cut(string(content), "\n")
	var v Versions
	if v.OVS, err = readVersion("ovs-vswitchd", ovs); err != nil {
		return Versions{}, err
	}
	v.OVN, err = readVersion("ovn-nbctl", ovn)
	return v, err
}
