package container

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// stderrToFile runs a daemon with its standard error in a file, because a busy engine
// loses the last output of a container that ends at once.
const stderrToFile = `exec "$@" 2>"$0"`

// stderrOf returns the file for the standard error of d.
func stderrOf(daemon runtime.Daemon) string {
	return strings.TrimSuffix(daemon.Log, ".log") + ".stderr.log"
}

// path is the PATH in a container.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Start starts a daemon in a container of its own and returns when it is ready.
func (r *Runtime) Start(ctx context.Context, d runtime.Daemon) error {
	tools, err := r.needTools(ctx)
	if err != nil {
		return fmt.Errorf("starting %s: %w", d.Role, err)
	}
	if _, held, _ := daemon.LockOwner(daemon.PIDFile(d)); held {
		return fmt.Errorf("%s: %w: a process holds %s", d.Role, runtime.ErrRunning, daemon.PIDFile(d))
	}
	if err := daemon.RemoveLeftovers(d); err != nil {
		return err
	}
	spec := r.spec(d.Role)
	spec.Join = tools
	spec.Env = environment(d.RunDir, filepath.Dir(d.Log))
	spec.Command = append([]string{"bash", "-c", stderrToFile, stderrOf(d),
		d.Program, "--pidfile=" + daemon.PIDFile(d), "--log-file=" + d.Log, "-vconsole:off", "-vsyslog:off"}, d.Args...)
	before := daemon.LogSize(d.Log)
	_, err = r.launch(ctx, spec, d, func() bool { return daemon.Ready(d, before) })
	if err != nil {
		return errors.Join(err, daemon.RemoveLeftovers(d))
	}
	if err := daemon.CheckStart(d, before, func(string) bool { return false }, &r.remarks); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", d.Role, err), r.Stop(context.WithoutCancel(ctx), d))
	}
	return nil
}

func environment(runDir, logDir string) map[string]string {
	env := map[string]string{"HOME": "/tmp"}
	for _, setting := range daemon.Environment(path, runDir, logDir) {
		name, value, _ := strings.Cut(setting, "=")
		env[name] = value
	}
	return env
}
