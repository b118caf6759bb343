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
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"ovs-offline/replica/runtime/engine"
)

//go:embed Containerfile
var fromPackages string

//go:embed Containerfile.source
var fromSource string

// versionsFile is the file in which a Containerfile's last step records the
// versions of the programs.
const versionsFile = "/usr/share/ovs-offline/versions"

// DefaultRepo is the repository of OVN's source that Commit refers to without Repo.
const DefaultRepo = "https://github.com/ovn-org/ovn.git"

// Build describes an image to build. Without Repo and Commit it is made of distribution
// packages. With either of them it is built from OVN's source and the Open vSwitch that
// this source pins.
type Build struct {
	Repo     string // git URL, or a folder of this machine; DefaultRepo if only Commit is given
	Commit   string // commit, tag or branch; the repository's HEAD, or a folder's files as they are, if only Repo is given
	NoCache  bool   // run each step anew
	Platform string // OS/ARCH[/VARIANT]; "" for the engine's own
	Name     string // "" for the repository and the versions
	network  string // network of the steps: "host" in tests, "" for the engine's default
}

// ErrBadBuild is wrapped by the errors of Check.
var ErrBadBuild = errors.New("the image can't be built")

var (
	// A name in git: no option, no range, no shell character.
	commitName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
	platformName = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$`)
)

// FromSource reports whether the image is built from source.
func (b Build) FromSource() bool { return b.Repo != "" || b.Commit != "" }

func (b Build) repo() string   { return cmp.Or(b.Repo, DefaultRepo) }
func (b Build) commit() string { return cmp.Or(b.Commit, "HEAD") }

// source describes the source.
func (b Build) source() string {
	if b.Commit == "" {
		return b.repo()
	}
	return b.repo() + " " + b.Commit
}

// Check returns an error that wraps ErrBadBuild for a Build that can't be built.
func (b Build) Check() error {
	if isFolder(b.Repo) {
		if err := b.checkFolder(); err != nil {
			return err
		}
	} else if b.Repo != "" {
		u, err := url.Parse(b.Repo)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "git" {
			return fmt.Errorf("%w: the repository %q is neither a folder nor an https://, http:// or git:// URL", ErrBadBuild, b.Repo)
		}
		if strings.ContainsAny(b.Repo, " \t\r\n'\"\\$`;&|<>*?(){}") {
			return fmt.Errorf("%w: the repository %q has characters that a URL does not need", ErrBadBuild, b.Repo)
		}
	}
	if b.Commit != "" && (!commitName.MatchString(b.Commit) || strings.Contains(b.Commit, "..")) {
		return fmt.Errorf("%w: %q is not the name of a commit, tag or branch", ErrBadBuild, b.Commit)
	}
	if b.Platform != "" && !platformName.MatchString(b.Platform) {
		return fmt.Errorf("%w: the platform %q does not have the form OS/ARCH, such as linux/arm64", ErrBadBuild, b.Platform)
	}
	if b.Name != "" {
		if _, err := name.NewTag(b.Name); err != nil {
			return fmt.Errorf("%w: the name %q: %w", ErrBadBuild, b.Name, err)
		}
	}
	return nil
}

// Run builds the image in an engine and writes what the steps print to progress.
// version is the version of ovs-offline. The image gets its name and labels once
// the versions in it are known; a failed build leaves no named image.
func (b Build) Run(ctx context.Context, e *engine.Engine, version string, progress io.Writer) (Made, error) {
	if err := b.Check(); err != nil {
		return Made{}, err
	}
	if !b.FromSource() {
		return b.run(ctx, e, engine.Build{Containerfile: fromPackages}, madeFromPackages, version, progress)
	}
	return b.runSource(ctx, e, version, progress)
}

// runSource builds the image from a copy of the source.
func (b Build) runSource(ctx context.Context, e *engine.Engine, version string, progress io.Writer) (Made, error) {
	folder, err := os.MkdirTemp("", "ovs-offline-build-")
	if err != nil {
		return Made{}, err
	}
	defer os.RemoveAll(folder)
	if err := b.copySource(ctx, filepath.Join(folder, sourceFolder), progress); err != nil {
		return Made{}, err
	}
	return b.run(ctx, e, engine.Build{Containerfile: fromSource, Folder: folder}, madeFromSource, version, progress)
}

func (b Build) run(ctx context.Context, e *engine.Engine, step engine.Build, made, version string, progress io.Writer) (Made, error) {
	step.Name = e.Repository() + "-building:" + strings.ToLower(rand.Text())
	step.NoCache, step.Platform, step.Network = b.NoCache, b.Platform, b.network
	if err := e.Build(ctx, step, progress); err != nil {
		return Made{}, fmt.Errorf("building an image in %s: %w", e.Name(), err)
	}
	defer func() { _ = e.Untag(context.WithoutCancel(ctx), step.Name) }()
	versions, err := readVersions(ctx, e, step.Name)
	if err != nil {
		return Made{}, fmt.Errorf("the versions in the image that %s built: %w", e.Name(), err)
	}
	result, err := b.finish(ctx, e, step.Name, finishing{cmp.Or(b.Name, versions.name(e)), versions, made, version})
	if err != nil {
		return Made{}, fmt.Errorf("finishing the image that %s built: %w", e.Name(), err)
	}
	return result, nil
}

// finishing is what an image gets once the versions in it are known.
type finishing struct {
	name     string
	versions Versions
	made     string // value of labelMade
	version  string // of ovs-offline
}

// finish makes an image from another one that was built: with its name, its labels and
// this program. This runs no step, so nothing is built again.
func (b Build) finish(ctx context.Context, e *engine.Engine, from string, f finishing) (Made, error) {
	built, err := e.InspectImage(ctx, from)
	if err != nil {
		return Made{}, err
	}
	last := engine.Build{Containerfile: "FROM " + from + "\n", Name: f.name, Platform: b.Platform}
	s, lacking := findSelf(f.version, built.Architecture)
	if lacking == nil {
		if last.Folder, err = os.MkdirTemp("", "ovs-offline-build-"); err != nil {
			return Made{}, err
		}
		defer os.RemoveAll(last.Folder)
		if err := s.writeFolder(last.Folder); err != nil {
			return Made{}, err
		}
		last.Containerfile += s.instructions()
	}
	last.Labels = f.versions.labels(f.made, f.version, s)
	if err := e.Build(ctx, last, io.Discard); err != nil {
		return Made{}, err
	}
	made, err := inspect(ctx, e, f.name)
	if lacking != nil {
		made.LeftOut = []string{selfLacks(lacking)}
	}
	return made, err
}

// readVersions reads the versions that the image's tools printed when it was
// built, one per line.
func readVersions(ctx context.Context, e *engine.Engine, image string) (Versions, error) {
	content, err := e.ReadFile(ctx, image, versionsFile)
	if err != nil {
		return Versions{}, err
	}
	ovs, ovn, _ := strings.Cut(string(content), "\n")
	return parseVersions(ovs, ovn)
}
