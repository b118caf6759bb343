package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"ovs-offline/replica"
	"ovs-offline/replica/pods"
	"ovs-offline/replica/pods/link"
	"ovs-offline/replica/report"
	"ovs-offline/replica/runtime"
	"ovs-offline/workdir"
)

// hostilePod is a pod in which something else runs than ovs-offline.
type hostilePod struct{ out, errs string }

func (hostilePod) Pod() string    { return "hostile" }
func (hostilePod) Folder() string { return "/replicas/set/n" }
func (hostilePod) String() string { return "pod test/generate/hostile" }
func (hostilePod) Exec(context.Context, runtime.Command) (int, error) {
	return 0, errors.New("no terminal")
}

// Stream answers each command with a text on each of its outputs.
func (h hostilePod) Stream(ctx context.Context, _ ...string) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	server := link.Server{Root: os.TempDir(), Run: func(_ context.Context, _ []string, _, out, errs *os.File) int {
		fmt.Fprint(out, h.out)
		fmt.Fprint(errs, h.errs)
		return 0
	}}
	go server.Serve(ctx, far)
	return near, nil
}

// controls is a text that controls a terminal.
const controls = "\x1b]0;title\x07 \x1b[2J\r\u009b31m"

// isHarmless reports whether a text does not control a terminal.
func isHarmless(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
}

// hostileWorkdir returns a workdir whose replica runs in a pod, with a report from there.
func hostileWorkdir(t *testing.T, r *report.Report) *workdir.Dir {
	t.Helper()
	wd, err := workdir.Lock(filepath.Join(t.TempDir(), "wd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wd.Unlock)
	place := replica.Place{Namespace: "test", Pod: "pod-0", Folder: "/replicas/set/n"}
	if err := (replica.Elsewhere{Runtime: pods.Name, Place: place, Exec: []string{"true"}}).Complete(wd, r); err != nil {
		t.Fatal(err)
	}
	state, err := replica.LastState(wd)
	if err != nil {
		t.Fatal(err)
	}
	state.Kinds = []workdir.Kind{workdir.OVS}
	if err := workdir.WriteJSON(wd.ReplicaFile(), state); err != nil {
		t.Fatal(err)
	}
	return wd
}

// runOn runs a command on the workdir.
func (h hostilePod) runOn(t *testing.T, wd *workdir.Dir, args ...string) printed {
	var out, errs bytes.Buffer
	exit := run(t.Context(), append([]string{"-w", wd.Path()}, args...),
		IO{In: strings.NewReader(""), Out: &out, Err: &errs},
		func(context.Context, *workdir.Dir, link.Attempt) (link.Host, error) { return h, nil })
	return printed{out.String(), errs.String(), exit}
}

// TestPodDoesNotControlTheTerminal shows what commands of ovs-offline print that run in a
// pod: what there claims to be ovs-offline may be something else.
func TestPodDoesNotControlTheTerminal(t *testing.T) {
	wd := hostileWorkdir(t, &report.Report{})
	pod := hostilePod{out: "first\tline\n" + controls + " last", errs: "first\tline\n" + controls + " last"}
	for _, command := range []string{"logs", "diff", "drift"} {
		got := pod.runOn(t, wd, command)
		for _, text := range []string{got.out, got.err} {
			if !strings.HasPrefix(text, "first\tline\n") || !strings.HasSuffix(text, "last\n") || !isHarmless(text) {
				t.Errorf("%s: exit %d, %q", command, got.exit, text)
			}
		}
	}
}

// TestDocumentsOfAPodDoNotControlTheTerminal shows what is printed of the documents that a
// pod has sent, if each text in them is hostile.
func TestDocumentsOfAPodDoNotControlTheTerminal(t *testing.T) {
	var r report.Report
	fillTexts(reflect.ValueOf(&r).Elem(), 0)
	wd := hostileWorkdir(t, &r)
	var status replica.Status
	fillTexts(reflect.ValueOf(&status).Elem(), 0)
	var shown struct {
		Sockets replica.Sockets `json:"sockets"`
	}
	fillTexts(reflect.ValueOf(&shown).Elem(), 0)
	shown.Sockets.Databases[string(workdir.OVS)] = controls
	for command, document := range map[string]any{"status": status, "show": shown, "report": nil} {
		raw, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		pod := hostilePod{out: string(raw)}
		for _, format := range []string{"table", "json", "yaml"} {
			got := pod.runOn(t, wd, command, "-o", format)
			for _, line := range strings.Split(got.out+got.err, "\n") {
				if !isHarmless(line) {
					t.Errorf("%s -o %s: %q", command, format, line)
				}
			}
			if !strings.Contains(got.out, "title") {
				t.Errorf("%s -o %s prints no text of the pod: exit %d, %s%s", command, format, got.exit, got.out, got.err)
			}
		}
	}
}

// fillTexts sets each text in a value to one that controls a terminal. Each list and map gets
// one element.
func fillTexts(v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(controls)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillTexts(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillTexts(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillTexts(key, depth+1)
		fillTexts(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fillTexts(v.Field(i), depth+1)
		}
	}
}
