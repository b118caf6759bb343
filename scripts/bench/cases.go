package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

const (
	capture  = "testdata/captures/ovn-openstack-compute"
	sbSchema = "/usr/share/ovn/ovn-sb.ovsschema"
)

func (s sizes) cases() []bench {
	list := []bench{s.version(), s.smallStart(), s.runtimes(), s.tools(), s.trace(), s.reach()}
	if s.image != "" {
		list = append(list, s.pods())
	}
	for _, megabytes := range s.archives {
		list = append(list, s.collect(megabytes, false), s.collect(megabytes, true), s.collectFolder(megabytes))
	}
	for _, n := range s.flows {
		list = append(list, s.flowsStart(n))
	}
	for _, megabytes := range s.databases {
		list = append(list, s.databaseStart(megabytes, false), s.databaseStart(megabytes, true), s.complete(megabytes))
	}
	return list
}

func (s sizes) path(parts ...string) string {
	return filepath.Join(append([]string{s.scratch}, parts...)...)
}

func (s sizes) ours(wd string, words ...string) command {
	return command{argv: append([]string{s.program}, words...), env: []string{"OVS_DBG_WORKDIR=" + wd}}
}

// do runs a command that is not measured.
func do(ctx context.Context, words ...string) error {
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", words, err, out)
	}
	return nil
}

func (s sizes) stop(wd string) func(context.Context) error {
	return func(ctx context.Context) error { return do(ctx, s.program, "-w", wd, "stop") }
}

func captured() (string, error) {
	found, err := filepath.Glob(filepath.Join(capture, "sosreport-*.tar.xz"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s holds %d reports", capture, len(found))
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(found[0])
}

// collectCapture collects the bundled capture into a workdir.
func (s sizes) collectCapture(ctx context.Context, wd, how string) error {
	report, err := captured()
	if err != nil {
		return err
	}
	return do(ctx, s.program, "-w", wd, how, report)
}

// version measures the program's own start.
func (s sizes) version() bench {
	return bench{
		name:    "ovs-offline --version",
		targets: []target{duration("ovs-offline --version", "ovs-offline --version", 20)},
		ways:    []way{s.ownStart()},
	}
}

// ownStart returns the way that only starts the program.
func (s sizes) ownStart() way {
	return way{name: "ovs-offline --version", steps: func() []step { return []step{{argv(s.program, "--version")}} }}
}

// smallStart compares start with the time that its daemons need by themselves.
func (s sizes) smallStart() bench {
	wd, bare := s.path("small"), s.path("bare")
	server := func(name, db string) command {
		return command{argv: []string{"ovsdb-server", filepath.Join(bare, name, db), "--remote=punix:" + filepath.Join(bare, name, "db.sock"), "--pidfile", "--detach", "--no-chdir",
			"--log-file=" + filepath.Join(bare, name, "log"), "-vconsole:off", "-vsyslog:off"}, env: []string{"OVS_RUNDIR=" + filepath.Join(bare, name)}}
	}
	databases := map[string]string{"ovs": "conf.db", "ovn_nb": "ovnnb_db.db", "ovn_sb": "ovnsb_db.db", "recorded": "conf.db"}
	return bench{
		name: "start, small capture",
		prepare: func(ctx context.Context) error {
			if err := s.collectCapture(ctx, wd, "collect-sos"); err != nil {
				return err
			}
			// The daemons get the working copies.
			if err := do(ctx, s.program, "-w", wd, "start"); err != nil {
				return err
			}
			for name, db := range databases {
				if err := errors.Join(os.MkdirAll(filepath.Join(bare, name), 0o700), copyFile(filepath.Join(wd, "run", name, db), filepath.Join(bare, name, db))); err != nil {
					return err
				}
			}
			return do(ctx, s.program, "-w", wd, "stop")
		},
		targets: []target{over("start of a small capture, over the daemons' own time", "start", "its five daemons", 120)},
		ways: []way{
			{name: "start", steps: func() []step { return []step{{s.ours(wd, "start")}} }, after: s.stop(wd), daemons: []string{filepath.Join(wd, "var-run")}},
			{name: "its five daemons", daemons: []string{bare}, steps: func() []step {
				var steps []step
				for name, db := range databases {
					steps = append(steps, step{server(name, db)})
				}
				ovs := filepath.Join(bare, "ovs")
				return append(steps, step{{argv: []string{"ovs-vswitchd", "--enable-dummy=system", "--pidfile", "--detach", "--no-chdir", "--log-file=" + filepath.Join(ovs, "vswitchd.log"),
					"-vconsole:off", "-vsyslog:off", "unix:" + filepath.Join(ovs, "db.sock")}, env: []string{"OVS_RUNDIR=" + ovs}}})
			}, after: func(context.Context) error { return endDaemons(bare) }},
			{name: "fixed sleeps, as before", once: true, steps: func() []step { return []step{{argv("sleep", "17")}} }},
		},
		finish: func(ctx context.Context) error { return errors.Join(endDaemons(bare), s.stop(wd)(ctx)) },
	}
}

// tools compares show, status and a wrapper with the bare tools.
func (s sizes) tools() bench {
	wd := s.path("tools")
	return bench{
		name: "show, status, and a tool's wrapper",
		prepare: func(ctx context.Context) error {
			if err := s.collectCapture(ctx, wd, "collect-sos"); err != nil {
				return err
			}
			return do(ctx, s.program, "-w", wd, "start")
		},
		ways: []way{
			{name: "wrapper of ovs-vsctl", steps: func() []step { return []step{{argv(filepath.Join(wd, "bin", "ovs-vsctl"), "show")}} }},
			{name: "ovs-vsctl", steps: func() []step {
				return []step{{argv("ovs-vsctl", "--db=unix:"+filepath.Join(wd, "var-run/ovs/db.sock"), "show")}}
			}},
			{name: "show", steps: func() []step { return []step{{s.ours(wd, "show")}} }},
			{name: "status", steps: func() []step { return []step{{s.ours(wd, "status")}} }},
			{name: "ovs-appctl version", steps: func() []step {
				return []step{{command{argv: []string{"ovs-appctl", "version"}, env: []string{"OVS_RUNDIR=" + filepath.Join(wd, "var-run/ovs")}}}}
			}},
		},
		targets: []target{
			over("a wrapper, over its tool", "wrapper of ovs-vsctl", "ovs-vsctl", 50),
			over("show, over ovs-vsctl", "show", "ovs-vsctl", 50),
			over("status, over ovs-appctl", "status", "ovs-appctl version", 50),
		},
		finish: s.stop(wd),
	}
}

// collect compares collecting from an archive with reading the whole archive.
func (s sizes) collect(megabytes int, blocks bool) bench {
	name, threads := "one block", "-T1"
	if blocks {
		name, threads = "many blocks", "-T0"
	}
	archive, wd := s.path(fmt.Sprintf("report-%d%s.tar.xz", megabytes, threads)), s.path("collected")
	const ours = "collect-sos"
	ways := []way{
		{name: ours, steps: func() []step { return []step{{s.ours(wd, "collect-sos", archive)}} },
			after: func(context.Context) error { return os.RemoveAll(wd) }},
		{name: "xz -dc | tar -t", steps: func() []step { return []step{{argv("xz", "-dc", archive), argv("tar", "-t")}} }},
		{name: "several passes, as before", once: true, steps: func() []step { return s.severalPasses(archive) },
			after: func(context.Context) error { return os.RemoveAll(s.path("extracted")) }},
	}
	title := fmt.Sprintf("collect, %d MB report, xz of %s", megabytes, name)
	targets := []target{
		ratio(title+": CPU", cpu, ours, "xz -dc | tar -t", 1.2), ratio(title+": wall", wall, ours, "xz -dc | tar -t", 1.1),
		memory(title+": memory with xz", together, ours, 128),
	}
	if blocks {
		ways[1] = way{name: "xz -T0 -dc", steps: func() []step { return []step{{argv("xz", "-T0", "-dc", archive)}} }}
		targets = append(targets[2:], ratio(title+": wall", wall, ours, "xz -T0 -dc", 1.15))
	}
	return bench{
		name: title, kind: "collect, xz of " + name, size: megabytes, targets: targets,
		prepare: func(ctx context.Context) error { return s.makeReport(ctx, megabytes, threads, archive) },
		ways:    ways,
	}
}

// severalPasses reads a report in several passes, as the program that ovs-offline
// replaces does: it lists the archive and then extracts one kind of file after the
// other.
func (s sizes) severalPasses(archive string) []step {
	to := s.path("extracted")
	_ = os.MkdirAll(to, 0o700) // tar reports an error
	steps := []step{{argv("xz", "-dc", archive), argv("tar", "-t")}}
	for _, what := range []string{"*sos_commands/openvswitch/*", "*conf.db", "*ovn?b_db.db"} {
		steps = append(steps, step{argv("xz", "-dc", archive), argv("tar", "-C", to, "-x", "--wildcards", what)})
	}
	return steps
}

func (s sizes) makeReport(ctx context.Context, megabytes int, threads, archive string) error {
	folder := s.path(fmt.Sprintf("report-%d", megabytes))
	if _, err := os.Stat(folder); err != nil {
		if err := s.makeFolder(ctx, megabytes, folder); err != nil {
			return err
		}
	}
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	tar := exec.CommandContext(ctx, "tar", "-C", folder, "-c", ".")
	xz := exec.CommandContext(ctx, "xz", "-1", threads)
	if xz.Stdin, err = tar.StdoutPipe(); err != nil {
		return err
	}
	xz.Stdout = f
	if err := errors.Join(tar.Start(), xz.Start()); err != nil {
		return err
	}
	return errors.Join(xz.Wait(), tar.Wait())
}

// makeFolder adds logs to a report. sos limits files to 25 MB each.
func (s sizes) makeFolder(ctx context.Context, megabytes int, folder string) error {
	report, err := captured()
	if err != nil {
		return err
	}
	logs := filepath.Join(folder, "sosreport", "var/log")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return err
	}
	if err := do(ctx, "tar", "-C", filepath.Join(folder, "sosreport"), "--strip-components=1", "-xf", report); err != nil {
		return err
	}
	for i := 0; megabytes > 0; i++ {
		size := min(megabytes, 25)
		err := create(filepath.Join(logs, "messages-"+strconv.Itoa(i)), func(w io.Writer) error { return writeLog(w, uint64(i), int64(size)<<20) })
		if err != nil {
			return err
		}
		megabytes -= size
	}
	return nil
}

// collectFolder compares collecting from an extracted report with the program's own
// start and with copying the same files.
func (s sizes) collectFolder(megabytes int) bench {
	folder, wd, to := s.path(fmt.Sprintf("report-%d", megabytes), "sosreport"), s.path("collected"), s.path("copied")
	title := fmt.Sprintf("collect, %d MB report, extracted", megabytes)
	return bench{
		name: title, kind: "collect, extracted", size: megabytes,
		targets: []target{over(title+", over the program's own start", "collect-sos", "ovs-offline --version", 30)},
		ways: []way{
			{name: "collect-sos", steps: func() []step { return []step{{s.ours(wd, "collect-sos", folder)}} }, after: func(context.Context) error { return os.RemoveAll(wd) }},
			s.ownStart(),
			{name: "copying the same files", steps: func() []step {
				_ = os.MkdirAll(to, 0o700) // cp reports an error
				return []step{{argv("cp", "-r", filepath.Join(folder, "sos_commands/openvswitch"), filepath.Join(folder, "var/lib"), to)}}
			}, after: func(context.Context) error { return os.RemoveAll(to) }},
		},
	}
}

// flowsStart compares the restore of many flows with one ovs-ofctl that adds them in
// a bundle and one that dumps them, the least that a restore with a check can do.
func (s sizes) flowsStart(count int) bench {
	wd, empty, plain := s.path("flows"), s.path("noflows"), s.path("flows.txt")
	daemons := []string{filepath.Join(wd, "var-run/ovs")}
	ovs := filepath.Join(wd, "var-run/ovs")
	flows := filepath.Join(wd, "restore_flows/br-int.flows.dump")
	title := fmt.Sprintf("start, %d flows", count)
	const bundle, dump = "ovs-ofctl, in a bundle", "ovs-ofctl dump-flows"
	clear := func(ctx context.Context) error {
		c := s.ofctl(ovs, "del-flows", "br-int")
		return step{c}.run(ctx, &sample{})
	}
	return bench{
		name: title, kind: "start, flows", size: count,
		targets: []target{
			beyond(title+": restoring them, against one bundle and one dump-flows", "start", "start without flows", 0.95, bundle, dump),
			memory(title+": peak memory", peak, "start", 128),
		},
		prepare: func(ctx context.Context) error {
			if err := errors.Join(os.RemoveAll(wd), os.RemoveAll(empty), s.collectCapture(ctx, wd, "collect-sos-ovs"), s.collectCapture(ctx, empty, "collect-sos-ovs")); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(empty, "restore_flows/br-int.flows.dump"), nil, 0o600); err != nil {
				return err
			}
			// Other dumps describe the capture's own flows.
			other, err := filepath.Glob(filepath.Join(wd, "recorded/bridges/br-int/*flows*"))
			for _, path := range other {
				err = errors.Join(err, os.Remove(path))
			}
			if err != nil {
				return err
			}
			return create(plain, func(p io.Writer) error {
				return create(flows+".new", func(d io.Writer) error { return writeFlows(flows, count, d, p) })
			})
		},
		ways: []way{
			{name: "start", steps: func() []step {
				_ = os.Rename(flows+".new", flows) // exists in the first round only
				return []step{{s.ours(wd, "start")}}
			}, before: s.stop(wd), daemons: daemons},
			{name: "start without flows", steps: func() []step { return []step{{s.ours(empty, "start")}} }, after: s.stop(empty), daemons: []string{filepath.Join(empty, "var-run/ovs")}},
			{name: bundle, before: clear, daemons: daemons, steps: func() []step { return []step{{s.ofctl(ovs, "--bundle", "add-flows", "br-int", plain)}} }},
			{name: "ovs-ofctl, one by one", once: true, before: clear, daemons: daemons, steps: func() []step { return []step{{s.ofctl(ovs, "add-flows", "br-int", plain)}} }},
			{name: dump, daemons: daemons, steps: func() []step { return []step{{s.ofctl(ovs, "dump-flows", "br-int")}} }},
		},
		finish: s.stop(wd),
	}
}

func (s sizes) ofctl(rundir string, words ...string) command {
	return command{argv: append([]string{"ovs-ofctl", "-O", "OpenFlow15"}, words...), env: []string{"OVS_RUNDIR=" + rundir}}
}

// databaseStart compares a start with a large database with an ovsdb-server that
// loads it.
func (s sizes) databaseStart(megabytes int, clustered bool) bench {
	wd, bare := s.path("database"), s.path("served")
	source, copied := s.path("sb.db"), filepath.Join(bare, "sb.db")
	form := "standalone"
	if clustered {
		form = "clustered"
	}
	title := fmt.Sprintf("start, %d MB southbound database, %s", megabytes, form)
	const loading = "ovsdb-server loading it"
	return bench{
		name: title, kind: "start, southbound database, " + form, size: megabytes,
		targets: []target{ratio(title+": wall", wall, "start", loading, 1.1)},
		prepare: func(ctx context.Context) error {
			if err := errors.Join(os.RemoveAll(wd), os.RemoveAll(source), os.MkdirAll(bare, 0o700)); err != nil {
				return err
			}
			err := create(source, func(w io.Writer) error { return writeDatabase(w, sbSchema, int64(megabytes)<<20) })
			if err == nil && clustered {
				err = errors.Join(os.Rename(source, source+".alone"), do(ctx, "ovsdb-tool", "create-cluster", source, source+".alone", "tcp:127.0.0.1:6644"))
			}
			if err != nil {
				return err
			}
			return do(ctx, s.program, "-w", wd, "collect-db-ovn-sb", source)
		},
		ways: []way{
			{name: "start", steps: func() []step { return []step{{s.ours(wd, "start")}} }, after: s.stop(wd), daemons: []string{filepath.Join(wd, "var-run")}},
			{name: loading, daemons: []string{bare}, before: func(context.Context) error {
				_ = os.Remove(copied) // ovsdb-tool makes a new one
				if clustered {
					return nil
				}
				return copyFile(source, copied)
			}, steps: func() []step {
				var first []step
				if clustered {
					first = []step{{argv("ovsdb-tool", "cluster-to-standalone", copied, source)}}
				}
				return append(first, step{{argv: []string{"ovsdb-server", copied, "--remote=punix:" + filepath.Join(bare, "db.sock"), "--pidfile", "--detach", "--no-chdir",
					"--log-file=" + filepath.Join(bare, "log"), "-vconsole:off", "-vsyslog:off"}, env: []string{"OVS_RUNDIR=" + bare}}})
			}, after: func(context.Context) error { return endDaemons(bare) }},
		},
		finish: func(context.Context) error { return endDaemons(bare) },
	}
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return create(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}
