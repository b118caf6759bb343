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

// Start starts d and returns when d is ready.
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
	ctx, cancel := context.WithTimeout(ctx, daemon.StartTimeout(r.options.StartTimeout, d))
	defer cancel()
	before := daemon.LogSize(d.Log)
	if err := r.launch(ctx, d, program); err != nil {
		err = fmt.Errorf("starting %s: %w", d.Role, err)
		return errors.Join(err, daemon.RemoveLeftovers(d))
	}
	if err := daemon.CheckStart(d, before, &r.remarks); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", d.Role, err), r.Stop(context.WithoutCancel(ctx), d))
	}
	return nil
}

// launch runs program until it has detached itself as a ready daemon.
func (r *Runtime) launch(ctx context.Context, d runtime.Daemon, program string) error {
	isolated, _ := r.Isolated(ctx) // the reason is among the remarks
	if ctx.Err() != nil {
		return r.ended(ctx, d)
	}
	l := newLaunch()
	env := append(daemon.Environment(localPath(), d.RunDir, filepath.Dir(d.Log)), l.variable)
	argv := append([]string{program, "--pidfile=" + daemon.PIDFile(d), "--log-file=" + d.Log, "-vconsole:off", "-vsyslog:off", "--detach"}, d.Args...)
	cmd, err := helper(isolated, env, argv)
	if err != nil {
		return err
	}
	output, err := l.run(ctx, cmd)
	if err != nil && ctx.Err() != nil {
		err = r.ended(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, reason(output))
	}
	if owner, err := daemon.LockOwner(daemon.PIDFile(d)); err != nil || !owner.Held {
		return errors.Join(fmt.Errorf("it detached, but does not hold %s%s", daemon.PIDFile(d), reason(output)), err, l.kill())
	}
	return nil
}

// ended returns the error of a context that ended while d started. It names the
// timeout where that is the cause.
func (r *Runtime) ended(ctx context.Context, d runtime.Daemon) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it was not ready within %v: %w", daemon.StartTimeout(r.options.StartTimeout, d), ctx.Err())
	}
	return ctx.Err()
}

// reason returns the last lines that a daemon printed, as an appendix: they say why
// it failed. Log lines of level INFO are left out.
func reason(output string) string {
	const maxLines = 3
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "|INFO|") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ": " + strings.Join(lines[max(0, len(lines)-maxLines):], "; ")
}

// Stop stops d. When ctx ends first, d keeps ending, and Stop can be called again.
func (r *Runtime) Stop(ctx context.Context, d runtime.Daemon) error {
	h, err := findHolder(d)
	if err == nil && h.evidence != "" {
		err = r.end(ctx, d, h)
	}
	if err == nil || errors.Is(err, errGone) {
		err = killAll(func(pid int) bool { return becomes(pid, d) })
	}
	if err != nil {
		return fmt.Errorf("stopping %s: %w", d.Role, err)
	}
	if err := checkFree(d); err != nil {
		return fmt.Errorf("after stopping it: %w", err)
	}
	return daemon.RemoveLeftovers(d)
}

// becomes reports whether a process is about to become d: one whose starter was
// killed has no lock yet, and would start after d was stopped.
func becomes(pid int, d runtime.Daemon) bool {
	return has(pid, "cmdline", "--pidfile="+daemon.PIDFile(d)) && has(pid, "environ", "OVS_RUNDIR="+d.RunDir)
}

// end ends the process of d and waits until it has ended.
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
		if ended, err := p.wait(ctx, r.options.StopTimeout); ended || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d does not end", h.pid)
}
