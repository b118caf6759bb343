package set

import (
	"context"

	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// Shown returns the sockets and ports of the running replica.
func (n *Node) Shown(ctx context.Context, wd *workdir.Dir) (replica.Shown, error) {
	state, err := n.Running(ctx, wd)
	if err != nil {
		return replica.Shown{}, err
	}
	sockets, err := readSockets(ctx, wd, state)
	if err != nil {
		return replica.Shown{}, err
	}
	r, err := replica.Report(wd)
	if err != nil {
		return replica.Shown{}, err
	}
	return replica.Shown{Ports: r.Ports, Recorded: r.Recorded, Running: r.Running, Sockets: sockets}, nil
}

// readSockets returns the sockets of a running replica. For a replica in a pod, it
// returns the sockets in the pod.
func readSockets(ctx context.Context, wd *workdir.Dir, state replica.State) (replica.Sockets, error) {
	if state.Pod == nil {
		return replica.Show(wd)
	}
	var inPod struct {
		Sockets replica.Sockets `json:"sockets"`
	}
	if err := DocumentInPod(ctx, wd, &inPod, "show"); err != nil {
		return replica.Sockets{}, err
	}
	return inPod.Sockets.InPod(wd, *state.Pod), nil
}
