package set

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"ovs-offline/replica"
	"ovs-offline/workdir"
)

// The memory of a replica beside what ovs-vswitchd loads, measured: an ovsdb-server takes 5.5
// times the size of its file.
const (
	perDatabaseByte = 5.5
	baseMemory      = 64 << 20
)

// memoryNeed returns about how many bytes of memory the replica of a workdir takes.
// users holds the number of replicas that share the server of a database.
func memoryNeed(wd *workdir.Dir, users map[workdir.Kind]int) int64 {
	need, databases := memoryParts(wd)
	for kind, size := range databases {
		need += size / int64(max(1, users[kind]))
	}
	return need
}

// memoryParts returns about how many bytes of memory the replica of a workdir takes without
// the servers of its OVN databases, and how many each of these takes.
func memoryParts(wd *workdir.Dir) (own int64, databases map[workdir.Kind]int64) {
	need := float64(baseMemory)
	databases = map[workdir.Kind]int64{}
	for _, kind := range workdir.Kinds() {
		info, err := os.Stat(wd.Database(kind))
		switch {
		case err != nil: // it was not collected
		case kind == workdir.OVS:
			need += 2 * perDatabaseByte * float64(info.Size()) // one server as it was recorded
		default:
			databases[kind] = int64(perDatabaseByte * float64(info.Size()))
		}
	}
	return int64(need) + replica.MemoryToLoad(wd), databases
}

// gate lets starts begin while this machine has memory for them.
type gate struct {
	available func() (bytes int64, known bool)

	mu      sync.Mutex
	waiting chan struct{} // closed when a start has ended
	starts  int           // in progress
	need    int64         // of these
}

func newGate() *gate { return &gate{available: availableMemory, waiting: make(chan struct{})} }

// enter waits until there is memory for a start that needs that much, or no other is in
// progress, and returns what is lacking then: "" for nothing.
func (g *gate) enter(ctx context.Context, need int64) (lacking string, err error) {
	for {
		g.mu.Lock()
		available, known := g.available()
		enough := !known || available-g.need >= need
		if enough || g.starts == 0 {
			g.starts++
			g.need += need
			g.mu.Unlock()
			if !enough {
				lacking = fmt.Sprintf("its replica takes about %d MiB of memory, and %d MiB are available: --node starts fewer nodes", need>>20, available>>20)
			}
			return lacking, nil
		}
		ended := g.waiting
		g.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-ended:
		}
	}
}

// leave reports the end of a start.
func (g *gate) leave(need int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.starts--
	g.need -= need
	close(g.waiting)
	g.waiting = make(chan struct{})
}

// availableMemory returns the memory that new processes can use without swapping; it is
// not known outside Linux.
func availableMemory() (bytes int64, known bool) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kibibytes int64
			_, err := fmt.Sscan(rest, &kibibytes)
			return kibibytes << 10, err == nil
		}
	}
	return 0, false
}
