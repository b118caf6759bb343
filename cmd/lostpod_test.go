package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ovs-offline/replica/pods/link"
	"ovs-offline/workdir"
)

// losingPod is a pod that is lost once so many bytes have come from it. The next starts its
// replicas again.
type losingPod struct {
	childPod
	lost *losses
}

type losses struct {
	after    int64 // bytes
	happened atomic.Bool
	replaced atomic.Int32 // how often another pod was asked for because of that
}

// Stream starts ovs-offline, until the pod is lost.
func (p losingPod) Stream(ctx context.Context, argv ...string) (io.ReadWriteCloser, error) {
	stream, err := p.childPod.Stream(ctx, argv...)
	if err != nil || p.lost.happened.Load() {
		return stream, err
	}
	return &cutStream{ReadWriteCloser: stream, left: p.lost.after, lost: p.lost}, nil
}

// cutStream is a stream that ends after so many bytes.
type cutStream struct {
	io.ReadWriteCloser
	left int64
	lost *losses
}

// Read reads what is left.
func (c *cutStream) Read(p []byte) (int, error) {
	n, err := io.LimitReader(c.ReadWriteCloser, c.left).Read(p)
	if c.left -= int64(n); c.left == 0 {
		c.lost.happened.Store(true)
		c.ReadWriteCloser.Close()
	}
	return n, err
}

// testUnreachedPod asks about two nodes of which one has a pod that can't be reached. It costs
// what depends on that node, from the beginning.
func (p *inPods) testUnreachedPod(t *testing.T) {
	ask := func(args ...string) printed {
		var out, errs bytes.Buffer
		exit := run(t.Context(), append([]string{"-w", p.near}, args...),
			IO{In: strings.NewReader(""), Out: &out, Err: &errs},
			func(_ context.Context, wd *workdir.Dir, _ link.Attempt) (link.Host, error) {
				node := filepath.Base(wd.Path())
				if node == "ovn-worker" {
					return nil, errors.New("pod test/pod-1 is gone, and none runs in its place after 1m0s")
				}
				return childPod{filepath.Join(p.far, node)}, nil
			})
		return printed{out.String(), errs.String(), exit}
	}
	const cause = "node ovn-worker: pod test/pod-1 is gone, and none runs in its place after 1m0s"
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"trace", "p-vm1", "p-vm2"}, 0, "REACHABLE"},
		{[]string{"trace", "ns1/client", "ns1/web1"}, 3, "UNDETERMINED  " + cause},
		{[]string{"reach", "--by=port", "--port=icmp", "-o=json"}, 3, cause},
	} {
		got := ask(c.args...)
		if got.exit != c.exit || !strings.Contains(got.out, c.want) || strings.Count(got.err, cause+"\n") != 1 {
			t.Errorf("%q: exit %d, want %d: %s%s", c.args, got.exit, c.exit, got.err, got.out)
		}
	}
}

// testLostPod compares the answers of replicas that were lost and started again while the
// questions were asked with those of replicas that were not.
func (p *inPods) testLostPod(t *testing.T) {
	workdirs := func(folder string) []string {
		return []string{"-w", filepath.Join(folder, "compute1"), "reach", "-o", "json"}
	}
	want := p.run(t.Context(), "", workdirs(p.far)...)
	verdicts := func(text string) (count int) {
		var d struct {
			Cells []struct {
				Verdict string `json:"verdict"`
			} `json:"cells"`
		}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return len(d.Cells)
	}
	if verdicts(want.out) < 10 {
		t.Fatalf("few questions: %s%s", want.out, want.err)
	}
	for _, after := range []int64{20_000, 100_000, 200_000} {
		lost := &losses{after: after}
		var out, errs bytes.Buffer
		exit := run(t.Context(), workdirs(p.near), IO{In: strings.NewReader(""), Out: &out, Err: &errs},
			func(_ context.Context, wd *workdir.Dir, attempt link.Attempt) (link.Host, error) {
				if attempt == link.Lost {
					lost.replaced.Add(1)
					p.run(t.Context(), "", "-w", filepath.Join(p.far, "compute1"), "start", "--runtime=process")
				}
				return losingPod{childPod{filepath.Join(p.far, filepath.Base(wd.Path()))}, lost}, nil
			})
		if replaced := lost.replaced.Load(); replaced != 1 || exit != want.exit || out.String() != want.out {
			t.Errorf("after %d bytes: replaced %d times, exit %d, want %d: %s\n%s\nwant %s", after, replaced, exit, want.exit,
				errs.String(), out.String(), want.out)
		}
	}
}
