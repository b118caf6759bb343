package k8s

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ovs-offline/internal/parity"
	"ovs-offline/internal/workdir"
	"ovs-offline/test/e2e/k8s/cluster"
)

const (
	faultedRuns = 200
	workers     = 6
	stall       = "--request-timeout=3s" // how long nothing may come
)

// worker is a node whose every stretch of the way can fail by itself.
type worker struct {
	c     *cluster.Cluster
	node  string
	hops  map[string]*cluster.Hop
	box   *builder
	dir   string
	count int
}

func newWorker(t *testing.T, c *cluster.Cluster, p platform, node string) *worker {
	t.Helper()
	kubelet, err := c.NewKubelet()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{c: c, node: node, dir: t.TempDir(), hops: map[string]*cluster.Hop{"runtime": kubelet.Runtime}}
	for name, target := range map[string]string{"client": c.Address, "kubelet": kubelet.Address} {
		hop, err := cluster.Listen(target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(hop.Stop)
		w.hops[name] = hop
	}
	w.box = deploy(t, c, p, node, w.hops["kubelet"].Address)
	return w
}

// collect collects the worker's node into a folder of its own.
func (w *worker) collect(t *testing.T, args ...string) (result, string) {
	w.count++
	dir := filepath.Join(w.dir, fmt.Sprint(w.count))
	return collectAs(t, w.c, cluster.Admin, w.hops["client"].Address, append([]string{"-w", dir, w.node}, args...)...), dir
}

// TestFaults breaks connections at random places and counts the runs that
// lack something and don't say so.
func TestFaults(t *testing.T) {
	c := sharedCluster(t)
	p := platforms[slices.IndexFunc(platforms, func(p platform) bool { return p.layout == "openshift" })]
	var outcomes [4]atomic.Int64 // by exit code
	var runs, silent atomic.Int64
	var all sync.WaitGroup
	var truth content // of all: they are one live node
	for i := range workers {
		w := newWorker(t, c, p, fmt.Sprintf("faulty-%d", i))
		if truth == nil {
			truth = w.reference(t)
		}
		chance := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			for runs.Load() < faultedRuns && !t.Failed() {
				place, fault := draw(chance)
				hop := w.hops[place]
				hop.Break(&fault)
				r, dir := w.collect(t, stall)
				happened := hop.Happened()
				hop.Break(nil)
				what := fmt.Sprintf("%s at %s after %d bytes, %d times", fault.Kind, place, fault.After, happened)
				if problem := truth.judge(r, dir); problem != "" {
					silent.Add(1)
					t.Errorf("%s: exit %d: %s\n%s", what, r.code, problem, r.complaints)
				}
				os.RemoveAll(dir)
				if happened == 0 {
					continue // the whole of it was shorter
				}
				outcomes[min(max(r.code, 0), 3)].Add(1)
				if n := runs.Add(1); n%25 == 0 {
					t.Logf("%d faulted runs, %d silent truncations", n, silent.Load())
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d faulted runs: %d whole, %d failed, %d incomplete and said so, %d silent truncations", runs.Load(), outcomes[0].Load(), outcomes[1].Load(), outcomes[3].Load(), silent.Load())
	if !t.Failed() && (outcomes[0].Load() == 0 || outcomes[1].Load()+outcomes[3].Load() == 0) {
		t.Error("faults that come once are to be survived, and those that stay are not")
	}
}

// draw draws a fault: most places are early, since most streams are short.
func draw(chance *rand.Rand) (string, cluster.Fault) {
	f := cluster.Fault{
		Kind:  []cluster.Kind{cluster.Close, cluster.Close, cluster.Reset, cluster.HalfClose, cluster.HalfClose, cluster.Stall}[chance.IntN(6)],
		After: chance.Int64N(1 << (8 + chance.IntN(13))),
		Times: []int{1, 1, 2, 0}[chance.IntN(4)],
	}
	return []string{"client", "kubelet", "runtime"}[chance.IntN(3)], f
}

// content is what a collection holds, file by file: for a dump its entries,
// for a database its rows, for recorded state, whose figures change from one
// second to the next, how many lines it has.
type content map[string]string

// reference collects the node unharmed, twice: what was not
// the same both times only has to be there.
func (w *worker) reference(t *testing.T) content {
	t.Helper()
	var both [2]content
	for i := range both {
		r, dir := w.collect(t)
		if r.code != 0 {
			t.Fatalf("unharmed: exit %d\n%s", r.code, r.complaints)
		}
		var err error
		if both[i], err = read(dir); err != nil {
			t.Fatal(err)
		}
	}
	if len(both[0]) == 0 {
		t.Fatal("nothing was collected")
	}
	for name, text := range both[0] {
		if both[1][name] != text {
			both[0][name] = volatile
		}
	}
	return both[0]
}

const volatile = "(changes)"

// judge says what is wrong with a run, "" if it is whole or admits what it
// lacks.
func (truth content) judge(r result, dir string) string {
	if r.code != 0 && strings.TrimSpace(r.complaints) == "" {
		return "no error message"
	}
	if r.code != 0 && r.code != 1 && r.code != 3 {
		return "an exit code that is not of this"
	}
	have, err := read(dir)
	if err != nil {
		return err.Error()
	}
	if r.code == 1 {
		if len(have) > 0 {
			return "it failed and left data"
		}
		return ""
	}
	for name, want := range truth {
		got, there := have[name]
		switch {
		case !there && r.code == 0:
			return name + " is missing"
		case there && want != volatile && got != want:
			return name + " is not what the node has"
		}
	}
	return ""
}

// read reads a collection.
func read(dir string) (content, error) {
	var manifest workdir.Manifest
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	if err != nil {
		return nil, err
	}
	all := content{}
	for _, c := range manifest.Collections {
		for _, f := range c.Files {
			data, err := os.ReadFile(filepath.Join(dir, f.Path))
			if err != nil {
				return nil, err
			}
			if all[f.Path], err = digest(f.Path, data); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
		}
	}
	return all, nil
}

func digest(path string, data []byte) (string, error) {
	switch kind := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(path, ".dump")), "."); {
	case strings.HasPrefix(path, "db/"):
		return rows(data)
	case strings.HasSuffix(path, ".dump"):
		list := parity.Entries(workdir.Dump(kind), string(data))
		slices.Sort(list)
		return strings.Join(list, "\n"), nil
	}
	if strings.Contains(path, "dump-flows") || strings.Contains(path, "conntrack") {
		return volatile, nil
	}
	return fmt.Sprint(bytes.Count(data, []byte("\n")), " lines"), nil
}

// rows are the row identifiers of a standalone database, table by table; its
// records are checked against their sums.
func rows(data []byte) (string, error) {
	var list []string
	for n := 0; len(data) > 0; n++ {
		var length int
		var sum string
		header, rest, _ := bytes.Cut(data, []byte("\n"))
		if _, err := fmt.Sscanf(string(header), "OVSDB JSON %d %s", &length, &sum); err != nil {
			return "", fmt.Errorf("record %d: %w", n, err)
		}
		if length > len(rest) || fmt.Sprintf("%x", sha1.Sum(rest[:length])) != sum {
			return "", fmt.Errorf("record %d is damaged", n)
		}
		if n > 0 {
			var tables map[string]json.RawMessage
			if err := json.Unmarshal(rest[:length], &tables); err != nil {
				return "", err
			}
			for table, raw := range tables {
				var byID map[string]json.RawMessage
				if json.Unmarshal(raw, &byID) == nil {
					for id := range byID {
						list = append(list, table+" "+id)
					}
				}
			}
		}
		data = rest[length:]
	}
	slices.Sort(list)
	return strings.Join(list, "\n"), nil
}
