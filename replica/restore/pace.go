package restore

import (
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"
)

// pace tells the progress of what can take long: how far it is, how fast, and
// how long the rest will take.
type pace struct {
	node  *Node
	what  string
	began time.Time
	told  int
}

func (n *Node) pace(what string) *pace { return &pace{node: n, what: what, began: time.Now()} }

// tell says that count things are done, which is done of the total of some
// measure; total is 0 where it is not known.
func (p *pace) tell(count int, done, total int64) {
	const between = 1000 // of those that it is told one by one
	if p.node.Progress == nil || count < p.told+between {
		return
	}
	p.told = count
	spent := time.Since(p.began)
	text := fmt.Sprintf("%s %d", p.what, count)
	if spent > 0 {
		text += fmt.Sprintf(" (%.0f a second", float64(count)/spent.Seconds())
		if done > 0 && done <= total {
			left := time.Duration(float64(spent) / float64(done) * float64(total-done))
			text += fmt.Sprintf(", %d %%, %v left", done*100/total, left.Round(time.Second))
		}
		text += ")"
	}
	p.node.say(text)
}

// portion is a file that is being read, and how much of it was.
type portion struct {
	io.Reader
	size int64 // 0 where it is not known
	done atomic.Int64
}

func newPortion(r io.Reader) *portion {
	p := &portion{Reader: r}
	if f, ok := r.(fs.File); ok {
		if info, err := f.Stat(); err == nil {
			p.size = info.Size()
		}
	}
	return p
}

func (p *portion) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.done.Add(int64(n))
	return n, err
}
