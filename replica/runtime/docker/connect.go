package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// answerTime is how long a daemon may take to say that it is there.
const answerTime = 3 * time.Second

// Connect connects to the docker daemon that docker's own client would talk to:
// DOCKER_HOST, the chosen context, or the system's socket.
func Connect(ctx context.Context) (*client.Client, error) {
	host, err := address()
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	path, local := strings.CutPrefix(host, "unix://")
	if !local {
		return nil, fmt.Errorf("docker at %s: only a daemon on this machine can reach the working directory: a unix:// address is needed", host)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("docker at %s: there is no such socket; start docker, or name it in DOCKER_HOST", host)
	}
	cli, err := client.New(client.WithHost(host))
	if err != nil {
		return nil, fmt.Errorf("docker at %s: %w", host, err)
	}
	asking, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if _, err := cli.Ping(asking, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		_ = cli.Close()
		if asking.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("docker at %s does not answer within %v", host, answerTime)
		}
		return nil, fmt.Errorf("docker at %s: %w", host, err)
	}
	return cli, nil
}

// address is where docker's own client would look.
func address() (string, error) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return host, nil
	}
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return client.DefaultDockerHost, nil // nobody's configuration
		}
		dir = filepath.Join(home, ".docker")
	}
	var config struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := readJSON(filepath.Join(dir, "config.json"), &config); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	name := cmp.Or(os.Getenv("DOCKER_CONTEXT"), config.CurrentContext)
	if name == "" || name == "default" {
		return client.DefaultDockerHost, nil
	}
	return contextAddress(dir, name)
}

// contextAddress reads a context as docker stores it (docker/cli,
// cli/context/store): in a folder named for the sum of its name.
func contextAddress(dir, name string) (string, error) {
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	path := filepath.Join(dir, "contexts", "meta", fmt.Sprintf("%x", sha256.Sum256([]byte(name))), "meta.json")
	if err := readJSON(path, &meta); err != nil {
		return "", fmt.Errorf("context %q: %w", name, err)
	}
	host := meta.Endpoints["docker"].Host
	if host == "" {
		return "", fmt.Errorf("context %q has no docker endpoint (%s)", name, path)
	}
	return host, nil
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
