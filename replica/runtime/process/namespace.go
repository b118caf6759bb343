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

// helper returns the command that runs argv behind package namespace, in
// namespaces of its own if isolated. The command leads a session of its own, so that
// signals of the terminal don't reach it.
func helper(ctx context.Context, isolated bool, env, argv []string) (*exec.Cmd, error) {
	if os.Getenv(launchMark) != "" {
		// Package namespace did not recognise this helper, which would start another
		// helper, and so on.
		return nil, errors.New("this process was started to become a daemon and did not")
	}
	network := namespace.HostNetwork
	attributes := &syscall.SysProcAttr{Setsid: true}
	if isolated {
		// Each ID is mapped to itself: files keep their owner, and root has no privilege outside.
		network = namespace.OwnNetwork
		attributes.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attributes.GidMappingsEnableSetgroups = false
		attributes.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN}
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe") // this very program, even if its file was replaced meanwhile
	cmd.Args = append([]string{namespace.Helper, network}, argv...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = env, "/", attributes
	return cmd, closeOnExec()
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
func probe(ctx context.Context) error {
	l := newLaunch()
	cmd, err := helper(ctx, true, []string{l.variable}, nil)
	if err != nil {
		return err
	}
	output, err := l.run(ctx, cmd)
	if err == nil && strings.TrimSpace(output) != namespace.ProbeAnswer {
		err = errors.New("the helper did not answer")
	}
	if err != nil {
		return fmt.Errorf("a user and network namespace can't be created: %w%s%s", err, daemon.Reason(output), meaning(err))
	}
	return nil
}

// meaning returns the likely cause of an error of the kernel, as an appendix.
func meaning(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return " (the limit user.max_user_namespaces or user.max_net_namespaces is reached)"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return " (the system forbids them: kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, or a container's seccomp profile)"
	}
	return ""
}
