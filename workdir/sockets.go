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
	Link(wd *Dir) Sockets
}

type linkerKey struct{}

// WithLinker returns a context in which Linked uses a Linker.
func WithLinker(ctx context.Context, linker Linker) context.Context {
	return context.WithValue(ctx, linkerKey{}, linker)
}

// Linked returns the workdir with the sockets of its replica, wherever that runs: its
// Socket, VarRun and so on lead to the replica once Connect has succeeded. Without
// the Linker of a context, it is the workdir as it is.
func (d *Dir) Linked(ctx context.Context) *Dir {
	linker, _ := ctx.Value(linkerKey{}).(Linker)
	if linker == nil || d.sockets != nil {
		return d
	}
	linked := *d
	linked.sockets = linker.Link(d)
	return &linked
}

// Connect makes the sockets of a Linked workdir lead to its replica. It does nothing for a
// replica on this machine, or if they do.
func (r *Replica) Connect(ctx context.Context) error {
	if r.sockets == nil || r.sockets.Connected() {
		return nil
	}
	return r.sockets.Connect(ctx)
}

// Connections returns how often Connect has connected: 0 for a replica on this machine.
func (r *Replica) Connections() int {
	if r.sockets == nil {
		return 0
	}
	return r.sockets.Connections()
}

// Connected reports whether the sockets of the workdir lead to its replica, as far as is
// known here: true for a replica on this machine.
func (r *Replica) Connected() bool { return r.sockets == nil || r.sockets.Connected() }
