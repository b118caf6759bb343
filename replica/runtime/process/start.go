//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Start starts d and returns when d is ready, as runtime.Runtime says.
func (r *Runtime) Start(ctx context.Context, d runtime.Daemon) error {
	program, err := Find(d.Program)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Role, err)
	}
	if err := checkFree(d); err != nil {
		return err
	}
	if err := daemon.RemoveLeftovers(d); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, daemon.Patience(r.options.StartTimeout, d))
	defer cancel()
	before := daemon.LogSize(d.Log)
	if err := r.launch(ctx, d, program); err != nil {
		err = fmt.Errorf("starting %s: %w", d.Role, err)
		return errors.Join(err, daemon.RemoveLeftovers(d))
	}
	errs, fatal := daemon.ErrorLines(d.Log, before)
	if fatal != "" {
		return errors.Join(fmt.Errorf("starting %s: %s", d.Role, fatal), r.Stop(context.WithoutCancel(ctx), d))
	}
	for _, line := range errs {
		r.remarks.Add(d.Role + " logged while it started: " + line)
	}
	return nil
}

// launch runs program until it has detached itself as a ready daemon.
func (r *Runtime) launch(ctx context.Context, d runtime.Daemon, program string) error {
	isolated, _ := r.Isolated(ctx) // why not is in the remarks by now
	if err := ctx.Err(); err != nil {
		return r.expired(ctx, d)
	}
	l := newLaunch()
	env := append(daemon.Environment(localPath(), d.RunDir, filepath.Dir(d.Log)), l.variable)
	cmd, err := helper(isolated, env, append([]string{program}, arguments(d)...))
	if err != nil {
		return err
	}
	said, err := l.run(ctx, cmd)
	switch {
	case ctx.Err() != nil && err != nil:
		return fmt.Errorf("%w%s", r.expired(ctx, d), reason(said))
	case err != nil:
		return fmt.Errorf("%w%s", err, reason(said))
	}
	if owner, err := daemon.LockOwner(daemon.PIDFile(d)); err != nil || !owner.Held {
		return errors.Join(fmt.Errorf("it detached, but does not hold %s%s", daemon.PIDFile(d), reason(said)), err, l.kill())
	}
	return nil
}

// arguments are d's own and those that make it a daemon of this runtime.
func arguments(d runtime.Daemon) []string {
	own := []string{"--pidfile=" + daemon.PIDFile(d), "--log-file=" + d.Log, "-vconsole:off", "-vsyslog:off", "--detach"}
	return append(own, d.Args...)
}

// expired tells our own bound from the caller's.
func (r *Runtime) expired(ctx context.Context, d runtime.Daemon) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it was not ready within %v: %w", daemon.Patience(r.options.StartTimeout, d), ctx.Err())
	}
	return ctx.Err()
}

// reason is the end of what a daemon printed, without the lines of its log
// that are mere information: the daemons say there why they give up.
func reason(said string) string {
	const most = 3
	var kept []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "|INFO|") {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return ": " + strings.Join(kept[max(0, len(kept)-most):], "; ")
}

// Stop ends d, as runtime.Runtime says. When ctx ends first, d is left to its
// ending, and Stop can be called again.
func (r *Runtime) Stop(ctx context.Context, d runtime.Daemon) error {
	h, err := findHolder(d)
	if err == nil && h.evidence != "" {
		err = r.end(ctx, d, h)
	}
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("stopping %s: %w", d.Role, err)
	}
	if err := killAll(func(pid int) bool { return becomes(pid, d) }); err != nil {
		return fmt.Errorf("stopping %s: %w", d.Role, err)
	}
	if err := checkFree(d); err != nil {
		return fmt.Errorf("after stopping it: %w", err)
	}
	return daemon.RemoveLeftovers(d)
}

// becomes tells whether a process is on its way to be d: one whose starter was
// killed holds no lock yet, and would come up after it was stopped.
func becomes(pid int, d runtime.Daemon) bool {
	return has(pid, "cmdline", "--pidfile="+daemon.PIDFile(d)) && has(pid, "environ", "OVS_RUNDIR="+d.RunDir)
}

// end ends the process that is d and waits until it is gone.
func (r *Runtime) end(ctx context.Context, d runtime.Daemon, h holder) error {
	if h.pid == 0 {
		return fmt.Errorf("%s is held by a process that can't be seen from here", h.evidence)
	}
	p, err := openProcess(h.pid, func() bool {
		now, err := findHolder(d)
		return err == nil && now == h
	})
	if err != nil {
		return err
	}
	defer p.close()
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if err := p.signal(signal); err != nil {
			return err
		}
		if gone, err := p.wait(ctx, r.options.StopTimeout); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not end", h.pid)
}
