package pods

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// exitEnded is the exit code of a pod's container that was stopped. It is not 0, with which
// an evicted pod would count as complete, and would not be replaced.
const exitEnded = 128 + int(unix.SIGTERM)

// Wait is the first process of a pod: it reaps the processes that are left to it until ctx
// ends or it is to terminate, and returns the exit code. All daemons end with it.
func Wait(ctx context.Context) (exit int) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	defer signal.Stop(children)
	for {
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
		}
		select {
		case <-ctx.Done():
			return exitEnded
		case <-children:
		}
	}
}
