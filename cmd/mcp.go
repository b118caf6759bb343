package cmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ovs-offline/internal/fault"
	"ovs-offline/mcp"
)

// tokenVariable holds the token of a server that listens.
const tokenVariable = "OVS_OFFLINE_MCP_TOKEN"

type mcpOptions struct {
	*options
	root   string
	listen string
}

func newMCP(shared *options) *cobra.Command {
	o := &mcpOptions{options: shared}
	command := &cobra.Command{
		Use: "mcp", Short: "Serve the replicas to an assistant, with the Model Context Protocol", Args: exactArgs(),
		Long: "Serve the replicas of the working directory, or of a folder of several, to an assistant, with\n" +
			"the Model Context Protocol: on standard input and output, or with --listen over streamable\n" +
			"HTTP at an address of this machine. No tool changes what was collected.\n\n" +
			"With --listen, requests need a bearer token: the value of " + tokenVariable + ",\n" +
			"or a random one that is printed to stderr.",
		Example: "  ovs-offline -w nodes mcp --root ~/cases\n  ovs-offline -w nodes mcp --listen 127.0.0.1:8100",
		RunE:    func(command *cobra.Command, _ []string) error { return o.run(command.Context()) },
	}
	command.Flags().StringVar(&o.root, "root", "", "`FOLDER` from which the tools collect and compare may read; without it, the server lacks them")
	command.Flags().StringVar(&o.listen, "listen", "", "`ADDRESS:PORT` of this machine to listen at, instead of standard input and output")
	o.runtimeFlag(command)
	return command
}

func (o *mcpOptions) run(ctx context.Context) error {
	if o.root != "" {
		if info, err := os.Stat(o.root); err != nil {
			return fmt.Errorf("--root: %w", err)
		} else if !info.IsDir() {
			return fault.Usagef("--root takes a folder, and %s is not one", o.root)
		}
	}
	server := mcp.New(mcp.Options{Folder: o.workdir, Root: o.root, Runtime: o.runtime, Runtimes: runtimes(), Version: version})
	if o.listen == "" {
		return server.Serve(ctx, io.NopCloser(o.In), closer{o.Out})
	}
	token := cmp.Or(strings.TrimSpace(os.Getenv(tokenVariable)), rand.Text())
	return server.Listen(ctx, o.listen, token, func(url string) {
		fmt.Fprintf(o.Err, "listening at %s\n", url)
		if os.Getenv(tokenVariable) == "" {
			fmt.Fprintf(o.Err, "token: %s\n", token)
		}
	})
}

// closer is a stream that the end of a server leaves open.
type closer struct{ io.Writer }

func (closer) Close() error { return nil }
