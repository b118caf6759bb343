// Package pods runs replicas in the pods of a Kubernetes cluster. A pod is a remote host
// that runs ovs-offline itself, with local processes as its runtime: the collection stays
// in the workdir, and a copy is streamed into the pod and started there. All objects of one
// start have a label with the same value. Jobs own them, so that they end at a deadline
// even if no client is left.
package pods

import (
	"context"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"ovs-offline/internal/kube"
	"ovs-offline/internal/versions"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// Name is the name of the runtime on the command line.
const Name = "kubernetes"

// container is the name of the only container of each pod.
const container = "replicas"

// folder is where the workdirs are in a pod, below a volume of its own.
const (
	volume = "/replicas"
	folder = volume + "/set"
)

// nameIn returns the name of the node whose workdir is at a path in a pod.
func nameIn(path string) string { return strings.TrimPrefix(path, folder+"/") }

// pathInPod returns the path of a node's workdir in a pod.
func pathInPod(node string) string { return path.Join(folder, node) }

// Workdir is a workdir whose replica is to run in a pod.
type Workdir struct {
	Name     string        // of the workdir in the pod; unique in a start, and workdir.IsNodeName
	Dir      *workdir.Dir  // locked
	Recorded versions.Pair // on the node, of the programs that matter for the replica
	Memory   int64         // that the replica takes, without the databases in Shared
	// Shared holds the memory for each OVN database that other nodes may have as well, by
	// its digest. Replicas in one pod share the server of a database.
	Shared map[string]int64
}

// Options are the options of a start.
type Options struct {
	Kubeconfig   *kube.Config
	Image        string        // a repository, or an image in one with its tag or digest
	Versions     versions.Pair // to run, or the beginnings of them; empty for those nearest to the node's
	Keep         time.Duration // after which the cluster ends the replicas
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	PullSecrets  []string
	Path         string // of the workdir or of the folder of the set, for list
	// Before ends the replicas of the workdirs that run. It is called once the cluster has
	// been asked whether it takes the pods.
	Before func(ctx context.Context) error
	// Say is called with a line for the user, and Progress with one that may be replaced
	// by the next; both may be called by several goroutines. node is "" for a line about
	// all.
	Say      func(node, text string)
	Progress func(text string)
}

// Outcome is the result of the start of one node.
type Outcome struct {
	Report *report.Report
	Err    error
}
