package cluster

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"time"
)

// auditPolicy makes the API server log the commands that it runs in pods.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, resources: [{group: "", resources: [pods/exec]}]}
- {level: None}
`

// Exec is a command that was run in a pod and has ended.
type Exec struct {
	Container  string // NAMESPACE/POD/CONTAINER
	Begin, End time.Time
}

// Execs returns the commands that have begun since a time, and have ended.
func (c *Cluster) Execs(since time.Time) ([]Exec, error) {
	text, err := os.ReadFile(c.file("audit.log"))
	if err != nil {
		return nil, err
	}
	var list []Exec
	for line := range strings.Lines(string(text)) {
		var event struct {
			RequestURI                               string
			ObjectRef                                struct{ Namespace, Name string }
			RequestReceivedTimestamp, StageTimestamp time.Time
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, err
		}
		uri, err := url.Parse(event.RequestURI)
		if err != nil {
			return nil, err
		}
		if event.RequestReceivedTimestamp.Before(since) {
			continue
		}
		list = append(list, Exec{
			Container: event.ObjectRef.Namespace + "/" + event.ObjectRef.Name + "/" + uri.Query().Get("container"),
			Begin:     event.RequestReceivedTimestamp, End: event.StageTimestamp,
		})
	}
	return list, nil
}
