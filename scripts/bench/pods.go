package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	podReplicas  = 60
	podFlows     = 10000
	podQuestions = 6000
	podPorts     = 6 // of br-int in the capture
)

// pods measures replicas in the pods of the cluster of KUBECONFIG, for example that of
// test/e2e/k8s/rig: their start, questions to all of them, and a call of a wrapper.
func (s sizes) pods() bench {
	nodes, questions := s.path("pods"), s.path("questions.yaml")
	name := func(i int) string { return fmt.Sprintf("node-%d", i) }
	start := fmt.Sprintf("start of %d replicas of %d flows", podReplicas, podFlows)
	many, call := fmt.Sprintf("%d questions to %d replicas", podQuestions, podReplicas), "a call of a wrapper"
	started := false
	return bench{
		name: "replicas in pods",
		prepare: func(ctx context.Context) error {
			if err := s.collectFlows(ctx, filepath.Join(nodes, name(0)), podFlows); err != nil {
				return err
			}
			for i := 1; i < podReplicas; i++ {
				if err := do(ctx, "cp", "-a", filepath.Join(nodes, name(0)), filepath.Join(nodes, name(i))); err != nil {
					return err
				}
			}
			var b strings.Builder
			b.WriteString("checks:\n")
			for i := range podQuestions {
				fmt.Fprintf(&b, "- {node: %s, flow: 'br-int in_port=%d,tcp,tcp_dst=%d'}\n", name(i%podReplicas), 1+i/podReplicas%podPorts, 1+i/podReplicas)
			}
			return os.WriteFile(questions, []byte(b.String()), 0o600)
		},
		targets: []target{
			duration(start+" in pods, until all are ready", start, 90000),
			duration(many+" in pods", many, 60000),
			duration("a call of a wrapper on a replica in a pod", call, 100),
		},
		ways: []way{
			{name: start, steps: func() []step {
				started = true
				return []step{{s.ours(nodes, "start", "--runtime", "kubernetes", "--image", s.image, "--namespace", s.namespace)}}
			}},
			{name: many, steps: func() []step { return []step{{s.ours(nodes, "trace", "--file", questions, "-o", "json")}} }},
			{name: call, steps: func() []step { return []step{{argv(filepath.Join(nodes, name(0), "bin/ovs-vsctl"), "list-br")}} }},
		},
		finish: func(ctx context.Context) error {
			if !started {
				return nil
			}
			return s.stop(nodes)(ctx)
		},
	}
}

// collectFlows collects the bundled capture without OVN's databases into a workdir, with
// count flows in place of its own.
func (s sizes) collectFlows(ctx context.Context, wd string, count int) error {
	if err := s.collectCapture(ctx, wd, "collect-sos-ovs"); err != nil {
		return err
	}
	other, err := filepath.Glob(filepath.Join(wd, "recorded/bridges/br-int/*flows*"))
	for _, path := range other {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return err
	}
	flows := filepath.Join(wd, "restore_flows/br-int.flows.dump")
	if err := create(flows+".new", func(d io.Writer) error { return writeFlows(flows, count, d, io.Discard) }); err != nil {
		return err
	}
	return os.Rename(flows+".new", flows)
}
