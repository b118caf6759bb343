package timeline

import (
	"container/list"
	"hash/maphash"
	"time"

	"ovs-offline/internal/daemonlog"
)

// window is how long after an entry similar entries are folded into it.
const window = 5 * time.Minute

// mostWaiting bounds the entries that wait for others like them.
const mostWaiting = 20_000

// folder folds entries into earlier ones like them, and passes them on in order.
type folder struct {
	yield   func(*Entry) error
	waiting *list.List // of *folding, the earliest first
	alike   map[uint64]*list.Element
	seed    maphash.Seed
	key     []byte
}

// folding is an entry while others are folded into it.
type folding struct {
	*Entry
	key uint64
	own int // lines of the program's own log
	all int // lines of syslog or the journal, which may have the same lines again
}

func newFolder(yield func(*Entry) error) *folder {
	return &folder{yield: yield, waiting: list.New(), alike: map[uint64]*list.Element{}, seed: maphash.MakeSeed()}
}

// add takes the next entry.
func (f *folder) add(entry *Entry) error {
	for f.waiting.Len() > 0 {
		first := f.waiting.Front().Value.(*folding)
		if entry.Time.Before(first.Time.Add(window)) && f.waiting.Len() < mostWaiting {
			break
		}
		if err := f.pass(); err != nil {
			return err
		}
	}
	key := f.keyOf(entry)
	if element := f.alike[key]; element != nil {
		element.Value.(*folding).fold(entry)
		return nil
	}
	added := &folding{Entry: entry, key: key}
	added.count(entry)
	f.alike[key] = f.waiting.PushBack(added)
	return nil
}

// fold adds an entry to one like it.
func (g *folding) fold(entry *Entry) {
	g.count(entry)
	g.Dropped += entry.Dropped
	if n := max(g.own, g.all); n > g.Count {
		g.Count = n
		if g.Until = entry.Time; g.Until.Before(g.Time) {
			g.Until = g.Time
		}
	}
}

func (g *folding) count(entry *Entry) {
	if entry.host {
		g.all += entry.Count
	} else {
		g.own += entry.Count
	}
}

// pass passes the first entry on.
func (f *folder) pass() error {
	first := f.waiting.Remove(f.waiting.Front()).(*folding)
	delete(f.alike, first.key)
	return f.yield(first.Entry)
}

// end passes all entries on.
func (f *folder) end() error {
	for f.waiting.Len() > 0 {
		if err := f.pass(); err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns a key that is equal for similar entries. It contains the names in the text, so that entries
// about different ports stay apart.
func (f *folder) keyOf(entry *Entry) uint64 {
	f.key = f.key[:0]
	for _, part := range []string{entry.Node, entry.Database, entry.Program, entry.Module, entry.Level} {
		f.key = append(append(f.key, part...), 0)
	}
	f.key = daemonlog.Folded(f.key, []byte(entry.Text))
	for _, name := range entry.Names {
		f.key = append(append(f.key, 0), name.Name...)
	}
	return maphash.Bytes(f.seed, f.key)
}
