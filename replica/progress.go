package replica

import (
	"fmt"
	"os"
	"sync"
	"time"

	"ovs-offline/workdir"
)

// progress calls the functions of the options that tell the user what a start does, one call at
// a time.
type progress struct {
	options Options
	mu      sync.Mutex
}

// starting prints that a daemon is being started.
func (p *progress) starting(role string) { p.call(p.options.Starting, role) }

// print prints what is being done.
func (p *progress) print(text string) { p.call(p.options.Progress, text) }

func (p *progress) call(function func(string), text string) {
	if function != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		function(text)
	}
}

// showDuration reports every second what is done with a database, until stop is
// called. Neither ovsdb-server nor ovn-trace reports its progress.
func (p *progress) showDuration(wd *workdir.Dir, kind workdir.Kind, what string) (stop func()) {
	info, err := os.Stat(wd.Database(kind))
	if err != nil {
		return func() {}
	}
	began, ended := time.Now(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				p.print(fmt.Sprintf("the %s database: %s %d MiB for %v", kind.Title(), what, info.Size()>>20, time.Since(began).Round(time.Second)))
			}
		}
	})
	return func() { close(ended); wg.Wait() }
}
