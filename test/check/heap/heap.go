// Package heap measures memory for benchmarks.
package heap

import (
	"runtime"
	"time"
)

// Peak runs do and returns the greatest size of the heap and the stacks meanwhile, in MB.
func Peak(do func()) float64 {
	stop, done := make(chan bool), make(chan uint64)
	go func() {
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse+m.StackInuse)
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	do()
	close(stop)
	return float64(<-done) / 1e6
}
