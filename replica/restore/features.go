package restore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"ovs-offline/internal/appctl"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
)

// kernelFeatures returns the features of a Linux kernel datapath that differ from a
// dummy's, by title (Linux 6.1, OVS 3.1).
func kernelFeatures() map[string]string {
	return map[string]string{
		"Tunnel push pop":            "false",
		"Max dp_hash algorithm":      "0",
		"Explicit Drop action":       "false",
		"Optimized Balance TCP mode": "false",
		"IPv6 ND Extension":          "false",
	}
}

// restoreFeatures lowers the features of the datapath to those of the live one:
// they decide into which datapath actions ovs-vswitchd translates flows.
func restoreFeatures(ctx context.Context, s *Switch, rec *Recorded, o *report.Outcome) error {
	for _, b := range s.Bridges {
		live, err := liveFeatures(rec, b, o)
		if err != nil {
			return err
		}
		out, err := s.appctl(ctx, "dpif/set-dp-features", b.Name)
		if err != nil {
			o.Note(report.Unknown, "%s: this version of OVS can't set datapath features: %v", b.Name, err)
			continue
		}
		if err := setFeatures(ctx, s, b, live, appctl.SettableFeatures(out), o); err != nil {
			return err
		}
	}
	return nil
}

// liveFeatures returns the live datapath's features by title. If they were not
// collected they are those of a kernel datapath, unless the bridge had another.
func liveFeatures(rec *Recorded, b *Bridge, o *report.Outcome) (map[string]string, error) {
	text, err := rec.bridgeText(b, workdir.RecordedFeatures)
	live := appctl.Features(text)
	if len(live) > 0 || err != nil {
		return live, err
	}
	if b.hasKernelDatapath() {
		o.Note(report.Approximated, "%s: no dpif/show-dp-features was collected: the features of a Linux 6.1 kernel are used", b.Name)
		return kernelFeatures(), nil
	}
	o.Note(report.Unknown, "%s: no dpif/show-dp-features was collected for its %s datapath", b.Name, b.DatapathType)
	return nil, nil
}

func setFeatures(ctx context.Context, s *Switch, b *Bridge, live map[string]string, settable map[string]appctl.SettableFeature, o *report.Outcome) error {
	for _, title := range slices.Sorted(maps.Keys(live)) {
		feature, known := settable[title]
		want := live[title]
		switch {
		case want == feature.Value, !known && (want == "false" || want == "0"):
			o.Note(report.Restored, "")
		case !known:
			o.Note(report.Unknown, "%s: this version of OVS has no datapath feature %q (live: %s)", b.Name, title, want)
		default:
			if err := setFeature(ctx, s, b, title, feature.Name, want); err != nil {
				o.Note(report.Approximated, "%s: datapath feature %q stays %s (live: %s): it can only be lowered", b.Name, title, feature.Value, want)
			} else {
				o.Note(report.Restored, "")
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// setFeature sets a feature and reads it back: ovs-vswitchd refuses to raise one,
// but does not answer with an error.
func setFeature(ctx context.Context, s *Switch, b *Bridge, title, name, value string) error {
	if _, err := s.appctl(ctx, "dpif/set-dp-features", b.Name, name, value); err != nil {
		return err
	}
	out, err := s.appctl(ctx, "dpif/set-dp-features", b.Name)
	if err == nil && appctl.SettableFeatures(out)[title].Value != value {
		err = errors.New("not set")
	}
	return err
}
