//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process/namespace"
)

// launchMark is the environment variable that identifies all processes of one start,
// even after their parent has changed.
const launchMark = "OVS_OFFLINE_LAUNCH"

// helper returns the command of a process of this program that fulfils a request, with
// the namespaces that the request needs.
func helper(ctx context.Context, request namespace.Request, env []string) (*exec.Cmd, error) {
	attributes, err := prepare(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args, cmd.Env, cmd.Dir, cmd.SysProcAttr = request.Words(), env, "/", attributes
	return cmd, nil
}

// self is this very program, even if its file was replaced meanwhile.
const self = "/proc/self/exe"

// prepare returns the attributes of a process for a request. A daemon and a runner
// lead sessions of their own, so that signals of the terminal don't reach them.
func prepare(request namespace.Request) (*syscall.SysProcAttr, error) {
	if os.Getenv(launchMark) != "" {
		// Package namespace did not recognise this helper, which would start another
		// helper, and so on.
		return nil, errors.New("this process was started to become another program and did not")
	}
	attr := &syscall.SysProcAttr{Setsid: request.Becomes != namespace.Tool}
	if request.OwnNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN)
	}
	if request.OwnMounts() {
		attr.Cloneflags |= unix.CLONE_NEWNS
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_SYS_ADMIN)
	}
	if request.OwnNetwork || request.Root != "" && userNamespaces() {
		// Each ID is mapped to itself: files keep their owner, and root has no privilege outside.
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.GidMappingsEnableSetgroups = false
	}
	return attr, closeOnExec()
}

// userNamespaces reports whether a user namespace can be tried. An ordinary user has no
// other way to a mount namespace, but root has.
func userNamespaces() bool { return os.Geteuid() != 0 || allowed("user") }

// allowed reports whether the system's limit allows namespaces of a kind: "user", "net".
func allowed(kind string) bool {
	limit, err := os.ReadFile("/proc/sys/user/max_" + kind + "_namespaces") // missing in a kernel without them
	return err == nil && strings.TrimSpace(string(limit)) != "0"
}

// closeOnExec prevents the programs that this process starts from inheriting the files
// that this process inherited itself. A daemon outlives this process, and would keep
// the pipe of a shell open.
func closeOnExec() error {
	files, err := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}

// probe makes a namespace in the same way as for a daemon, and returns the reason if
// that fails. A simpler test is not enough: some systems forbid the clone, others allow
// it and then forbid operations inside the namespace.
func (o Options) probe(ctx context.Context) error {
	launch := newLaunch()
	request := o.request(namespace.Daemon, ownNetwork, nil)
	request.Root = "" // a folder that was removed is another matter
	cmd, err := helper(ctx, request, []string{launch.variable})
	if err != nil {
		return err
	}
	output, err := launch.run(ctx, cmd)
	if err == nil && strings.TrimSpace(output) != namespace.ProbeAnswer {
		err = errors.New("the helper did not answer")
	}
	if err != nil {
		return fmt.Errorf("a user and network namespace can't be created: %w%s%s", err, daemon.Reason(output), causeOf(err))
	}
	return nil
}

// causeOf returns the likely cause of an error of the kernel, as an appendix.
func causeOf(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return " (the limit user.max_user_namespaces or user.max_net_namespaces is reached)"
	case errors.Is(err, unix.ENOSYS):
		return " (the kernel has none, or a container's seccomp profile forbids them)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return " (the system forbids them: kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp profile)"
	}
	return ""
}
