package cmd

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"ovs-offline/internal/logging"
	"ovs-offline/internal/workdir"
	"ovs-offline/pods"
	"ovs-offline/pods/link"
	"ovs-offline/replica/runtime/choose"
)

// keeperIdle is how long a keeper waits for the next command.
const keeperIdle = time.Minute

// newPodKeep makes the hidden command that is the keeper of the streams to pods. It runs
// where the commands of the user run, not in a pod.
func newPodKeep(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "keep", Short: "Keep the streams to the pods of replicas open for the commands that follow", Args: exactArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			wd, err := workdir.Find(o.workdir)
			if err != nil {
				return err
			}
			clusters := pods.NewClusters(version)
			links := link.New(func(ctx context.Context, wd *workdir.Dir) (link.Host, error) {
				host, err := clusters.Recorded(ctx, wd)
				if err != nil {
					return nil, err // and no Host that is a nil *pods.Host
				}
				return host, nil
			})
			defer links.Close()
			return links.Keep(c.Context(), wd, keeperIdle)
		},
	}
}

// startKeeper starts a keeper, which goes on when this command has ended. Without one, the
// next command just takes longer.
func startKeeper(ctx context.Context, wd *workdir.Dir) {
	argv, err := choose.Self(wd)
	if err == nil {
		argv = append(argv, "pod", "keep")
		keeper := exec.Command(argv[0], argv[1:]...)
		// It keeps no file system of the user busy, and Ctrl-C on the terminal is not for it.
		keeper.Dir = "/"
		keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = keeper.Start()
	}
	logging.FromContext(ctx).Debug("start keeper", "argv", argv, "error", err)
}
