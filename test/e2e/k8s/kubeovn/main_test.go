package kubeovn

import (
	"context"
	"os"
	"testing"

	"ovs-offline/test/e2e/k8s/rigtest"
	"ovs-offline/test/e2e/k8s/truth"
)

var background = context.Background()

// lab is the deployment that all tests share, with a collection of it before any change.
var lab struct {
	rigtest.Lab
	deployment *Deployment
	truths     []truth.Truth
}

func TestMain(m *testing.M) { os.Exit(lab.Main(m, "kubeovn", start)) }

// need skips a test where kube-ovn can't run, and starts it before the first one.
func need(t *testing.T) {
	t.Helper()
	lab.Need(t, "usr/sbin/nft", "usr/sbin/ipset")
}

// start starts the deployment, asks all questions with real packets, collects the nodes
// and starts their replicas.
func start() (err error) {
	if err := lab.Start(Flags...); err != nil {
		return err
	}
	options := Options{Cluster: lab.Cluster, Built: lab.Built, Root: lab.Root, Nodes: 2}
	if lab.deployment, err = Start(background, options); err != nil {
		return err
	}
	_, truths, servers, err := lab.deployment.Truths(background)
	if err != nil {
		return err
	}
	defer servers.Close()
	lab.truths = truths
	if err := lab.deployment.awaitNeighbours(background); err != nil {
		return err
	}
	return lab.Collect()
}
