package k8s

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/e2e/k8s/cluster"
)

// TestExecReachesContainers checks what all other tests rely on: the API server, the
// kubelet and the containers.
func TestExecReachesContainers(t *testing.T) {
	c, n := sharedNode(t)
	shared := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	b := &builder{c: c, node: n, shell: "bash", t: t}
	b.add(b.pod("some", "pod", "", boxes{"box": {{Host: shared, Container: "/run/openvswitch"}}}))
	for name, executor := range executors(t, c) {
		t.Run(name, func(t *testing.T) {
			var out, complaints bytes.Buffer
			err := executor("some", "pod", "box",
				[]string{"sh", "-c", `echo "$1" >/var/run/openvswitch/f; cat /run/openvswitch/f; echo no >&2; exit 7`, "sh", name},
				&out, &complaints)
			var code exec.CodeExitError
			if !errors.As(err, &code) || code.Code != 7 || out.String() != name+"\n" || complaints.String() != "no\n" {
				t.Errorf("%v, %q, %q", err, out.String(), complaints.String())
			}
			if got, err := os.ReadFile(filepath.Join(shared, "f")); string(got) != name+"\n" {
				t.Errorf("%q, %v", got, err)
			}
			if executor("some", "pod", "box", []string{"tar"}, &out, &complaints) == nil {
				t.Error("the image has tar")
			}
			ovs.Await(t, "the commands to end", func() bool { return len(n.Processes()) == 0 })
		})
	}
}

type executor func(namespace, pod, container string, argv []string, out, complaints *bytes.Buffer) error

// executors returns the two protocols by which client-go runs a command.
func executors(t *testing.T, c *cluster.Cluster) map[string]executor {
	with := func(spdy bool) executor {
		return func(namespace, pod, container string, argv []string, out, complaints *bytes.Buffer) error {
			request := c.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
				VersionedParams(&corev1.PodExecOptions{Container: container, Command: argv, Stdout: true, Stderr: true},
					scheme.ParameterCodec)
			e, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
			if spdy {
				e, err = remotecommand.NewSPDYExecutor(c.Config, "POST", request.URL())
			}
			if err != nil {
				return err
			}
			return e.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdout: out, Stderr: complaints})
		}
	}
	return map[string]executor{"WebSocket": with(false), "SPDY": with(true)}
}
