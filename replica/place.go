package replica

import (
	"path"
	"time"

	"ovs-offline/workdir"
)

// Place is where in a Kubernetes cluster a replica runs. Package pods makes it and uses it.
type Place struct {
	Context   string `json:"context,omitempty"` // of the kubeconfig; "" for the configuration of the pod that ovs-offline runs in
	Server    string `json:"server"`            // URL of the API server that the context had at the start
	Namespace string `json:"namespace"`
	Set       string `json:"set"` // value of a label that all objects of one start have
	// Version is the version of ovs-offline, here and in the pod.
	Version string `json:"version"`
	// Ends is when the cluster ends the replica by itself.
	Ends   time.Time `json:"ends"`
	Job    string    `json:"job,omitempty"` // "" until the Job is made
	Index  int       `json:"index"`         // of the pod in the Job
	Pod    string    `json:"pod,omitempty"` // name of the pod that the workdir was last loaded into
	UID    string    `json:"uid,omitempty"` // of that pod
	Folder string    `json:"folder"`        // the workdir in the pod
}

// String returns the pod as messages name it.
func (p Place) String() string { return "pod " + p.Namespace + "/" + p.Pod }

// Path returns the path, in the pod, of a file of the workdir.
func (p Place) Path(wd *workdir.Dir, file string) string {
	return path.Join(p.Folder, wd.Relative(file))
}
