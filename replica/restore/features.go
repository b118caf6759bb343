package restore

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"ovs-offline/internal/openflow"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

func (n *Node) show(b *Bridge) (openflow.Description, bool, error) {
	f, ok, err := n.recorded(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedShow))
	if !ok {
		return openflow.Description{}, false, err
	}
	defer f.Close()
	text, _, err := n.first(f)
	if err != nil {
		return openflow.Description{}, false, err
	}
	return openflow.Show(text), true, nil
}

// kernelFeatures are those of a Linux kernel datapath that differ from a
// dummy's, by title (Linux 6.1, OVS 3.1).
func kernelFeatures() map[string]string {
	return map[string]string{
		"Tunnel push pop":            "No",
		"Max dp_hash algorithm":      "0",
		"Explicit Drop action":       "No",
		"Optimized Balance TCP mode": "No",
		"IPv6 ND Extension":          "No",
	}
}

// settable matches a line of dpif/set-dp-features: name (Title) : [run time]:value, ...
var settable = regexp.MustCompile(`^(\S+) \((.*)\) : \[run time\]:([^,]*)`)

// restoreFeatures lowers what the datapath says it can do to what the live
// one could: it steers which actions a trace ends in.
func restoreFeatures(ctx context.Context, n *Node, o *report.Outcome) error {
	for _, b := range n.Bridges {
		live, err := n.liveFeatures(b, o)
		if err != nil {
			return err
		}
		out, err := n.appctl(ctx, "dpif/set-dp-features", b.Name)
		if err != nil {
			o.Note(report.Unknown, "%s: this version of OVS can't set datapath features: %v", b.Name, err)
			continue
		}
		if err := n.setFeatures(ctx, b, live, string(out), o); err != nil {
			return err
		}
	}
	return nil
}

// liveFeatures are the recorded ones by title; a node that was never asked had
// a kernel's, unless its bridge was of another datapath.
func (n *Node) liveFeatures(b *Bridge, o *report.Outcome) (map[string]string, error) {
	text, err := n.text(n.Workdir.BridgeRecorded(b.Name, workdir.RecordedFeatures))
	if err != nil {
		return nil, err
	}
	live := map[string]string{}
	scanner := bufio.NewScanner(strings.NewReader(text))
	for scanner.Scan() {
		if title, value, ok := strings.Cut(scanner.Text(), ": "); ok {
			live[title] = strings.TrimSpace(value)
		}
	}
	if len(live) > 0 {
		return live, nil
	}
	if b.DatapathType == "" || b.DatapathType == "system" {
		o.Note(report.Approximated, "%s: no dpif/show-dp-features was collected: those of a Linux 6.1 kernel are used", b.Name)
		return kernelFeatures(), nil
	}
	o.Note(report.Unknown, "%s: no dpif/show-dp-features was collected for its %s datapath", b.Name, b.DatapathType)
	return live, nil
}

func (n *Node) setFeatures(ctx context.Context, b *Bridge, live map[string]string, have string, o *report.Outcome) error {
	titles := make([]string, 0, len(live))
	for title := range live {
		titles = append(titles, title)
	}
	sort.Strings(titles)
	byTitle := map[string][2]string{}
	for line := range strings.Lines(have) {
		if m := settable.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			byTitle[m[2]] = [2]string{m[1], m[3]}
		}
	}
	for _, title := range titles {
		feature, known := byTitle[title]
		want := spelled(live[title])
		if !known && (want == "false" || want == "0") {
			o.Note(report.Restored, "") // the live datapath had not what this version does not know
			continue
		}
		if !known {
			o.Note(report.Unknown, "%s: this version of OVS has no datapath feature %q (live: %s)", b.Name, title, live[title])
			continue
		}
		if want == feature[1] {
			o.Note(report.Restored, "")
			continue
		}
		if err := n.setFeature(ctx, b, feature[0], want); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			o.Note(report.Approximated, "%s: datapath feature %q stays %s (live: %s): it can only be lowered", b.Name, title, feature[1], want)
			continue
		}
		o.Note(report.Restored, "")
	}
	return nil
}

// setFeature sets and reads back: ovs-vswitchd accepts no raise, and says so
// in its answer with exit code 0.
func (n *Node) setFeature(ctx context.Context, b *Bridge, name, value string) error {
	if _, err := n.appctl(ctx, "dpif/set-dp-features", b.Name, name, value); err != nil {
		return err
	}
	out, err := n.appctl(ctx, "dpif/set-dp-features", b.Name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		if m := settable.FindStringSubmatch(strings.TrimSpace(line)); m != nil && m[1] == name && m[3] == value {
			return nil
		}
	}
	return fmt.Errorf("%s was not set to %s", name, value)
}

// spelled turns the Yes and No of dpif/show-dp-features into what set-dp-features takes.
func spelled(value string) string {
	switch value {
	case "Yes":
		return "true"
	case "No":
		return "false"
	}
	return value
}
