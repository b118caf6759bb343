package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
	"ovs-offline/workdir"
)

// Replicas of workdirs in one folder share the ovsdb-server of an OVN database that is
// the same file in each: a server takes about five times the size of its file.
//
// The server runs in a home of its own beside the workdirs. A replica that uses it has
// hard links to the server's pid file, sockets and log, at the paths at which a server of
// its own would have them, so tools, wrappers and status need not know. A link to a
// socket leads to its server from every mount namespace too. The kernel counts the links
// of the pid file, whatever happens to the processes that make them: a server whose pid
// file has no link besides that in its home is not in use, and the next stop or start in
// the folder ends it.

// errNoLinks is wrapped where the file system has no hard links.
var errNoLinks = errors.New("no links to its files can be made")

// useShared makes the replica use the shared server of a database, which it starts if it
// does not run. The home is nil if the database is not shared.
func (s *starter) useShared(ctx context.Context, kind workdir.Kind) (home *workdir.Dir, err error) {
	sharer, can := s.rt.(runtime.Sharer)
	digest := s.opts.Shared[kind]
	if !can || digest == "" {
		return nil, nil
	}
	// A process that runs tools in an image sees only folders that exist when it starts.
	if err := makeFolders(s.wd.Run(), s.wd.VarRun(kind), filepath.Dir(s.wd.Log(""))); err != nil {
		return nil, err
	}
	home, err = workdir.LockHome(ctx, s.wd.Home(kind, digest, s.rt.Root()))
	if err != nil {
		return nil, fmt.Errorf("the shared %s database: %w", kind.Title(), err)
	}
	defer home.Unlock()
	noticed, err := s.needShared(ctx, kind, home, sharer)
	if err == nil {
		err = link(home, s.wd, kind)
	}
	if errors.Is(err, errNoLinks) {
		s.report.Remark(fmt.Sprintf("%s database: this replica has a server of its own: %v", kind.Title(), err))
		return nil, errors.Join(unlink(s.wd, kind), endIfUnused(ctx, kind, home, sharer))
	}
	if err != nil {
		return nil, err
	}
	for _, remark := range noticed.Remarks {
		s.report.Remark(remark)
	}
	return home, nil
}

// needShared starts the server in a home unless it runs, and returns what was noticed
// when it was started.
func (s *starter) needShared(ctx context.Context, kind workdir.Kind, home *workdir.Dir, sharer runtime.Sharer) (*report.Report, error) {
	rt := sharer.At(home.RuntimeFolders())
	defer func() { _ = rt.End(context.WithoutCancel(ctx)) }() // a process that runs tools
	state, err := rt.State(ctx, server(home, kind))
	if err != nil {
		return nil, err
	}
	if state.Running {
		if noticed, err := Report(home); err == nil {
			if isChanged(home, kind) {
				noticed.Remark(kind.Title() + " database: a tool has changed it since its server was started, which other replicas use: stop them all to reset it")
			}
			return noticed, nil
		}
	}
	if err := endShared(ctx, rt, home, kind); err != nil { // what a killed start left
		return nil, err
	}
	noticed := report.New()
	if err := s.startIn(ctx, kind, location{home, rt, noticed.Remark}); err != nil {
		return nil, errors.Join(err, endShared(context.WithoutCancel(ctx), rt, home, kind))
	}
	for _, remark := range rt.Remarks() {
		noticed.Remark(remark)
	}
	return noticed, workdir.WriteUnsynced(home.ReportFile(), noticed)
}

func endIfUnused(ctx context.Context, kind workdir.Kind, home *workdir.Dir, sharer runtime.Sharer) error {
	if links(home, kind) > 1 {
		return nil
	}
	return endShared(ctx, sharer.At(home.RuntimeFolders()), home, kind)
}

// isChanged reports whether the database in a home was changed since its server was
// started, which wrote its pid file then.
func isChanged(home *workdir.Dir, kind workdir.Kind) bool {
	database, err := os.Stat(home.WorkingCopy(kind))
	started, errStarted := os.Stat(daemon.PIDFile(server(home, kind)))
	return err == nil && errStarted == nil && database.ModTime().After(started.ModTime())
}

// endShared ends the server in a home and removes its files.
func endShared(ctx context.Context, rt runtime.Runtime, home *workdir.Dir, kind workdir.Kind) error {
	if err := rt.Stop(ctx, server(home, kind)); err != nil {
		return err
	}
	removeRuntimeFiles(home)
	return nil
}

// link links the files of the server in a home to the files of a replica. The pid file comes
// first: with it, the server is in use.
func link(home, wd *workdir.Dir, kind workdir.Kind) error {
	from, to := server(home, kind), server(wd, kind)
	sockets := append(daemon.ControlSockets(from), home.Socket(kind))
	pairs := [][2]string{{daemon.PIDFile(from), daemon.PIDFile(to)}, {from.Log, to.Log}}
	for _, path := range sockets {
		pairs = append(pairs, [2]string{path, filepath.Join(to.RunDir, filepath.Base(path))})
	}
	for _, pair := range pairs {
		if err := os.Link(pair[0], pair[1]); err != nil {
			return fmt.Errorf("%w: %w", errNoLinks, err)
		}
	}
	return nil
}

// unlink removes a replica's links to the files of a shared server, the pid file last.
func unlink(wd *workdir.Dir, kind workdir.Kind) error {
	d := server(wd, kind)
	var failed []error
	for _, path := range append(daemon.ControlSockets(d), wd.Socket(kind), d.Log, daemon.PIDFile(d)) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// links returns the number of links to the pid file of the database server of a replica
// or a home, 0 without one. A server with more than one is shared.
func links(wd *workdir.Dir, kind workdir.Kind) int {
	info, err := os.Lstat(daemon.PIDFile(server(wd, kind)))
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return int(info.Sys().(*syscall.Stat_t).Nlink)
}

// sameServer reports whether a replica uses the shared server in a home.
func sameServer(wd, home *workdir.Dir, kind workdir.Kind) bool {
	ours, err := os.Lstat(daemon.PIDFile(server(wd, kind)))
	if err != nil {
		return false
	}
	theirs, err := os.Lstat(daemon.PIDFile(server(home, kind)))
	return err == nil && os.SameFile(ours, theirs)
}

// leaveShared makes a replica use no shared server any more. The servers go on running.
func leaveShared(wd *workdir.Dir) error {
	var failed []error
	for _, kind := range workdir.Kinds() {
		if kind != workdir.OVS && links(wd, kind) > 1 {
			failed = append(failed, unlink(wd, kind))
		}
	}
	return errors.Join(failed...)
}

// EndUnused ends the shared servers of a folder that no replica uses: workdir.SharedIn
// returns the folder of their homes. It waits while another start or stop uses a home.
func EndUnused(ctx context.Context, shared string, rts ...runtime.Runtime) error {
	var failed []error
	for _, rt := range rts {
		sharer, can := rt.(runtime.Sharer)
		if !can {
			continue
		}
		for path, kind := range workdir.Homes(shared) {
			failed = append(failed, endUnused(ctx, sharer, path, kind))
		}
	}
	if len(workdir.Homes(shared)) == 0 {
		os.Remove(shared) // fails if another command has made a home since, or it never existed
	}
	return errors.Join(failed...)
}

func endUnused(ctx context.Context, sharer runtime.Sharer, path string, kind workdir.Kind) error {
	home, err := workdir.LockHome(ctx, path)
	if err != nil {
		return fmt.Errorf("a shared database server: %w", err)
	}
	defer home.Unlock()
	if err := endIfUnused(ctx, kind, home, sharer); err != nil {
		return err
	}
	home.RemoveIfEmpty() // it is not if the server runs
	return nil
}

// sharedLogicalFlows returns the result of check for the database of a shared server,
// which is asked once for all replicas that use it.
func sharedLogicalFlows(ctx context.Context, home *workdir.Dir, check func() (*report.LogicalFlows, error)) (*report.LogicalFlows, error) {
	locked, err := workdir.LockHome(ctx, home.Path())
	if err != nil {
		return nil, err
	}
	defer locked.Unlock()
	noticed, err := Report(locked)
	if err != nil {
		return check()
	}
	if noticed.LogicalFlows == nil {
		if noticed.LogicalFlows, err = check(); err != nil || noticed.LogicalFlows == nil {
			return nil, err
		}
		if err := workdir.WriteUnsynced(locked.ReportFile(), noticed); err != nil {
			return nil, err
		}
	}
	return noticed.LogicalFlows, nil
}
