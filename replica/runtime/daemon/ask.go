package daemon

import (
	"context"
	"errors"

	"ovs-offline/internal/unixctl"
	"ovs-offline/replica/runtime"
)

// Ask gives a command to the daemon of that program ("ovs-vswitchd") whose pid
// file stands in runDir, and returns its answer: by its socket, which is here
// wherever the daemon runs, and else by the runtime's ovs-appctl. The error is a
// *command.Error.
func Ask(ctx context.Context, rt runtime.Runtime, runDir, program string, argv ...string) ([]byte, error) {
	out, err := unixctl.Run(ctx, runDir, program, argv...)
	if !errors.Is(err, unixctl.ErrUnreachable) {
		return out, err
	}
	return rt.Tool(ctx, runDir, nil, append([]string{"ovs-appctl", "-t", program}, argv...)...)
}
