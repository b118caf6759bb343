package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Tools is an image with the tools of OVS and OVN of this machine, and with ovs-offline.
type Tools struct {
	Name string // with a tag
	File string // in the format of `docker save`
}

// WriteTools lets the program ovs-offline write the image to a file.
func WriteTools(ctx context.Context, path, program string) (Tools, error) {
	t := Tools{Name: "localhost/ovs-offline:test", File: path}
	out, err := exec.CommandContext(ctx, program, "image", "push", "--force", "docker-archive:"+t.File+":"+t.Name).CombinedOutput()
	if err != nil {
		return Tools{}, fmt.Errorf("writing the image of the tools: %w: %s", err, bytes.TrimSpace(out))
	}
	return t, nil
}
