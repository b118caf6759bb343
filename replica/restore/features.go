package restore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"ovs-offline/pkg/openflow/appctl"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
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

// restoreFeatures lowers the features of the datapath to the live one's:
// they decide into which datapath actions ovs-vswitchd translates flows.
func restoreFeatures(ctx context.Context, sw *Switch, rec *Recorded, outcome *report.Outcome) error {
	for _, bridge := range sw.Bridges {
		live, err := liveFeatures(rec, bridge, outcome)
		if err != nil {
			return err
		}
		out, err := sw.appctl(ctx, "dpif/set-dp-features", bridge.Name)
		if err != nil {
			outcome.Note(report.Unknown, "%s: this version of OVS can't set datapath features: %v", bridge.Name, err)
			continue
		}
		if err := setFeatures(ctx, sw, bridge, live, appctl.SettableFeatures(out), outcome); err != nil {
			return err
		}
	}
	return nil
}

// liveFeatures returns the live datapath's features by title. If they were not
// collected they are a kernel datapath's, unless the bridge had another.
func liveFeatures(rec *Recorded, bridge *Bridge, outcome *report.Outcome) (map[string]string, error) {
	text, err := rec.bridgeText(bridge, workdir.RecordedFeatures)
	live := appctl.Features(text)
	if len(live) > 0 || err != nil {
		return live, err
	}
	if bridge.hasKernelDatapath() {
		outcome.Note(report.Approximated, "%s: no dpif/show-dp-features was collected: the features of a Linux 6.1 kernel are used", bridge.Name)
		return kernelFeatures(), nil
	}
	outcome.Note(report.Unknown, "%s: no dpif/show-dp-features was collected for its %s datapath", bridge.Name, bridge.DatapathType)
	return nil, nil
}

func setFeatures(ctx context.Context, sw *Switch, bridge *Bridge, live map[string]string, settable map[string]appctl.SettableFeature, outcome *report.Outcome) error {
	for _, title := range slices.Sorted(maps.Keys(live)) {
		feature, known := settable[title]
		want := live[title]
		switch {
		case want == feature.Value, !known && (want == "false" || want == "0"):
			outcome.Note(report.Restored, "")
		case !known:
			outcome.Note(report.Unknown, "%s: this version of OVS has no datapath feature %q (live: %s)", bridge.Name, title, want)
		default:
			if err := setFeature(ctx, sw, bridge, title, feature.Name, want); err != nil {
				outcome.Note(report.Approximated, "%s: datapath feature %q stays %s (live: %s): it can only be lowered", bridge.Name, title, feature.Value, want)
			} else {
				outcome.Note(report.Restored, "")
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
func setFeature(ctx context.Context, sw *Switch, bridge *Bridge, title, name, value string) error {
	if _, err := sw.appctl(ctx, "dpif/set-dp-features", bridge.Name, name, value); err != nil {
		return err
	}
	out, err := sw.appctl(ctx, "dpif/set-dp-features", bridge.Name)
	if err == nil && appctl.SettableFeatures(out)[title].Value != value {
		err = errors.New("not set")
	}
	return err
}
