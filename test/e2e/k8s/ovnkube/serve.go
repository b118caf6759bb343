package ovnkube

import (
	"context"
	"io"

	"ovs-offline/test/e2e/k8s/fabric"
	"ovs-offline/test/e2e/k8s/truth"
)

// Serve starts servers in all pods, on the nodes and outside.
func (d *Deployment) Serve(pods []Pod) (io.Closer, error) {
	peers := []truth.Peer{{Name: fabric.OutsideName, Network: d.fabric.Network()}}
	for _, p := range pods {
		peers = append(peers, p.peer())
	}
	for _, n := range d.Nodes {
		peers = append(peers, truth.Peer{Name: n.Name, Network: n.Network()})
	}
	return truth.ServeAll(peers)
}

// Truths adds networks and objects, asks all questions with real packets, and returns the pods
// and what happened. The servers that answered are left.
func (d *Deployment) Truths(ctx context.Context) ([]Pod, []truth.Truth, io.Closer, error) {
	pods, err := d.AddObjects(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	servers, err := d.Serve(pods)
	if err != nil {
		return nil, nil, nil, err
	}
	questions, err := d.Questions(ctx, pods)
	if err == nil {
		var truths []truth.Truth
		if truths, err = truth.Find(ctx, questions); err == nil {
			return pods, truths, servers, nil
		}
	}
	servers.Close()
	return nil, nil, nil, err
}
