package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ovs-offline/internal/filelock"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica"
	"ovs-offline/replica/runtime"
)

const keptSet = "q7zk2mw4xa"

// keptMachine is a machine whose replica has what a keeper needs to know, and commands on it.
type keptMachine struct {
	*machine
	wd      *workdir.Dir
	started int            // how often a command has started a keeper
	ended   chan error     // gets what each keeper returns
	idle    time.Duration  // of the keepers
	keepers sync.WaitGroup // each of them that has not ended
}

func newKeptMachine(t *testing.T) *keptMachine {
	t.Helper()
	m, wd, _ := newMachine(t)
	k := &keptMachine{machine: m, wd: wd, ended: make(chan error, 9), idle: time.Minute}
	k.record(t)
	t.Cleanup(k.keepers.Wait) // they remove their folders
	return k
}

// record writes which pod the replica is in.
func (k *keptMachine) record(t *testing.T) {
	t.Helper()
	state := replica.State{Runtime: "kubernetes", Kinds: []workdir.Kind{workdir.OVS}, Pod: &replica.Place{Folder: k.Folder(), Set: keptSet, Namespace: "test", Pod: k.Pod(), UID: k.Pod()}}
	if err := workdir.WriteJSON(k.wd.ReplicaFile(), state); err != nil {
		t.Fatal(err)
	}
}

func (k *keptMachine) links() *Links {
	return New(func(context.Context, *workdir.Dir) (Host, error) { return k.machine, nil })
}

// keep runs a keeper until the test or ctx ends.
func (k *keptMachine) keep(ctx context.Context) {
	k.started++
	links := k.links()
	k.keepers.Go(func() {
		defer links.Close()
		k.ended <- links.Keep(ctx, k.wd, k.idle)
	})
}

// run runs a command as a process of its own would, and returns what it prints.
func (k *keptMachine) run(t *testing.T, script string) string {
	t.Helper()
	links := k.links()
	defer links.Close()
	var out bytes.Buffer
	if exit, err := links.RunKept(t.Context(), k.wd, []string{script}, runtime.Command{Stdout: &out, Stderr: io.Discard}, func() { k.keep(t.Context()) }); err != nil || exit != 0 {
		t.Fatalf("%s: exit %d, %v", script, exit, err)
	}
	return out.String()
}

// runUntilKept runs commands until one has used the keeper, and returns the number of
// streams then.
func (k *keptMachine) runUntilKept(t *testing.T) (streams int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		before := k.countStreams()
		k.run(t, "true")
		if k.countStreams() == before {
			return before
		}
	}
	t.Fatal("no command has used the keeper")
	return 0
}

// awaitKeeper waits until a keeper answers at its socket.
func (k *keptMachine) awaitKeeper(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := kept(t.Context(), k.wd, replica.Place{Set: keptSet}); errors.Is(err, errNotKept) {
			return
		}
	}
	t.Fatal("no keeper answers")
}

func (k *keptMachine) countStreams() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.streams
}

// end waits for the end of a keeper.
func (k *keptMachine) end(t *testing.T) {
	t.Helper()
	select {
	case err := <-k.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the keeper goes on")
	}
}

func TestCommandsThatFollowShareAStream(t *testing.T) {
	k := newKeptMachine(t)
	streams, started := k.runUntilKept(t), k.started
	big := bytes.Repeat([]byte("0123456789abcde\n"), 1<<19) // more than any window
	for range 3 {
		links := k.links()
		var out, errs bytes.Buffer
		exit, err := links.RunKept(t.Context(), k.wd, []string{`cat; echo "to stderr" >&2; exit 42`}, runtime.Command{Stdin: bytes.NewReader(big), Stdout: &out, Stderr: &errs}, func() { t.Error("a second keeper") })
		if err != nil || exit != 42 || !bytes.Equal(out.Bytes(), big) || errs.String() != "to stderr\n" {
			t.Errorf("exit %d, %v; %d bytes of %d; %q", exit, err, out.Len(), len(big), errs.String())
		}
		if err := links.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := k.countStreams(); now != streams || k.started != started {
		t.Errorf("%d streams, then %d; %d keepers, before %d", streams, now, k.started, started)
	}
}

// TestCommandsAtTheSameTimeHaveTheirOwnInput runs commands that share a stream.
func TestCommandsAtTheSameTimeHaveTheirOwnInput(t *testing.T) {
	k := newKeptMachine(t)
	streams := k.runUntilKept(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			text := fmt.Sprintf("input of command %d", i)
			links := k.links()
			defer links.Close()
			var out bytes.Buffer
			exit, err := links.RunKept(t.Context(), k.wd, []string{"cat"}, runtime.Command{Stdin: strings.NewReader(text), Stdout: &out, Stderr: io.Discard}, func() { t.Error("a second keeper") })
			if err != nil || exit != 0 || out.String() != text {
				t.Errorf("%q, exit %d, %v, want %q", out.String(), exit, err, text)
			}
		})
	}
	all.Wait()
	if now := k.countStreams(); now != streams {
		t.Errorf("%d streams, then %d", streams, now)
	}
}

func TestKeptCommandEndsWithItsContext(t *testing.T) {
	k := newKeptMachine(t)
	streams := k.runUntilKept(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &first{read: make(chan struct{})}
	go func() { <-out.read; cancel() }()
	_, err := k.links().RunKept(ctx, k.wd, []string{"echo $$; exec sleep 600"}, runtime.Command{Stdout: out, Stderr: io.Discard}, func() {})
	if !errors.Is(err, context.Canceled) || !isGone(t, out.text) {
		t.Errorf("%v; process %s", err, out.text)
	}
	if got := k.run(t, "echo more"); got != "more\n" || k.countStreams() != streams {
		t.Errorf("%q, %d streams, before %d", got, k.countStreams(), streams)
	}
}

func TestKeeperEndsWhenIdle(t *testing.T) {
	k := newKeptMachine(t)
	k.idle = 100 * time.Millisecond
	k.run(t, "true")
	k.end(t)
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if got := k.run(t, "echo more"); got != "more\n" || k.started != 2 {
		t.Errorf("%q, %d keepers", got, k.started)
	}
	k.end(t)
}

func TestKeeperDoesNotEndWhileACommandRuns(t *testing.T) {
	k := newKeptMachine(t)
	k.idle = 300 * time.Millisecond
	streams := k.runUntilKept(t)
	if got := k.run(t, "sleep 1; echo done"); got != "done\n" || k.countStreams() != streams {
		t.Errorf("%q, %d streams, before %d", got, k.countStreams(), streams)
	}
	k.end(t)
}

func TestKeeperEndsWithItsPods(t *testing.T) {
	k := newKeptMachine(t)
	k.runUntilKept(t)
	k.kill()
	k.end(t)
	k.record(t)
	if got := k.run(t, "echo more"); got != "more\n" {
		t.Errorf("%q", got)
	}
}

func TestReplacedPodIsConnectedToByTheCommand(t *testing.T) {
	k := newKeptMachine(t)
	k.runUntilKept(t)
	k.mu.Lock()
	k.number++ // as if the pod were another one; the stream to the old one goes on
	k.mu.Unlock()
	k.record(t)
	streams, started := k.countStreams(), k.started
	if got := k.run(t, "echo more"); got != "more\n" || k.countStreams() == streams || k.started != started {
		t.Errorf("%q, %d streams, before %d; %d keepers, before %d", got, k.countStreams(), streams, k.started, started)
	}
	k.runUntilKept(t)
}

func TestOneKeeperForAStart(t *testing.T) {
	k := newKeptMachine(t)
	ctx, cancel := context.WithCancel(t.Context())
	k.keep(ctx)
	k.awaitKeeper(t)
	k.runUntilKept(t)
	k.keep(t.Context())
	k.end(t) // the second
	k.runUntilKept(t)
	if k.started != 2 {
		t.Errorf("%d keepers, not the test's two", k.started)
	}
	cancel()
	k.end(t)
}

// TestKeeperMayStartWhileAnotherEnds checks that a folder has one keeper at a time, also if
// each removes it.
func TestKeeperMayStartWhileAnotherEnds(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var keepers, kept atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				folder, err := newKeeperFolder(keptSet)
				var held *filelock.HeldError
				if errors.As(err, &held) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := keepers.Add(1); n != 1 {
					t.Errorf("%d keepers", n)
				}
				kept.Add(1)
				if err := os.WriteFile(filepath.Join(folder.path, keeperSocket), nil, 0o600); err != nil {
					t.Error(err)
				}
				keepers.Add(-1)
				if err := folder.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if kept.Load() < 10 {
		t.Errorf("%d keepers, too few to meet one another", kept.Load())
	}
	if left, err := os.ReadDir(os.Getenv("XDG_RUNTIME_DIR")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestFolderOfAKeeperThatOthersCanUseIsNotUsed(t *testing.T) {
	k := newKeptMachine(t)
	folder := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), prefix+keptSet)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	answering(t, filepath.Join(folder, keeperSocket), "evil")
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := k.run(t, "echo mine"); got != "mine\n" {
		t.Errorf("%q", got)
	}
	select {
	case err := <-k.ended:
		if err == nil {
			t.Error("a keeper has used the folder")
		}
	case <-time.After(20 * time.Second):
		t.Error("a keeper uses the folder")
	}
}
