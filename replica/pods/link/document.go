package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// maxDocument bounds a document in bytes. The status of a replica has some KiB, and a list
// of all flows of a node that drifted 100 MiB.
const maxDocument = 256 << 20

// Document runs a command of ovs-offline on the workdir of a replica in its pod, with
// "-o json", and reads what it prints into value. A command that prints a document has not
// failed, whatever its exit code.
func (l *Links) Document(ctx context.Context, wd *workdir.Dir, value any, args ...string) error {
	out, messages := &limited{most: maxDocument}, &limited{most: 16 << 10}
	exit, err := l.Run(ctx, wd, append(args, "--output=json"), runtime.Command{Stdout: out, Stderr: messages})
	if err != nil {
		return err
	}
	if out.over {
		return fmt.Errorf("\"ovs-offline %s\" in the pod printed more than %d MiB", args[0], maxDocument>>20)
	}
	if err := json.Unmarshal(out.Bytes(), value); err != nil {
		if text := strings.TrimSpace(messages.String()); exit != 0 && text != "" {
			return errors.New(errorIn(text))
		}
		return fmt.Errorf("\"ovs-offline %s\" in the pod ended with exit code %d, and what it printed can't be read: %w", args[0], exit, err)
	}
	return nil
}

// errorIn returns the error among the messages of ovs-offline, which comes last, or else
// the messages.
func errorIn(messages string) string {
	const mark = Program + ": "
	if i := strings.LastIndex("\n"+messages, "\n"+mark); i >= 0 {
		return messages[i+len(mark):]
	}
	return messages
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	most int
	over bool
}

// Write keeps what fits.
func (l *limited) Write(data []byte) (int, error) {
	kept := data[:min(len(data), l.most-l.Len())]
	l.over = l.over || len(kept) < len(data)
	l.Buffer.Write(kept)
	return len(data), nil
}
