package k8s_test

import (
	"context"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"ovs-offline/collect/k8s"
	"ovs-offline/test/check/expect"
	"ovs-offline/test/check/files"
	"ovs-offline/workdir"
)

// TestWhatBelongsToTheMachine collects a live node with a restarted container: what the programs of OVN
// print about themselves, the logs of the containers, and the logs in files.
func TestWhatBelongsToTheMachine(t *testing.T) {
	dir, exec := live(t, shared)
	logs := t.TempDir()
	const line = "2026-11-27T10:00:00.123Z|00001|vlog|INFO|opened log file\n"
	files.Write(t, filepath.Join(logs, "ovs-vswitchd.log"), line)
	files.Write(t, filepath.Join(logs, "a name with blanks.log"), line)
	exec.env["OVS_LOGDIR"], exec.env["OVN_LOGDIR"] = logs, filepath.Join(dir, "none")
	pods := interconnect("worker")
	for i, status := range pods[1].(*corev1.Pod).Status.ContainerStatuses {
		if status.Name == "nb-ovsdb" {
			pods[1].(*corev1.Pod).Status.ContainerStatuses[i].RestartCount = 1
		}
	}
	place := filepath.Join(t.TempDir(), "w")
	result := collectOne(t, cluster(exec, pods...), place, k8s.Options{Nodes: []string{"worker"}})
	var names []string
	for _, c := range result.Collections {
		expect.Equal(t, len(c.Lost), 0, c.Lost)
		if c.Kind == workdir.Host {
			for _, file := range c.Files {
				names = append(names, file.Path)
			}
		}
	}
	for _, want := range []string{
		"host/ovn-controller.coverage.show", "host/ovn-controller.connection-status",
		"host/ovn-controller.inc-engine.show-stats", "host/ovn-controller.stopwatch.show",
		"host/ip.rule", "host/ip.rule.6", "host/ip.neigh", "host/sysctl",
		"host/ovn-northd.status", "host/ovn-northd.inc-engine.show-stats", "host/ovsdb-server.memory.show",
		"host/nb.memory.show", "host/sb.coverage.show",
		"host/logs/ovs-vswitchd/ovs-vswitchd.log", "host/logs/ovsdb-server-nb/ovnkube-node-worker.current.log",
		"host/logs/ovsdb-server-nb/ovnkube-node-worker.previous.log",
		"host/logs/ovsdb-server-sb/ovnkube-node-worker.current.log",
		"host/logs/ovnkube-controller/ovnkube-node-worker.current.log",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing: %q", want, names)
		}
	}
	for tool, output := range map[string]string{"iptables-save": "iptables-save", "ip6tables-save": "ip6tables-save",
		"nft": "nft.ruleset", "ipset": "ipset.save", "conntrack": "conntrack"} {
		if _, err := osexec.LookPath(tool); err == nil && !slices.Contains(names, "host/"+output) {
			t.Errorf("host/%s is missing: %q", output, names)
		}
	}
	expect.Equal(t, files.Read(t, filepath.Join(place, "host/logs/ovs-vswitchd/ovs-vswitchd.log")), line)
	for _, name := range []string{"coverage.show", "upcall.show", "memory.show"} {
		if files.Read(t, filepath.Join(place, "recorded", name)) == "" {
			t.Errorf("%s is empty", name)
		}
	}
}

// TestToolsThatTheContainerLacks checks that a tool of netfilter that is not in the container costs its output
// and one remark.
func TestToolsThatTheContainerLacks(t *testing.T) {
	_, exec := live(t, shared)
	bin := t.TempDir()
	for _, tool := range []string{"iptables-save", "nft"} {
		if err := os.WriteFile(filepath.Join(bin, tool), []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exec.env["PATH"] = bin + ":" + exec.env["PATH"]
	place := filepath.Join(t.TempDir(), "w")
	result := collectOne(t, cluster(exec, interconnect("worker")...), place, k8s.Options{Nodes: []string{"worker"}})
	var remarks []string
	for _, collection := range result.Collections {
		expect.Equal(t, len(collection.Lost), 0, collection.Lost)
		for _, remark := range collection.Remarks {
			if strings.Contains(remark, "lacks") {
				remarks = append(remarks, remark)
			}
		}
	}
	expect.Equal(t, len(remarks), 1, remarks)
	if !strings.HasSuffix(remarks[0], "the container lacks iptables-save, nft: what only they tell about the kernel is missing") {
		t.Error(remarks[0])
	}
	if files.Read(t, filepath.Join(place, "host/ip.rule")) == "" {
		t.Error("ip rule is missing")
	}
}

// TestNoPermissionForLogs checks that a node whose logs the user must not read is collected, with a remark.
func TestNoPermissionForLogs(t *testing.T) {
	_, exec := live(t, shared)
	c := &k8s.Cluster{Name: "https://cluster.test:6443",
		API: refusing{objectTracker{fake.NewSimpleClientset(interconnect("worker")...)}}, Executor: exec}
	result := collectOne(t, c, filepath.Join(t.TempDir(), "w"), k8s.Options{Nodes: []string{"worker"}})
	remarks := 0
	for _, collection := range result.Collections {
		expect.Equal(t, len(collection.Lost), 0, collection.Lost)
		for _, remark := range collection.Remarks {
			if remark == "the logs of the pods were not collected: permission is missing: verb get on resource pods/log (docs/kubernetes.md has a role)" {
				remarks++
			}
		}
	}
	expect.Equal(t, remarks, 1)
}

// refusing is an API whose user must not read logs.
type refusing struct{ objectTracker }

func (refusing) PodLog(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/log"}, "ovnkube-node-worker", nil)
}
