// Package pods runs replicas in the pods of a Kubernetes cluster. A pod is a remote host
// that runs ovs-offline itself, with local processes as its runtime: the collection stays
// in the workdir, and a copy is streamed into the pod and started there.
package pods

// container is the name of the only container of each pod.
const container = "replicas"

// Name is the name of the runtime on the command line.
const Name = "kubernetes"
