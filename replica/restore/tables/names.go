package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ovs-offline/pkg/openflow"
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
	t.runs++
	err := t.sendAs(ctx, list, NoNames)
	bad, _, ok := parseError(err)
	if !ok || bad >= len(list) || ctx.Err() != nil {
		return err
	}
	may, failed := t.mayHoldNames(ctx, list[bad].text)
	if failed != nil || !may {
		return errors.Join(failed, err)
	}
	t.runs++
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

// comparable returns the function that returns the text by which a collected flow and one of the replica are compared. The replica prints
// names of tables only together with the names of ports (ovs-ofctl(8), --names). A text that names tables alone has the numbers of ports,
// so that each text gets these.
func (t *table) comparable(ctx context.Context) (func(openflow.Flow) string, error) {
	if t.names != withNames {
		return func(flow openflow.Flow) string { return flow.Text }, nil
	}
	var shown bytes.Buffer
	if err := t.Switch.Ofctl(ctx, Ofctl{Bridge: t.bridge.Name, Options: []string{NoNames, "-O", t.version.String()}, Command: "show", Stdout: &shown}); err != nil {
		return nil, err
	}
	form := openflow.Canonical{Oldest: t.dumpVersion(), Ports: map[string]int{}}
	for _, port := range openflow.Show(&shown).Ports {
		form.Ports[port.Name] = port.Number
	}
	return func(flow openflow.Flow) string {
		key := form.Key(flow)
		return fmt.Sprintf("%#x,%d,%d,%s,%s", key.Cookie, key.Table, key.Priority, key.Match, form.Actions(flow.Actions()))
	}, nil
}
