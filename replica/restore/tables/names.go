package tables

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Options of ovs-ofctl. NoNames keeps it from asking the switch for the names of
// all ports and tables before it sends entries: a megabyte, and two thirds of the
// time of a small change (measured, OVS 3.1). Dumps hold numbers unless they were
// printed on a terminal or with --names.
const (
	NoNames   = "--no-names"
	withNames = "--names"
)

// send adds all entries of a list or, if one of them cannot be added, none. It
// sends them without names, and if ovs-ofctl cannot read one that may hold names,
// again with them.
func (t *table) send(ctx context.Context, list []entry) error {
	err := t.sendAs(ctx, list, NoNames)
	bad, _, ok := parseError(err)
	if !ok || bad >= len(list) || ctx.Err() != nil {
		return err
	}
	may, failed := t.mayHoldNames(ctx, list[bad].text)
	if failed != nil || !may {
		return errors.Join(failed, err)
	}
	if err = t.sendAs(ctx, list, withNames); err == nil {
		t.names = withNames
	}
	return err
}

// sendAs is send with one option for names.
func (t *table) sendAs(ctx context.Context, list []entry, names string) error {
	version := list[0].version
	ofctl := Ofctl{Bridge: t.bridge.Name, Options: []string{"-O", version.String(), names}, Command: t.add, Args: []string{list[0].text}}
	if t.isList {
		ofctl.Args, ofctl.Stdin = []string{"-"}, &entryReader{list: list}
		if hasBundles(version) {
			ofctl.Options = append(ofctl.Options, "--bundle")
		}
	}
	return t.Switch.Ofctl(ctx, ofctl)
}

// portNameSize is the size in bytes of a port's name in OpenFlow 1.0 to 1.5
// (ofp_port), without the zero at its end.
const portNameSize = 15

// mayHoldNames reports whether a text may hold the name of a port or a flow table.
func (t *table) mayHoldNames(ctx context.Context, text string) (bool, error) {
	if strings.Contains(text, `"`) { // unusual names are quoted, some with escapes
		return true, nil
	}
	names, err := t.Switch.Names(ctx, t.bridge.Name)
	return slices.ContainsFunc(names, func(name string) bool {
		return name != "" && strings.Contains(text, name[:min(len(name), portNameSize)])
	}), err
}
