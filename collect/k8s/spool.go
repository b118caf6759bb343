package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// errLocal is wrapped by errors of this machine.
var errLocal = errors.New("the data could not be stored on this machine")

// maxQueue is how many pieces of up to 32 KiB may wait for a slow disk. The reader
// must not stop: the other side closes the connection when it has sent everything,
// and the end of the stream would be lost.
const maxQueue = 8192

// spool writes a stream to a file without making the stream wait for the disk. Writes
// after Close, from a connection that was abandoned, are dropped.
type spool struct {
	file   *os.File
	came   func(n int)
	queue  chan []byte
	done   chan error
	mu     sync.Mutex
	closed bool
}

func newSpool(path string, came func(n int), fail context.CancelCauseFunc) (*spool, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLocal, err)
	}
	spool := &spool{file: file, came: came, queue: make(chan []byte, maxQueue), done: make(chan error, 1)}
	go spool.drain(fail)
	return spool, nil
}

// drain writes the queue to the file. After an error it drops the rest.
func (s *spool) drain(fail context.CancelCauseFunc) {
	var err error
	for data := range s.queue {
		if err != nil {
			continue
		}
		if _, err = s.file.Write(data); err != nil {
			err = fmt.Errorf("%w: %w", errLocal, err)
			fail(err)
		}
	}
	if closeErr := s.file.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("%w: %w", errLocal, closeErr)
	}
	s.done <- err
}

// Write takes a copy of p.
func (s *spool) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	s.queue <- append([]byte(nil), data...)
	s.came(len(data))
	return len(data), nil
}

// Close waits until everything is written.
func (s *spool) Close() error {
	s.mu.Lock()
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	return <-s.done
}
