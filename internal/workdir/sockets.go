package workdir

import "context"

// Sockets are the sockets of a replica that runs on another machine.
type Sockets interface {
	// Connect makes the sockets, in folders of this machine, and connects them to the
	// replica. If the replica was lost, it may wait until it runs again.
	Connect(ctx context.Context) error
	// Connected reports whether the connection of the last Connect still holds.
	Connected() bool
	// Connections returns how often Connect has connected: another replica with the same
	// data may answer after each.
	Connections() int
	// VarRuns returns the folder that takes the place of the workdir's own of that name. It
	// exists once Connect has succeeded.
	VarRuns() string
}

// Linker finds the sockets of replicas on other machines.
type Linker interface {
	// Link returns the sockets of the replica of a workdir; nil if it runs on this machine.
	Link(d *Dir) Sockets
}

type linkerKey struct{}

// WithLinker returns a context in which Linked uses a Linker.
func WithLinker(ctx context.Context, l Linker) context.Context {
	return context.WithValue(ctx, linkerKey{}, l)
}

// Linked returns the workdir with the sockets of its replica, wherever that runs: its
// Socket, VarRun and so on are those of the replica once Connect has succeeded. Without
// the Linker of a context, it is the workdir as it is.
func (d *Dir) Linked(ctx context.Context) *Dir {
	l, _ := ctx.Value(linkerKey{}).(Linker)
	if l == nil || d.sockets != nil {
		return d
	}
	linked := *d
	linked.sockets = l.Link(d)
	return &linked
}

// Connect makes the sockets of a Linked workdir lead to its replica. It does nothing for a
// replica on this machine, or if they do.
func (d *Dir) Connect(ctx context.Context) error {
	if d.sockets == nil || d.sockets.Connected() {
		return nil
	}
	return d.sockets.Connect(ctx)
}

// Connections returns how often Connect has connected: 0 for a replica on this machine.
func (d *Dir) Connections() int {
	if d.sockets == nil {
		return 0
	}
	return d.sockets.Connections()
}

// Connected reports whether the sockets of the workdir lead to its replica, as far as is
// known here: true for a replica on this machine.
func (d *Dir) Connected() bool { return d.sockets == nil || d.sockets.Connected() }
