package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"ovs-offline/internal/command"
	"ovs-offline/replica/image"
	"ovs-offline/replica/runtime/process"
)

// Progress gets the name of a step of a compilation, and each line that it prints.
type Progress func(step, line string)

// compiler is a program that a compilation runs, with the packages that contain it.
type compiler struct{ name, debian, fedora string }

// compilers are the programs that compile OVN and Open vSwitch, as their installation
// guides list them (Documentation/intro/install/general.rst), and the programs that
// autoreconf runs. git is needed for repositories only.
func (b Build) compilers() []compiler {
	programs := []compiler{
		{"gcc", "gcc libc6-dev", "gcc glibc-devel"}, {"make", "make", "make"}, {"autoreconf", "autoconf", "autoconf"},
		{"automake", "automake", "automake"}, {"libtoolize", "libtool", "libtool"}, {"python3", "python3", "python3"},
	}
	if !isFolder(b.Repo) || b.Commit != "" || isRepository(b.Repo) {
		programs = append(programs, compiler{"git", "git", "git"})
	}
	return programs
}

// checkCompilers returns an error that names the missing programs, and the command that
// installs them.
func (b Build) checkCompilers() error {
	var missing, debian, fedora []string
	for _, program := range b.compilers() {
		if _, err := exec.LookPath(program.name); err != nil {
			missing = append(missing, program.name)
			debian, fedora = append(debian, program.debian), append(fedora, program.fedora)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("compiling here needs %s: install with \"apt-get install %s\" on Debian and Ubuntu, \"dnf install %s\" on Fedora; or compile in a container with --runtime podman or docker",
		strings.Join(missing, ", "), strings.Join(debian, " "), strings.Join(fedora, " "))
}

// Compile compiles the source of OVN and of the Open vSwitch that it pins on this
// machine, and adds the programs, with the libraries of this machine that they need, to
// the images for local processes. It needs no privileges, and installs nothing. It works
// in a temporary folder; a failed compilation leaves its log. progress may be nil.
func (b Build) Compile(ctx context.Context, store *image.Store, version string, progress Progress) (image.Image, error) {
	if err := errors.Join(b.Check(), b.checkCompilers()); err != nil {
		return image.Image{}, err
	}
	scratch, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return image.Image{}, err
	}
	defer os.RemoveAll(scratch)
	log, err := os.Create(filepath.Join(scratch, "log"))
	if err != nil {
		return image.Image{}, err
	}
	defer log.Close()
	running := &compilation{Build: b, scratch: scratch, log: log, progress: progress}
	content, err := running.run(ctx)
	if err != nil {
		return image.Image{}, running.explain(ctx, err)
	}
	made, err := content.Image(ctx, version)
	if err != nil {
		return image.Image{}, err
	}
	added, err := store.AddImage(ctx, made, image.AddOptions{Name: b.Name, Source: b.source()})
	added.Remarks = append(added.Remarks, content.LeftOut...)
	return added, err
}

// compilation is one run of Compile.
type compilation struct {
	Build
	scratch  string
	log      *os.File
	progress Progress
	step     string
	writing  sync.Mutex // the standard output and error of a step are written at the same time
}

// run returns the content of the image.
func (c *compilation) run(ctx context.Context) (*Content, error) {
	c.step = "copying the source"
	c.report("")
	ovn := filepath.Join(c.scratch, sourceFolder)
	if err := c.copySource(ctx, ovn, c); err != nil {
		return nil, err
	}
	ovs, built := filepath.Join(ovn, submodule), filepath.Join(c.scratch, "built")
	if err := c.compile(ctx, "Open vSwitch", ovs, built); err != nil {
		return nil, err
	}
	if err := c.compile(ctx, "OVN", ovn, built, "--with-ovs-source="+ovs); err != nil {
		return nil, err
	}
	c.step = "collecting the programs and their libraries"
	c.report("")
	find := func(program string) (string, error) {
		path, err := process.FindIn(built, program)
		return filepath.Join(built, path), err
	}
	return gather(ctx, madeFromSource, find, built, filepath.Join(ovs, "python"))
}

// compile compiles the source in a folder, and installs it below the folder built.
func (c *compilation) compile(ctx context.Context, what, folder, built string, options ...string) error {
	configure := append([]string{"./configure", "--prefix=/usr", "--localstatedir=/var", "--sysconfdir=/etc", "CFLAGS=-O2"}, options...)
	if python, err := systemPython(); err == nil {
		configure = append(configure, "PYTHON3="+python)
	}
	for _, step := range []struct {
		name string
		argv []string
	}{
		{"preparing", []string{"./boot.sh"}},
		{"configuring", configure},
		{"compiling", []string{"make", "-j" + strconv.Itoa(runtime.NumCPU())}},
		{"installing", []string{"make", "install", "DESTDIR=" + built}},
	} {
		c.step = step.name + " " + what
		c.report("")
		fmt.Fprintf(c.log, "+ cd %s; %s\n", folder, strings.Join(step.argv, " "))
		_, err := command.Run(ctx, command.Command{
			Argv: append([]string{"nice"}, step.argv...), Dir: folder, Stdout: c, Stderr: c, Group: true,
			Env: append(os.Environ(), "LC_ALL=C", "TMPDIR="+c.scratch), // some programs leave temporary files
		})
		if failed := (*command.Error)(nil); errors.As(err, &failed) { // the first line that it printed is not the reason
			err = failed.Err
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", c.step, step.argv[0], err)
		}
	}
	return nil
}

// systemPython returns the path of the system's Python, for ovn-detrace. In some PATHs,
// a script that chooses a Python comes first.
func systemPython() (string, error) {
	for _, dir := range process.SystemPath() {
		if path, err := exec.LookPath(filepath.Join(dir, "python3")); err == nil {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// Write writes output of the steps to the log, and reports each line.
func (c *compilation) Write(output []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for line := range strings.SplitSeq(strings.TrimRight(string(output), "\n"), "\n") {
		c.report(line)
	}
	return c.log.Write(output)
}

func (c *compilation) report(line string) {
	if c.progress != nil {
		c.progress(c.step, line)
	}
}

// explain keeps the log of a failed compilation in a file of its own, and names it.
func (c *compilation) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", c.step, ctx.Err())
	}
	kept, keepErr := os.CreateTemp("", temporaryPrefix+"*.log")
	if keepErr != nil {
		return errors.Join(err, keepErr)
	}
	defer kept.Close()
	_, _ = c.log.Seek(0, io.SeekStart)
	if _, keepErr = io.Copy(kept, c.log); keepErr != nil {
		return errors.Join(err, fmt.Errorf("keeping the log: %w", keepErr))
	}
	return fmt.Errorf("%w; the log is %s, and it ends with:\n%s", err, kept.Name(), lastLines(kept))
}

// lastLines returns the end of a log.
func lastLines(log *os.File) string {
	const lines, bytes = 12, 4096
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(end, bytes))
	size, _ := log.ReadAt(text, end-int64(len(text)))
	all := strings.Split(strings.TrimSpace(string(text[:size])), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
