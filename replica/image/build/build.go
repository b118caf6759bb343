package build

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
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"ovs-offline/internal/fault"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/runtime/engine"
)

//go:embed Containerfile
var fromPackages string

//go:embed Containerfile.source
var fromSource string

// versionsFile is the file in which a Containerfile's last step records the
// versions of the programs.
const versionsFile = "/usr/share/ovs-offline/versions"

// temporaryPrefix begins the names of the folders in which images are built.
const temporaryPrefix = "ovs-offline-build-"

// DefaultRepo is the repository of OVN's source that Commit refers to without Repo.
const DefaultRepo = "https://github.com/ovn-org/ovn.git"

// Build describes an image to build. Without Repo and Commit it is made of distribution
// packages. With either of them it is built from OVN's source and the Open vSwitch that
// this source pins.
type Build struct {
	Repo     string // git URL, or a folder of this machine; DefaultRepo if only Commit is given
	Commit   string // commit, tag or branch; the repository's HEAD, or a folder's files as they are, if only Repo is given
	NoCache  bool   // reuse no steps of an earlier build
	Platform string // OS/ARCH[/VARIANT]; "" for the engine's own
	Name     string // "" for the repository and the versions
	network  string // network of the steps: "host" in tests, "" for the engine's default
}

// ErrBadBuild is wrapped by the errors of Check.
var ErrBadBuild = fault.Wrap(fault.Usage, errors.New("the image can't be built"))

var (
	// A name in git: no option, no range, no shell character.
	commitName   = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
	platformName = lazyregexp.New(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$`)
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
		address, err := url.Parse(b.Repo)
		if err != nil || address.Host == "" || !slices.Contains([]string{"https", "http", "git"}, address.Scheme) {
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
func (b Build) Run(ctx context.Context, service engine.Engine, version string, progress io.Writer) (Made, error) {
	if err := b.Check(); err != nil {
		return Made{}, err
	}
	if !b.FromSource() {
		return b.run(ctx, service, engine.Build{Containerfile: fromPackages}, madeFromPackages, version, progress)
	}
	folder, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return Made{}, err
	}
	defer os.RemoveAll(folder)
	if err := b.copySource(ctx, filepath.Join(folder, sourceFolder), progress); err != nil {
		return Made{}, err
	}
	return b.run(ctx, service, engine.Build{Containerfile: fromSource, Folder: folder}, madeFromSource, version, progress)
}

func (b Build) run(ctx context.Context, service engine.Engine, step engine.Build, made, version string, progress io.Writer) (Made, error) {
	step.Name = service.Repository() + "-building:" + strings.ToLower(rand.Text())
	step.NoCache, step.Platform, step.Network = b.NoCache, b.Platform, b.network
	if err := service.Build(ctx, step, progress); err != nil {
		return Made{}, fmt.Errorf("building an image in %s: %w", service.Name(), err)
	}
	defer func() { _ = service.Untag(context.WithoutCancel(ctx), step.Name) }()
	found, err := readVersions(ctx, service, step.Name)
	if err != nil {
		return Made{}, fmt.Errorf("the versions in the image that %s built: %w", service.Name(), err)
	}
	result, err := b.finish(ctx, service, step.Name, found, made, version)
	if err != nil {
		return Made{}, fmt.Errorf("finishing the image that %s built: %w", service.Name(), err)
	}
	return result, nil
}

// finish makes an image from another one that was built: with its name, its labels and
// this program. This runs no step, so nothing is built again. made is the value of labelMade.
func (b Build) finish(ctx context.Context, service engine.Engine, from string, found versions.Pair, made, version string) (Made, error) {
	built, err := service.InspectImage(ctx, from)
	if err != nil {
		return Made{}, err
	}
	step := engine.Build{Containerfile: "FROM " + from + "\n", Name: cmp.Or(b.Name, nameIn(service, found)), Platform: b.Platform}
	self, lacking := findSelf(version, built.Architecture)
	if lacking == nil {
		if step.Folder, err = os.MkdirTemp("", temporaryPrefix); err != nil {
			return Made{}, err
		}
		defer os.RemoveAll(step.Folder)
		if err := self.writeFolder(step.Folder); err != nil {
			return Made{}, err
		}
		step.Containerfile += self.instructions()
	}
	step.Labels = labels(found, made, version, self)
	if err := service.Build(ctx, step, io.Discard); err != nil {
		return Made{}, err
	}
	result, err := inspect(ctx, service, step.Name)
	if lacking != nil {
		result.LeftOut = []string{selfLacks(lacking)}
	}
	return result, err
}

// readVersions reads the versions that the image's tools printed when it was
// built, one per line.
func readVersions(ctx context.Context, service engine.Engine, image string) (versions.Pair, error) {
	content, err := service.ReadFile(ctx, image, versionsFile)
	if err != nil {
		return versions.Pair{}, err
	}
	ovs, ovn, _ := strings.Cut(string(content), "\n")
	return parseVersions(ovs, ovn)
}
