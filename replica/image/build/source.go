package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"ovs-offline/internal/command"
)

// The folder of a copy of OVN's source, which Containerfile.source names too, and the
// folder in it with the source of Open vSwitch.
const (
	sourceFolder = "ovn"
	submodule    = "ovs"
)

// isFolder reports whether a repository is a folder of this machine.
func isFolder(repo string) bool {
	info, err := os.Stat(repo)
	return err == nil && info.IsDir()
}

// checkFolder returns an error for a folder from which the Build can't be built.
func (b Build) checkFolder() error {
	switch {
	case b.Commit == "" && hasSource(b.Repo) && !hasSource(filepath.Join(b.Repo, submodule)):
		return fmt.Errorf("%w: %s has no source of Open vSwitch in %s: in it, run git submodule update --init", ErrBadBuild, b.Repo, submodule)
	case b.Commit == "" && hasSource(b.Repo), isRepository(b.Repo):
		return nil
	case b.Commit != "":
		return fmt.Errorf("%w: %s is not a git repository, so that it has no commit %q", ErrBadBuild, b.Repo, b.Commit)
	}
	return fmt.Errorf("%w: %s has no source of OVN: it has no file boot.sh, and is not a bare git repository", ErrBadBuild, b.Repo)
}

// hasSource reports whether a folder has the source of OVN, or of Open vSwitch.
func hasSource(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, "boot.sh"))
	return err == nil && info.Mode().IsRegular()
}

// isRepository reports whether a folder is a git repository, or the work tree of one.
func isRepository(folder string) bool {
	for _, name := range []string{".git", "HEAD"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return true
		}
	}
	return false
}

// copySource writes the source of OVN and of Open vSwitch to the new folder dir, which
// is in an existing one. Of a folder without a commit, it copies the files as they are.
// It writes the output of git to log.
func (b Build) copySource(ctx context.Context, dir string, log io.Writer) error {
	if isFolder(b.Repo) && b.Commit == "" && hasSource(b.Repo) {
		if err := copyFiles(ctx, b.Repo, dir, log); err != nil {
			return fmt.Errorf("copying %s: %w", b.Repo, err)
		}
		return nil
	}
	checkout := git{dir: dir, log: log}
	if err := checkout.checkOut(ctx, b); err != nil {
		return fmt.Errorf("the source of OVN: %w", err)
	}
	if err := checkout.checkOutSubmodule(ctx, b); err != nil {
		return fmt.Errorf("the source of Open vSwitch: %w", err)
	}
	for _, name := range []string{".git", filepath.Join(submodule, ".git")} { // nothing needs the history
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if !hasSource(dir) || !hasSource(filepath.Join(dir, submodule)) {
		return fmt.Errorf("%s at %s has no source of OVN with the Open vSwitch that it pins, as OVN has since version 20.12", b.repo(), b.commit())
	}
	return nil
}

// git runs git in a folder.
type git struct {
	dir string
	log io.Writer
}

func (g git) run(ctx context.Context, args ...string) (string, error) {
	argv := append([]string{"git", "-C", g.dir}, args...)
	fmt.Fprintf(g.log, "+ %s\n", strings.Join(argv, " "))
	env := append(os.Environ(), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0")
	out, err := command.Run(ctx, command.Command{Argv: argv, Env: env, Group: true, Stderr: g.log})
	return strings.TrimSpace(string(out)), err
}

// all runs git with each of several argument lists.
func (g git) all(ctx context.Context, lists ...[]string) error {
	for _, args := range lists {
		if _, err := g.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// checkOut checks out the commit of OVN.
func (g git) checkOut(ctx context.Context, wanted Build) error {
	repo := wanted.repo()
	if isFolder(repo) {
		var err error
		if repo, err = filepath.Abs(repo); err != nil { // its name may begin with a dash
			return err
		}
	}
	if err := os.Mkdir(g.dir, 0o700); err != nil {
		return err
	}
	err := g.all(ctx, []string{"init", "--quiet"}, []string{"remote", "add", "origin", repo})
	if err != nil {
		return err
	}
	// A server can send a single branch, tag or full hash; for a short hash, everything
	// has to be fetched.
	at := "FETCH_HEAD"
	if _, err := g.run(ctx, "fetch", "--quiet", "--depth", "1", "origin", wanted.commit()); err != nil {
		if ctx.Err() != nil || wanted.Commit == "" {
			return err
		}
		at = wanted.Commit
		if err := g.all(ctx, []string{"fetch", "--quiet", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"}); err != nil {
			return err
		}
	}
	return g.all(ctx, []string{"checkout", "--quiet", "--detach", at, "--"})
}

// checkOutSubmodule checks out the commit of Open vSwitch that OVN pins: from the work
// tree of a folder, if that has it, else from the URL in OVN's .gitmodules.
func (g git) checkOutSubmodule(ctx context.Context, wanted Build) error {
	update := []string{"submodule", "--quiet", "update", "--init", "--depth", "1", "--", submodule}
	if isFolder(wanted.Repo) {
		beside, err := filepath.Abs(filepath.Join(wanted.Repo, submodule))
		if err != nil {
			return err
		}
		pinned, err := g.run(ctx, "rev-parse", "--verify", "HEAD:"+submodule)
		if err != nil {
			return err
		}
		if _, err := (git{beside, g.log}).run(ctx, "cat-file", "-e", pinned+"^{commit}"); isRepository(beside) && err == nil {
			update = append([]string{"-c", "submodule." + submodule + ".url=" + beside}, update...)
		}
	}
	if isFolder(wanted.Repo) || g.isElsewhere(ctx) {
		update = append([]string{"-c", "protocol.file.allow=always"}, update...)
	}
	return g.all(ctx, update)
}

// isElsewhere reports whether OVN's .gitmodules names a server for Open vSwitch, or a place
// beside OVN's own repository. Only the user's insteadOf can turn such a URL into a repository
// of this machine. git takes no submodule from this machine by itself, because a stranger's
// .gitmodules could name any repository here.
func (g git) isElsewhere(ctx context.Context) bool {
	text, err := g.run(ctx, "config", "--file", ".gitmodules", "submodule."+submodule+".url")
	if err != nil {
		return false // OVN before version 20.12 has none
	}
	address, err := url.Parse(text)
	return strings.HasPrefix(text, "../") || err == nil && address.Host != "" && address.Scheme != "file"
}

// copyFiles copies the files of a source tree. Of the work tree of a git repository, it
// leaves out what git ignores: what an earlier compilation left there.
func copyFiles(ctx context.Context, from, to string, log io.Writer) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	names, err := sourceFiles(ctx, from, log)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := copyFile(source, target, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // git lists removed files, too
			return err
		}
	}
	if filepath.Base(to) == submodule {
		return nil
	}
	return copyFiles(ctx, filepath.Join(from, submodule), filepath.Join(to, submodule), log)
}

// sourceFiles returns the paths of the files in a source tree, without the submodule.
func sourceFiles(ctx context.Context, folder string, log io.Writer) ([]string, error) {
	if _, err := os.Lstat(filepath.Join(folder, ".git")); err == nil {
		out, err := git{folder, log}.run(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		return strings.FieldsFunc(out, func(char rune) bool { return char == 0 }), err
	}
	var names []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case entry.IsDir() && name == submodule:
			return fs.SkipDir
		case !entry.IsDir():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// copyFile copies a file or a symbolic link. It ignores everything else: git lists a
// submodule, which is a folder, like a file.
func copyFile(source, target *os.Root, name string) error {
	info, err := source.Lstat(name)
	if err != nil || info.Mode().Type()&^fs.ModeSymlink != 0 {
		return err
	}
	if err := target.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := source.Readlink(name)
		if err != nil {
			return err
		}
		return target.Symlink(to, name)
	}
	content, err := source.ReadFile(name)
	if err != nil {
		return err
	}
	return target.WriteFile(name, content, info.Mode().Perm()|0o600)
}
