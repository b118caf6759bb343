package replica

import (
	"fmt"
	"os"
	"time"

	"ovs-offline/internal/workdir"
)

// tellLoading says each second that a database is still being made ready and
// loaded, until it is told to stop. How far ovsdb-server is, it tells nobody.
func (s *starter) tellLoading(k workdir.Kind) (stop func()) {
	info, err := os.Stat(s.wd.Database(k))
	if err != nil || s.opts.Progress == nil {
		return func() {}
	}
	began, ended, done := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				s.mu.Lock()
				s.opts.Progress(fmt.Sprintf("the %s database: %d MiB are being loaded, for %v", k.Title(), info.Size()>>20, time.Since(began).Round(time.Second)))
				s.mu.Unlock()
			}
		}
	}()
	return func() { close(ended); <-done }
}
