package k8s

import (
	"context"
	"io"
	"time"
)

// pulsePeriod is how often a pulse sends a line.
const pulsePeriod = 3 * time.Second

// pulse is the standard input of a command in a pod: an empty line now and then, by
// which the command knows that its client is still there, until ctx ends.
type pulse struct{ ctx context.Context }

// Read waits for the next line.
func (p pulse) Read(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	select {
	case <-p.ctx.Done():
		return 0, io.EOF
	case <-time.After(pulsePeriod):
		data[0] = '\n'
		return 1, nil
	}
}
