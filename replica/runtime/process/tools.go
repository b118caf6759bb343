//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"ovs-offline/internal/command"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process/filter"
	"ovs-offline/replica/runtime/process/landlock"
	"ovs-offline/replica/runtime/process/namespace"
)

// find returns the path of a program where the runtime runs it.
func (o Options) find(program string) (string, error) {
	root := o.Root
	if root == "" {
		return Find(program)
	}
	if !filepath.IsAbs(root) {
		return "", fmt.Errorf("the root file system %q is not an absolute path", root)
	}
	if _, err := os.Stat(root); err != nil {
		return "", fmt.Errorf("the root file system of the image: %w", err)
	}
	return FindIn(root, program)
}

// toolRequest returns the request for a tool or a runner in the root file system. Tools
// need only unix sockets, so an image's tools get no network where that is possible; else
// they run under the seccomp filter alone.
func (o Options) toolRequest(becomes string, argv []string) namespace.Request {
	how := filtered
	if userNamespaces() && allowed("net") {
		how = ownNetwork
	}
	return o.request(becomes, how, argv)
}

// request returns the request for a process in the runtime's root file system, or with its part of this host's.
// A program of the user keeps the system calls that debuggers need where its network is its own.
func (o Options) request(becomes string, how isolation, argv []string) namespace.Request {
	request := namespace.Request{Becomes: becomes, OwnNetwork: how == ownNetwork, Root: o.Root, Folders: o.Folders, Argv: argv}
	if o.Root == "" {
		request.Reads = o.readable(argv)
	}
	sockets := filter.Unix
	if how == ownNetwork {
		sockets = filter.OwnNetwork
	}
	if how != shared && !o.NoFilter && (becomes != namespace.Tool || how == filtered) {
		request.Filter, _ = filter.Code(sockets) // none for an unknown architecture
	}
	return request
}

// explain adds the next step to the error of a process that the kernel refused to
// start in a root file system.
func (o Options) explain(err error) error {
	var refused *fs.PathError
	if o.Root == "" || !errors.As(err, &refused) || refused.Path != self {
		return err
	}
	return fmt.Errorf("%w%s (%s)", err, causeOf(err), namespace.Forbidden)
}

// Shares returns the folder share beside the one that the program is in, and the usual ones. A build
// may be installed anywhere, and its folder be in PATH.
func (r *Runtime) Shares(program string) []string {
	list := runtime.UsualShares()
	if path, err := r.options.find(program); err == nil {
		list = append([]string{filepath.Join(filepath.Dir(filepath.Dir(path)), "share")}, list...)
	}
	return slices.Compact(list)
}

// ReadFile returns a file as daemons and tools see it.
func (r *Runtime) ReadFile(_ context.Context, path string) ([]byte, error) {
	if r.options.Root == "" {
		return os.ReadFile(path)
	}
	file, err := resolve(r.options.Root, path)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// Tool runs a program in a clean environment with the replica's directories.
func (r *Runtime) Tool(ctx context.Context, runDir string, stdin io.Reader, argv ...string) ([]byte, error) {
	return r.tool(ctx, runDir, stdin, nil, argv)
}

// ToolTo works like Tool, but writes the standard output to stdout while the program
// runs.
func (r *Runtime) ToolTo(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv ...string) error {
	_, err := r.tool(ctx, runDir, stdin, stdout, argv)
	return err
}

func (r *Runtime) tool(ctx context.Context, runDir string, stdin io.Reader, stdout io.Writer, argv []string) ([]byte, error) {
	path, err := r.options.find(argv[0])
	if err != nil {
		return nil, &command.Error{Argv: argv, Err: err}
	}
	c := command.Command{Argv: append([]string{path}, argv[1:]...), Env: daemon.Environment(pathVariable(r.options.Root), runDir, runDir), Stdin: stdin, Stdout: stdout}
	run := r.options.runHere
	if r.options.Root != "" {
		run = r.runInRoot
	}
	out, err := run(ctx, c)
	var failed *command.Error
	if errors.As(err, &failed) {
		failed.Argv = argv // with the program's name, not its path
	}
	return out, err
}

// runHere works like command.Run, for a tool of this host: under the seccomp filter where there can be one. A tool does
// without: unlike a daemon, it connects to nothing that a database names.
func (o Options) runHere(ctx context.Context, c command.Command) (out []byte, err error) {
	start := func() error {
		out, err = command.Run(ctx, c)
		return err
	}
	if err := o.underFilter(o.rules(c.Argv), start); errors.Is(err, filter.ErrUnavailable) {
		return out, start()
	} else if err != nil {
		return out, err
	}
	return out, nil
}

// underFilter calls start under the rules and the seccomp filter: see filter.Under.
func (o Options) underFilter(rules landlock.Rules, start func() error) error {
	if o.NoFilter {
		return fmt.Errorf("%w: it was asked to run without", filter.ErrUnavailable)
	}
	return filter.Under(rules, start)
}

// Exec runs a program for the user: one of this host with the caller's own environment
// and the variables that the command sets, or one of the root file system with these variables alone.
func (r *Runtime) Exec(ctx context.Context, command runtime.Command) (int, error) {
	path, err := r.options.find(command.Argv[0])
	if err != nil {
		return 0, err
	}
	argv := append([]string{path}, command.Argv[1:]...)
	var cmd *exec.Cmd
	if r.options.Root == "" {
		cmd = exec.CommandContext(ctx, path, command.Argv[1:]...)
		cmd.Env = override(os.Environ(), command.Env)
	} else if cmd, err = helper(ctx, r.options.toolRequest(namespace.Tool, argv), override(rootEnvironment(), command.Env)); err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.Stdin, command.Stdout, command.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ctx.Err() == nil {
		const signalled = 128 // added to the signal's number, as shells do
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return signalled + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	}
	return 0, r.options.explain(err)
}

// rootEnvironment returns the environment of a user's program in a root file system: that
// of the caller belongs to this host's files.
func rootEnvironment() []string {
	env := append(daemon.Environment(pathVariable("/"), "/tmp", "/tmp"), "HOME=/tmp")
	if terminal, ok := os.LookupEnv("TERM"); ok {
		env = append(env, "TERM="+terminal)
	}
	return env
}

// override returns an environment with variables set, or unset if the value is empty.
func override(env []string, variables map[string]string) []string {
	var list []string
	for _, setting := range env {
		name, _, _ := strings.Cut(setting, "=")
		if _, overridden := variables[name]; !overridden {
			list = append(list, setting)
		}
	}
	for name, value := range variables {
		if value != "" {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// rootMark is the environment variable of a daemon that names its root file system.
const rootMark = "OVS_OFFLINE_ROOT"

// RunningRoot returns the root file system that a replica's daemons run in, "" for this
// host's or if none runs. runDirs is the folder with the daemons' OVS_RUNDIRs. It asks the
// daemons: a file of a workdir that another person made could name any programs.
func RunningRoot(runDirs string) string {
	names, _ := fs.Glob(os.DirFS(runDirs), "*/*.pid") // none if no replica was started
	for _, name := range names {
		pid, held, err := daemon.LockOwner(filepath.Join(runDirs, name))
		if err != nil || !held || pid == 0 {
			continue
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		for setting := range strings.SplitSeq(string(raw), "\x00") {
			if root, ok := strings.CutPrefix(setting, rootMark+"="); ok {
				return root
			}
		}
	}
	return ""
}
