// Package logicalflows finds the logical flows of an OVN SB database that an ovn-trace
// can't parse. ovn-trace leaves such flows out, so that a packet meets another flow, or
// ends in a stage without one: an ovn-trace that is older than the node's OVN answers
// wrongly, with exit code 0.
//
// Only ovn-trace itself knows what it can parse. It parses all logical flows when it has
// read the database, and logs a warning with the text of each one that it can't parse. So
// Unparsed lets an ovn-trace read the database over a connection on which each text ends
// in a comment with the flow's UUID.
package logicalflows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/unixctl"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/replica/runtime/daemon"
)

// Program is the program that parses the flows, and the role of its process.
const Program = "ovn-trace"

// Tracer returns the process of ovn-trace that Find starts, so that a caller can stop
// one that a killed Find left. folder is the folder for its files.
func Tracer(folder string) runtime.Daemon {
	return runtime.Daemon{Role: Program, Program: Program, RunDir: folder, Log: filepath.Join(folder, Program+".log")}
}

// Find returns the logical flows that the runtime's ovn-trace can't parse in the SB database
// whose server listens at socket; nil if the runtime has no ovn-trace. A flow of a group of datapaths
// is parsed once, for the first datapath of its group. folder is made for the
// duration of the call.
func Find(ctx context.Context, rt runtime.Runtime, socket, folder string) (*report.LogicalFlows, error) {
	defer logging.Timed(ctx, "parse logical flows", "socket", socket)()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	daemon := Tracer(folder)
	total, err := read(ctx, rt, daemon, socket)
	err = errors.Join(err, end(context.WithoutCancel(ctx), rt, daemon))
	if errors.Is(err, runtime.ErrNotInstalled) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	warnings, err := readLog(daemon.Log)
	if err != nil || len(warnings) == 0 {
		return &report.LogicalFlows{Total: total}, err
	}
	return byStage(ctx, socket, total, warnings)
}

// read lets an ovn-trace read the database, and returns the number of logical flows.
// ovn-trace detaches itself once it has parsed them. It listens for the database, so that
// it can be prepared before it reads: releases from 26.03 on limit the rate of the
// warnings.
func read(ctx context.Context, rt runtime.Runtime, daemon runtime.Daemon, socket string) (total int, err error) {
	database := filepath.Join(daemon.RunDir, "database.sock")
	connected, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(connected)
	group.Go(func() error {
		defer cancel() // it has read the database, or never will
		_, err := rt.Tool(ctx, daemon.RunDir, nil, daemon.Program, "--db=punix:"+database, "--detach", "--no-chdir",
			"--pidfile="+filepath.Join(daemon.RunDir, daemon.Program+".pid"), "--log-file="+daemon.Log, "-vconsole:off", "-vsyslog:off", "-vfile:warn")
		return err
	})
	group.Go(func() error {
		if err := disableRateLimit(ctx, daemon); err != nil {
			return unlessEnded(ctx, err)
		}
		total, err = relay(ctx, socket, database)
		return unlessEnded(ctx, cmp.Or(err, errEarly))
	})
	return total, group.Wait()
}

// errEarly is the error of a connection that ended while ovn-trace still needed it.
var errEarly = errors.New("the connection between ovn-trace and the OVN SB database ended")

// unlessEnded returns err, but nil once ctx has ended: a connection then ends with it.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// disableRateLimit makes ovn-trace log all warnings. It waits until ovn-trace accepts
// commands, which it does before it has a database.
func disableRateLimit(ctx context.Context, d runtime.Daemon) error {
	const pause = 2 * time.Millisecond
	for {
		if len(daemon.ControlSockets(d)) > 0 {
			_, err := unixctl.Run(ctx, d.RunDir, d.Program, "vlog/disable-rate-limit")
			if !errors.Is(err, unixctl.ErrUnreachable) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// relay connects ovn-trace with the server of the database until ctx or a connection
// ends, and returns the number of logical flows that passed.
func relay(ctx context.Context, socket, tracer string) (int, error) {
	server, err := unixctl.Dial(ctx, socket)
	if err != nil {
		return 0, fmt.Errorf("connecting to the OVN SB database: %w", err)
	}
	defer server.Close()
	client, err := unixctl.Dial(ctx, tracer)
	if err != nil {
		return 0, fmt.Errorf("connecting to ovn-trace: %w", err)
	}
	defer client.Close()
	end := func() { server.Close(); client.Close() } // each copy ends the other
	defer context.AfterFunc(ctx, end)()
	var group errgroup.Group
	group.Go(func() error { defer end(); return unlessClosed(copyRequests(server, client)) })
	marker := newMarker(client)
	group.Go(func() error { defer end(); _, err := io.Copy(marker, server); return unlessClosed(err) })
	err = group.Wait()
	return marker.flows, err
}

// unlessClosed returns nil for the error of a copy whose connection has ended.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// end ends the ovn-trace of a folder if one runs.
func end(ctx context.Context, rt runtime.Runtime, daemon runtime.Daemon) error {
	_, _ = unixctl.Run(ctx, daemon.RunDir, daemon.Program, "exit") // Stop ends one that does not answer
	return rt.Stop(ctx, daemon)
}

// byStage counts the flows of the warnings by their stage.
func byStage(ctx context.Context, socket string, total int, warnings map[string]string) (*report.LogicalFlows, error) {
	db, err := ovsdb.Connect(ctx, socket, ovsdb.SB)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Select(ctx, "Logical_Flow", "pipeline", "table_id", "external_ids")
	if err != nil {
		return nil, err
	}
	found := &report.LogicalFlows{Total: total}
	for _, row := range rows {
		if reason, unparsed := warnings[row.UUID]; unparsed {
			table, _ := row.Int("table_id")
			found.Add(report.Stage{Pipeline: row.String("pipeline"), Table: table, Name: row.Map("external_ids")["stage-name"]}, reason)
		}
	}
	found.Sort()
	return found, nil
}
