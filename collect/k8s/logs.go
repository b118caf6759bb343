package k8s

import (
	"context"
	"fmt"
	"path"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/kube"
	"ovs-offline/workdir/recording"
)

const (
	// maxLog and maxLogLines bound the log of a container. The server counts bytes from the beginning,
	// and lines from the end.
	maxLog      = 64 << 20
	maxLogLines = 400_000
	// logsAtOnce is how many logs of a node are requested at the same time.
	logsAtOnce = 4
)

// containerLog is a log that the API server has: that of a container, or of the one before it.
type containerLog struct {
	target   Target
	previous bool
	program  string
}

// name returns the name of the log's file.
func (l containerLog) name() string {
	if l.previous {
		return recording.PodLogName(l.target.Pod, "previous.log")
	}
	return recording.PodLogName(l.target.Pod, "current.log")
}

// podLogs are the logs of a node's containers, which are requested beside everything else.
type podLogs struct {
	group  *errgroup.Group
	logs   []recording.Log
	errors []error // of each log
}

// beginLogs begins to request the logs of the containers of Open vSwitch and OVN on the node.
func (s *nodeSource) beginLogs(ctx context.Context) *podLogs {
	list := s.survey.logsOf(s.layout, s.node.Host, s.target.Namespace)
	all := &podLogs{group: &errgroup.Group{}, logs: make([]recording.Log, len(list)), errors: make([]error, len(list))}
	next := make(chan int, len(list))
	for i := range list {
		next <- i
	}
	close(next)
	for range logsAtOnce {
		all.group.Go(func() error {
			for i := range next {
				if all.logs[i], all.errors[i] = s.podLog(ctx, list[i]); all.errors[i] != nil && kube.IsForbidden(all.errors[i]) {
					return nil // the others would be refused too
				}
			}
			return nil
		})
	}
	return all
}

// end waits for the logs, and adds them to the node, with a remark if any is missing.
func (l *podLogs) end(node *recording.Recording) {
	_ = l.group.Wait() // the errors are in the list
	var failed error
	missing := 0
	for i, log := range l.logs {
		switch {
		case log.Spooled != "":
			node.HostLogs = append(node.HostLogs, log)
		case l.errors[i] != nil && kube.IsForbidden(l.errors[i]):
			node.Remarks = append(node.Remarks, "the logs of the pods were not collected: permission is missing: verb get on resource pods/log (docs/kubernetes.md has a role)")
			return
		case l.errors[i] != nil:
			failed = l.errors[i]
			missing++
		}
	}
	if failed != nil {
		node.Remarks = append(node.Remarks, fmt.Sprintf("%d of %d logs of containers were not collected: %v", missing, len(l.logs), failed))
	}
}

// podLog requests one log.
func (s *nodeSource) podLog(ctx context.Context, log containerLog) (recording.Log, error) {
	bytes, lines := int64(maxLog), int64(maxLogLines)
	stream, err := s.survey.cluster.API.PodLog(ctx, log.target.Namespace, log.target.Pod,
		&corev1.PodLogOptions{Container: log.target.Container, Previous: log.previous, Timestamps: true, LimitBytes: &bytes, TailLines: &lines})
	if err != nil {
		return recording.Log{}, fmt.Errorf("%s: %w", log.target, err)
	}
	defer stream.Close()
	file, err := archive.Spool(ctx, s.spool, stream)
	if err != nil {
		return recording.Log{}, fmt.Errorf("%s: %w", log.target, err)
	}
	return recording.Log{File: file, Program: log.program, Name: log.name(), Origin: log.target.String() + ": " + log.name()}, nil
}

// logsOf returns the logs of the containers of Open vSwitch and OVN on a node. A container that was never
// started again has none before the present one.
func (s *survey) logsOf(layout layout, node, namespace string) (list []containerLog) {
	seen := map[Target]bool{}
	for _, pods := range append(append([]podContainer{}, layout.ovs...), layout.nb, layout.sb) {
		for _, pod := range s.pods(layout, pods, node) {
			for _, container := range pod.Spec.Containers {
				target := Target{Namespace: pod.Namespace, Pod: pod.Name, Container: container.Name}
				program, ok := recording.ContainerProgram(container.Name)
				if !ok || seen[target] || pod.Namespace != namespace {
					continue
				}
				seen[target] = true
				list = append(list, containerLog{target, false, program})
				if statusOf(pod, container.Name).RestartCount > 0 {
					list = append(list, containerLog{target, true, program})
				}
			}
		}
	}
	return list
}

// logFile adds a log that a container has as a file.
func (s *nodeSource) logFile(target Target, frame frame) {
	file := frame.name[len(logFrame):]
	log, ok := recording.LogOf(file)
	if frame.code != 0 || !ok {
		return // it may just have been rotated
	}
	s.node.HostLogs = append(s.node.HostLogs, recording.Log{File: frame.File, Program: log.Program, Name: path.Base(file), Origin: target.String() + ": " + file})
}

// isOptional reports whether a frame has what no replica needs.
func (f frame) isOptional() bool {
	command, _, known := f.command()
	return known && command.Host
}
