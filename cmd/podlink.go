package cmd

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ovs-offline/replica/pods/link"
	"ovs-offline/workdir"
)

// newPodLink makes the hidden command that is the far end of the links to a pod.
func newPodLink(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "link", Short: "Serve the replicas in the working directory's folder to ovs-offline elsewhere, over standard input and output", Args: exactArgs(),
		RunE: func(command *cobra.Command, _ []string) error {
			return serveLink(command.Context(), o.workdir, stdio{o.In, o.Out})
		},
	}
}

// serveLink serves the replicas in a folder on a stream until that ends. What commands have left
// then ends with it: a container goes on after its client has gone.
func serveLink(ctx context.Context, folder string, stream io.ReadWriteCloser) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := link.Server{
		Root: folder,
		Run: func(ctx context.Context, args []string, stdin, stdout, stderr *os.File) int {
			return run(ctx, args, IO{In: stdin, Out: stdout, Err: stderr}, refuseHost)
		},
		Command: func(args []string) *exec.Cmd {
			return &exec.Cmd{Path: self, Args: append([]string{link.Program}, args...)}
		},
	}
	cut, err := server.Serve(ctx, stream)
	if cut && unix.Getpgrp() == os.Getpid() {
		_ = unix.Kill(0, unix.SIGKILL) // the process group of this command alone
	}
	return err
}

// refuseHost is the link.Open of commands in a pod.
func refuseHost(context.Context, *workdir.Dir, link.Attempt) (link.Host, error) {
	return nil, errors.New("the replica of a workdir in a pod can't run in another pod")
}

// stdio is standard input and output as a stream.
type stdio struct {
	io.Reader
	io.Writer
}

// Close closes standard input.
func (s stdio) Close() error {
	if closer, ok := s.Reader.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
