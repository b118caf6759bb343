//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/replica/runtime/process/landlock"
	"ovs-offline/replica/runtime/process/namespace"
)

// Start starts the daemon and returns when it is ready.
func (r *Runtime) Start(ctx context.Context, d runtime.Daemon) error {
	program, err := r.options.find(d.Program)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Role, err)
	}
	if err := checkFree(d); err != nil {
		return err
	}
	if err := daemon.RemoveLeftovers(d); err != nil {
		return err
	}
	ctx, cancel := daemon.StartContext(ctx, r.options.StartTimeout, d)
	defer cancel()
	if landlock.Version() == 0 && r.options.Root == "" {
		r.remarks.Add(noLandlock)
	}
	before := daemon.LogSize(d.Log)
	if err := r.launch(ctx, d, program); err != nil {
		err = fmt.Errorf("starting %s: %w", d.Role, err)
		return errors.Join(err, daemon.RemoveLeftovers(d))
	}
	if err := daemon.CheckStart(d, before, r.isExpected, &r.remarks); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", d.Role, err), r.Stop(context.WithoutCancel(ctx), d))
	}
	return nil
}

// noLandlock is what start says of a kernel that has no Landlock.
const noLandlock = "this kernel has no Landlock (landlock(7)), or it is not in use: where daemons have no namespaces either, one that is taken over " +
	"could read and write the files of its user, and everywhere signal the processes of its user"

// launch runs program until it has detached itself as a ready daemon, in namespaces
// where the system allows them, else under the seccomp filter.
func (r *Runtime) launch(ctx context.Context, daemon runtime.Daemon, program string) error {
	how, known := r.firstIsolation(ctx)
	err := r.launchIn(ctx, daemon, program, how)
	if known || ctx.Err() != nil {
		return err
	}
	if err == nil {
		r.foundNamespaces()
		return nil
	}
	if how, _ = r.findIsolation(ctx); how == ownNetwork {
		return err
	}
	return r.launchIn(ctx, daemon, program, how)
}

func (r *Runtime) launchIn(ctx context.Context, d runtime.Daemon, program string, how isolation) error {
	launch := newLaunch()
	env := append(daemon.Environment(pathVariable(r.options.Root), d.RunDir, filepath.Dir(d.Log)), launch.variable, rootMark+"="+r.options.Root)
	argv := append([]string{program, "--pidfile=" + daemon.PIDFile(d), "--log-file=" + d.Log, "-vconsole:off", "-vsyslog:off", "--detach"}, d.Args...)
	request := r.options.request(namespace.Daemon, how, argv)
	if request.Root == "" && d.Program == "ovsdb-server" {
		request.Uses = []string{"/tmp"} // it keeps a nameless file there (tmpfile in main of ovsdb/ovsdb-server.c)
	}
	cmd, err := helper(ctx, request, env)
	if err != nil {
		return err
	}
	output, err := launch.run(ctx, cmd)
	if err != nil && ctx.Err() != nil {
		err = daemon.StartEnded(ctx)
	}
	err = r.options.explain(err)
	if err != nil {
		return fmt.Errorf("%w%s", err, daemon.Reason(output))
	}
	if _, held, err := daemon.LockOwner(daemon.PIDFile(d)); !held {
		return errors.Join(fmt.Errorf("%w: it detached, but does not hold %s%s", runtime.ErrEnded, daemon.PIDFile(d), daemon.Reason(output)), err, launch.kill())
	}
	return nil
}

// Stop stops the daemon. If ctx ends first, the daemon still ends, and Stop can be called again. It looks again after
// it has ended all that it found: the parent of a daemon that is just starting ends when its child holds the lock,
// and a child that was forked after killAll has listed the processes is not in that list.
func (r *Runtime) Stop(ctx context.Context, d runtime.Daemon) error {
	const rounds = 3
	var err error
	for range rounds {
		if err := r.endAll(ctx, d); err != nil {
			return fmt.Errorf("stopping %s: %w", d.Role, err)
		}
		if err = checkFree(d); err == nil {
			return daemon.RemoveLeftovers(d)
		}
	}
	return fmt.Errorf("after stopping it: %w", err)
}

// endAll ends the process of the daemon, if it runs, and those that are about to become the daemon.
func (r *Runtime) endAll(ctx context.Context, d runtime.Daemon) error {
	holder, err := findHolder(d)
	if err == nil && holder.evidence != "" {
		err = r.end(ctx, d, holder)
	}
	if err != nil {
		return err
	}
	return killAll(func(pid int) bool { return becomes(pid, d) })
}

// becomes reports whether a process is about to become d. If its parent was killed,
// such a process does not hold the lock yet, and would become the daemon after Stop has
// returned.
func becomes(pid int, d runtime.Daemon) bool {
	return has(pid, "cmdline", "--pidfile="+daemon.PIDFile(d)) && has(pid, "environ", "OVS_RUNDIR="+d.RunDir)
}

// end ends the process that holds the daemon's files, and waits until it has ended.
func (r *Runtime) end(ctx context.Context, daemon runtime.Daemon, h holder) error {
	if h.pid == 0 {
		return fmt.Errorf("%s is held by a process that can't be seen from here", h.evidence)
	}
	same := func() bool {
		now, err := findHolder(daemon)
		return err == nil && now == h
	}
	ended, err := end(ctx, h.pid, same, r.options.StopTimeout, unix.SIGTERM, unix.SIGKILL)
	if err != nil || ended {
		return err
	}
	return fmt.Errorf("process %d does not end", h.pid)
}
