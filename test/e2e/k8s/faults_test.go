package k8s

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ovs-offline/internal/workdir"
	"ovs-offline/test/e2e/k8s/cluster"
	"ovs-offline/test/fidelity"
)

const (
	faultedRuns = 200
	workers     = 6
	stall       = "--request-timeout=3s" // how long a stream may stall
)

// worker is a node to which each part of the connection can fail by itself.
type worker struct {
	c     *cluster.Cluster
	node  string
	user  string
	hops  map[string]*cluster.Hop
	dir   string
	count int
}

// newWorker deploys a node. The user decides whether commands use WebSocket or SPDY.
func newWorker(t *testing.T, c *cluster.Cluster, l *lab, node, user string) *worker {
	t.Helper()
	n, err := c.StartNode(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Stop() })
	standIn, end, err := n.StandIn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	hop, err := cluster.Listen(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hop.Stop)
	deployLab(t, c, n, openshift(), l)
	return &worker{c: c, node: node, user: user, dir: t.TempDir(), hops: map[string]*cluster.Hop{"runtime": standIn.Runtime, "command": standIn.Command, "client": hop, "kubelet": n.FromServer}}
}

// collect collects the worker's node into a new folder.
func (w *worker) collect(t *testing.T, args ...string) (result, string) {
	w.count++
	dir := filepath.Join(w.dir, fmt.Sprint(w.count))
	return collectAs(t, w.c, w.user, w.hops["client"].Address, append([]string{"-w", dir, w.node}, args...)...), dir
}

// tally counts faulted runs by their results.
type tally struct {
	sync.Mutex
	t                    *testing.T
	runs, missed, silent int
	codes                map[int]int
	kinds                map[string]int // by protocol, hop and kind of fault
}

func (s *tally) add(code int, kind string) {
	if s.runs++; s.runs%25 == 0 {
		s.t.Logf("%d faulted runs, %d silent truncations", s.runs, s.silent)
	}
	s.codes[code]++
	s.kinds[kind]++
}

func (s *tally) String() string {
	var kinds strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.kinds)) {
		fmt.Fprintf(&kinds, "\n%5d  %s", s.kinds[k], k)
	}
	return fmt.Sprintf("%d faulted runs: %d whole, %d failed, %d incomplete and said so, %d silent truncations (in %d more the fault never came)%s",
		s.runs, s.codes[0], s.codes[1], s.codes[3], s.silent, s.missed, kinds.String())
}

// TestFaultsAreNeverSilent breaks connections at random places, and checks that each
// run that lacks data reports it.
func TestFaultsAreNeverSilent(t *testing.T) {
	c := sharedCluster(t)
	l := smallNode(t, someFlows(2000, 2))
	grant(t, c, overSPDY, "list pods", "create pods/exec")
	counts := tally{t: t, codes: map[int]int{}, kinds: map[string]int{}}
	var all sync.WaitGroup
	var truth content // the same for all workers: they share one live node
	for i := range workers {
		way, user := "WebSocket", cluster.Admin
		if i%2 == 1 {
			way, user = "SPDY", overSPDY
		}
		w := newWorker(t, c, l, fmt.Sprintf("faulty-%d", i), user)
		if have := w.reference(t); truth == nil {
			truth = have
		}
		chance := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			for w.wanted(t, &counts) {
				place, fault := w.draw(chance)
				hop := w.hops[place]
				hop.Break(&fault)
				r, dir := w.collect(t, stall)
				happened := hop.Happened()
				hop.Break(nil)
				problem := truth.judge(r, dir)
				os.RemoveAll(dir)
				counts.Lock()
				if problem != "" {
					counts.silent++
					t.Errorf("%s: %s at %s after %d bytes, %d times: exit %d: %s\n%s", way, fault.Kind, place, fault.After, happened, r.code, problem, r.complaints)
				}
				if happened > 0 {
					counts.add(r.code, fmt.Sprintf("%s, %s at %s", way, fault.Kind, place))
				} else {
					counts.missed++
				}
				counts.Unlock()
			}
		})
	}
	all.Wait()
	t.Log(&counts)
	if !t.Failed() && (counts.codes[0] == 0 || counts.codes[1]+counts.codes[3] == 0) {
		t.Error("want both runs that recover from a fault and runs that do not")
	}
}

// wanted reports whether more runs are needed.
func (w *worker) wanted(t *testing.T, s *tally) bool {
	s.Lock()
	defer s.Unlock()
	return s.runs < faultedRuns && s.missed < faultedRuns && !t.Failed()
}

// draw returns a random hop and a fault for it: anywhere in the longest stream or,
// since most streams are short, near the start of one.
func (w *worker) draw(chance *rand.Rand) (string, cluster.Fault) {
	place := []string{"client", "kubelet", "runtime", "command"}[chance.IntN(4)]
	f := cluster.Fault{
		Kind:  []cluster.Kind{cluster.Close, cluster.Reset, cluster.HalfClose, cluster.HalfClose, cluster.Stall}[chance.IntN(5)],
		After: chance.Int64N(w.hops[place].Longest()),
		Times: []int{1, 1, 2, 0}[chance.IntN(4)],
	}
	if place == "command" {
		f.Kind = cluster.Kill
	}
	if chance.IntN(2) == 0 {
		f.After = min(f.After, chance.Int64N(1<<(8+chance.IntN(10))))
	}
	return place, f
}

// content maps the files of a collection to what must not change: the entries of a
// dump, the rows of a database, and for other recorded output, whose figures change
// every second, the number of lines.
type content map[string]string

// reference collects the node twice without faults. Files that differ between the two
// must exist, with any content.
func (w *worker) reference(t *testing.T) content {
	t.Helper()
	var both [2]content
	for i := range both {
		r, dir := w.collect(t)
		if r.code != 0 {
			t.Fatalf("without faults: exit code %d\n%s", r.code, r.complaints)
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

// judge returns what is wrong with a run, or "" if the run is complete or reports
// what it lacks.
func (truth content) judge(r result, dir string) string {
	if r.code != 0 && strings.TrimSpace(r.complaints) == "" {
		return "it printed no error message"
	}
	if r.code != 0 && r.code != 1 && r.code != 3 {
		return "unexpected exit code"
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
	lost, err := lost(dir)
	if err != nil {
		return err.Error()
	}
	if (r.code == 0) != (len(lost) == 0) {
		return fmt.Sprintf("the manifest lists as lost: %q", lost)
	}
	for name, want := range truth {
		got, there := have[name]
		named := strings.Contains(strings.Join(lost, "\n"), lostAs(name))
		switch {
		case !there && !named:
			return fmt.Sprintf("%s is missing, but the manifest lists only %q", name, lost)
		case there && want != volatile && got != want:
			return name + " differs from the node"
		}
	}
	return ""
}

// lost returns what the manifest of a collection lists as lost.
func lost(dir string) ([]string, error) {
	var manifest workdir.Manifest
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	var all []string
	for _, c := range manifest.Collections {
		all = append(all, c.Lost...)
	}
	return all, err
}

// lostAs returns the words by which the manifest names a lost file: the database, or
// the command whose output it is.
func lostAs(path string) string {
	folder, name := filepath.Split(path)
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		if strings.HasPrefix(folder, "db/"+string(k)+"/") {
			return "the " + k.Title() + " database: "
		}
	}
	if folder == "restore_flows/" {
		kind := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(name, ".dump")), ".")
		return "dump-" + strings.Replace(kind, "tlv", "tlv-map", 1)
	}
	if table, is := strings.CutPrefix(name, "list-"); is {
		return "list " + table
	}
	return strings.ReplaceAll(name, ".", "/")
}

// read returns the content of a collection.
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
		list := fidelity.Entries(workdir.Dump(kind), string(data))
		slices.Sort(list)
		return strings.Join(list, "\n"), nil
	}
	if strings.Contains(path, "dump-flows") || strings.Contains(path, "conntrack") {
		return volatile, nil
	}
	return fmt.Sprint(bytes.Count(data, []byte("\n")), " lines"), nil
}

// rows returns the table and UUID of each row of a standalone database, and checks the
// checksums of its records.
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
