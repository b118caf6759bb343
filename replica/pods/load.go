package pods

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"ovs-offline/internal/kube"
	"ovs-offline/replica/report"
	"ovs-offline/workdir/bundle"
)

var (
	// errVersion is wrapped when the image holds another version of this program.
	errVersion = errors.New("another version of ovs-offline")
	// errRefused is wrapped by the errors that ovs-offline in the pod prints.
	errRefused = errors.New("ovs-offline in the pod failed")
)

// isFinal reports whether another try would fail in the same way.
func isFinal(err error) bool {
	return errors.Is(err, errVersion) || errors.Is(err, errRefused) || kube.IsForbidden(err)
}

// checkVersion returns an error if the image is of another version of this program.
func (h *Host) checkVersion(ctx context.Context, version, image string) error {
	var out document
	if err := h.run(ctx, []string{program, "--version"}, nil, &out, nil); err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	there, _ := strings.CutPrefix(strings.TrimSpace(out.String()), program+" version ")
	if there != version {
		return fmt.Errorf("%w is in the image %s: %q, and this is %q: \"ovs-offline image push\" makes and pushes an image with this one", errVersion, image, there, version)
	}
	return nil
}

// start loads workdirs into the pod and starts their replicas. The outcomes are in the
// order of the nodes.
func (h *Host) start(ctx context.Context, nodes []Workdir, version string, notify func(node, text string)) ([]Outcome, error) {
	if err := h.load(ctx, nodes, version, notify); err != nil {
		return nil, fmt.Errorf("loading the collection into %s: %w", h, err)
	}
	argv := []string{program, "--workdir=" + folder, "start", "--runtime=process", "--output=json"}
	for _, node := range nodes {
		argv = append(argv, "--node="+node.Name)
	}
	var out document
	failed := h.run(ctx, argv, nil, &out, nil)
	if failed != nil && !errors.Is(failed, errRefused) {
		return nil, fmt.Errorf("starting replicas in %s: %w", h, failed) // the stream may still be read
	}
	var started struct {
		Nodes  map[string]*report.Report
		Failed map[string]string
	}
	if err := json.Unmarshal(out.Bytes(), &started); err != nil {
		return nil, fmt.Errorf("starting replicas in %s: %w", h, cmp.Or(failed, err))
	}
	outcomes := make([]Outcome, len(nodes))
	for i, node := range nodes {
		if outcomes[i].Report = started.Nodes[node.Name]; outcomes[i].Report == nil {
			outcomes[i].Err = fmt.Errorf("%s: %s", h, cmp.Or(started.Failed[node.Name], "the report of "+program+" there lacks the node"))
			continue
		}
		place := h.place
		place.Folder = pathInPod(node.Name)
		elsewhere, err := elsewhere(node, place)
		if err == nil {
			err = elsewhere.Complete(node.Dir, outcomes[i].Report)
		}
		outcomes[i].Err = err
	}
	return outcomes, nil
}

// load streams the collected data of workdirs into the pod, in place of what is there of
// these nodes.
func (h *Host) load(ctx context.Context, nodes []Workdir, version string, notify func(node, text string)) error {
	var packed []bundle.Workdir
	for _, node := range nodes {
		packed = append(packed, bundle.Workdir{Name: node.Name, Dir: node.Dir})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reader, writer := io.Pipe()
	saved := make(chan error, 1)
	go func() {
		remarks, err := bundle.SaveSet(ctx, packed, version, bundle.Extras{}, writer)
		for _, text := range remarks {
			notify("", "warning: "+text)
		}
		writer.CloseWithError(err)
		saved <- err
	}()
	err := h.run(ctx, []string{program, "--workdir=" + folder, "load", "--force", "-"}, reader, io.Discard, func(line string) { notify("", h.String()+": "+line) })
	reader.Close()
	cancel()
	return errors.Join(err, ignoreEnd(<-saved))
}

// ignoreEnd returns nil for the error of a writer whose reader has ended: the reader's
// error has the reason.
func ignoreEnd(err error) error {
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// run runs ovs-offline in the pod. Exit code 3 means that it did its work. line is called
// for each line on stderr; nil for none. The error has the end of stderr. A stream that is
// silent for too long ends the run.
func (h *Host) run(parent context.Context, argv []string, stdin io.Reader, stdout io.Writer, line func(string)) error {
	ctx, alive, cancel := kube.UntilSilent(parent, kube.DefaultTimeout)
	defer cancel()
	if stdin != nil {
		stdin = watchedReader{stdin, alive}
	}
	var end tail
	stderr := io.Writer(&end)
	if line != nil {
		lines, writer := io.Pipe()
		printed := make(chan struct{})
		go func() { defer close(printed); eachLine(lines, line) }()
		defer func() { writer.Close(); <-printed }()
		stderr = io.MultiWriter(&end, writer)
	}
	err := h.cluster.client.Exec(ctx, h.command(argv, stdin, watchedWriter{stdout, alive}, watchedWriter{stderr, alive}))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	exit, err := exitOf(err)
	const incomplete = 3
	switch {
	case err != nil:
		return h.unreachable(parent, err)
	case exit == 0 || exit == incomplete:
		return nil
	}
	if exit == exitKilled { // as when the pod ends; the next one may not be killed
		return fmt.Errorf("%s in the pod was killed", program)
	}
	return fmt.Errorf("%w: exit code %d: %s", errRefused, exit, end.text())
}

// eachLine calls do with each line that is read, without its end.
func eachLine(r io.Reader, do func(string)) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		do(lines.Text())
	}
	_, _ = io.Copy(io.Discard, r) // after a line that is too long
}

// document is the output of ovs-offline in the pod. What runs there may be anything.
type document struct{ bytes.Buffer }

const maxDocument = 256 << 20

// Write refuses what is too long for a document.
func (d *document) Write(data []byte) (int, error) {
	if d.Len()+len(data) > maxDocument {
		return 0, fmt.Errorf("%w: it printed more than %d MiB", errRefused, maxDocument>>20)
	}
	return d.Buffer.Write(data)
}

// watchedReader and watchedWriter call alive for each part of a stream.
type watchedReader struct {
	io.Reader
	alive func()
}

func (r watchedReader) Read(data []byte) (int, error) {
	r.alive()
	return r.Reader.Read(data)
}

type watchedWriter struct {
	io.Writer
	alive func()
}

func (w watchedWriter) Write(data []byte) (int, error) {
	w.alive()
	return w.Writer.Write(data)
}
