package k8s

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/ovs"
)

// ovsTools is the container of a worker's pod that runs the tools of OVS.
const ovsTools = "ovnkube-controller"

// gaps are how long a part is down when it is restarted.
var gaps = []time.Duration{400 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}

// restartsLoseNothing restarts each part in the middle of a collection, which is whole
// nevertheless.
func restartsLoseNothing(t *testing.T, workers []*worker, truth content) {
	var parts []breakdown
	for _, gap := range gaps {
		for _, place := range []string{kubelet, containerd} {
			parts = append(parts, breakdown{place: place, kind: killed, gap: gap})
		}
	}
	for range gaps {
		parts = append(parts, breakdown{place: container, kind: "restart"})
	}
	forEach(workers[:len(parts)], func(w *worker) { w.restart(t, parts[slices.Index(workers, w)], truth) })
	workers[0].restart(t, breakdown{place: pod, kind: "replacement"}, truth)
	for i, gap := range sweep.Rows(gaps, func(gap time.Duration) bool { return gap == gaps[1] }) {
		workers[i].restart(t, breakdown{place: apiServer, kind: killed, gap: gap}, truth)
	}
}

// restart collects the worker's node with a breakdown in the middle, and checks that it
// is whole.
func (w *worker) restart(t *testing.T, b breakdown, truth content) {
	b.after = w.total / 2
	r := w.run(t, b)
	t.Logf("%s, %s: exit %d after %.1f s", w.way, b, r.code, r.took.Seconds())
	if problem := w.judge(truth, r); problem != "" || !r.happened || r.code != 0 {
		t.Errorf("%s, %s: happened: %t, exit %d: %s\n%s", w.way, b, r.happened, r.code, problem, messages(r.complaints))
	}
	w.recover(t)
}

// onContainer kills the first process of a container, which the kubelet then restarts.
func (w *worker) onContainer(t *testing.T) *strike {
	return &strike{undo: func() {}, do: func() {
		pid, err := w.c.FirstProcess(background, w.pods[0].Namespace, w.pods[0].Name, ovsTools)
		if err != nil {
			t.Error(err)
			return
		}
		syscall.Kill(pid, syscall.SIGKILL)
	}}
}

// onPod replaces the pod by one of another name.
func (w *worker) onPod(t *testing.T) *strike {
	return &strike{undo: func() {}, do: func() {
		old, replacement := w.pods[0], w.pods[0]
		replacement.Name += "-new"
		w.pods[0] = replacement
		if err := w.c.RemovePods(background, old); err != nil {
			t.Error(err)
		}
		if err := w.c.AddPods(background, replacement); err != nil {
			t.Error(err)
		}
	}}
}

// lostWithoutNotice stops a kubelet and kills the client in the middle of a collection, so
// that no part closes a connection, and checks that the processes in the pod end when no
// line has come from the client for half a minute.
func lostWithoutNotice(t *testing.T, w *worker) {
	command, _ := w.command(t)
	w.hops[toServer].Watch(w.total/4, func() {
		w.node.Kubelet.Signal(syscall.SIGSTOP)
		command.Process.Kill()
	})
	defer w.node.Kubelet.Signal(syscall.SIGCONT)
	finish(t, command)
	ended := time.Now()
	ovs.Await(t, "a command to wait for the lost connection", func() bool { return blocked(w.node) })
	ovs.Await(t, "the processes in the pods to end", func() bool { return len(w.node.Processes()) == 0 })
	t.Logf("without notice, the last process in the pod ended %.0f s after its client", time.Since(ended).Seconds())
}
