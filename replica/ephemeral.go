package replica

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// ephemeral sets the ephemeral columns of a served OVS database.
type ephemeral struct {
	rt     runtime.Runtime
	server runtime.Daemon
	socket string
	lists  string // the folder of the outputs of `ovs-vsctl list`
}

// SetEphemeral sets the ephemeral columns of the OVS database that a running server
// serves to the values that `ovs-vsctl list` printed on the node; lists is the folder of
// these outputs. The server's socket is db.sock in its RunDir. The remarks name the values
// that could not be set.
func SetEphemeral(ctx context.Context, rt runtime.Runtime, server runtime.Daemon, lists string) (remarks []string, err error) {
	ephemeral := &ephemeral{rt: rt, server: server, socket: filepath.Join(server.RunDir, "db.sock"), lists: lists}
	db, err := ovsdb.Connect(ctx, ephemeral.socket, ovsdb.OVS)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var all []setCommand
	for _, list := range []struct{ table, file string }{
		{"Open_vSwitch", workdir.RecordedListOVS}, {"Bridge", workdir.RecordedListBridge},
		{"Port", workdir.RecordedListPort}, {"Interface", workdir.RecordedListInterface}} {
		commands, err := ephemeral.commands(db, list.table, list.file)
		if err != nil {
			return nil, err
		}
		all = append(all, commands...)
	}
	const batch = 100 // rows per run of ovs-vsctl, whose command line has a limited length
	failed := map[string]int{}
	for commands := range slices.Chunk(all, batch) {
		ephemeral.setColumns(ctx, commands, failed)
	}
	for file, rows := range failed {
		remarks = append(remarks, fmt.Sprintf("the recorded database lacks the values that %s has for %d rows", file, rows))
	}
	return remarks, ctx.Err()
}

// setCommand is a command of ovs-vsctl that sets the ephemeral columns of one row.
type setCommand struct {
	file string // with the values
	argv []string
}

// commands returns the commands for the rows in a file of `ovs-vsctl list`.
func (e *ephemeral) commands(db *ovsdb.Client, table, name string) ([]setCommand, error) {
	file, ok, err := workdir.OpenCollected(filepath.Join(e.lists, name))
	if !ok {
		return nil, err
	}
	defer file.Close()
	records, err := ovsdb.Listing(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	var commands []setCommand
	for _, record := range records {
		var values []string
		for _, value := range record.Columns {
			if db.Ephemeral(table, value.Column) && value.Text != "[]" && value.Text != "{}" {
				values = append(values, value.Column+"="+value.Text)
			}
		}
		if len(values) > 0 {
			commands = append(commands, setCommand{name, append([]string{"--", "--if-exists", "set", table, record.UUID}, values...)})
		}
	}
	return commands, nil
}

// setColumns runs commands in one ovs-vsctl, which applies all or none of them. If that fails,
// it divides the list until the failing commands are known, and counts them by file.
func (e *ephemeral) setColumns(ctx context.Context, commands []setCommand, failed map[string]int) {
	argv := []string{"ovs-vsctl", "--no-wait", "--db=unix:" + e.socket}
	for _, command := range commands {
		argv = append(argv, command.argv...)
	}
	_, err := e.rt.Tool(ctx, e.server.RunDir, nil, argv...)
	switch {
	case err == nil || ctx.Err() != nil:
	case len(commands) == 1:
		failed[commands[0].file]++
	default:
		middle := len(commands) / 2
		e.setColumns(ctx, commands[:middle], failed)
		e.setColumns(ctx, commands[middle:], failed)
	}
}
