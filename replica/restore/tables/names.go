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

// sendNamed sends flows or groups: without names, and if ovs-ofctl cannot read
// one that may hold names, again with them. It returns the option that it used.
func (t *Tables) sendNamed(ctx context.Context, b Bridge, command string, list []entry) (names string, err error) {
	err = t.send(ctx, b, command, list, NoNames)
	bad, _, ok := parseError(err)
	if !ok || bad >= len(list) || ctx.Err() != nil {
		return NoNames, err
	}
	may, failed := t.mayHoldNames(ctx, b, list[bad].text)
	if failed != nil || !may {
		return NoNames, errors.Join(failed, err)
	}
	return withNames, t.send(ctx, b, command, list, withNames)
}

// send adds all flows or groups of a list, or none if one of them cannot be added.
func (t *Tables) send(ctx context.Context, b Bridge, command string, list []entry, names string) error {
	version := list[0].version
	options := []string{"-O", version.String(), names}
	if hasBundles(version) {
		options = append(options, "--bundle")
	}
	return t.Switch.Ofctl(ctx, Ofctl{Bridge: b.Name, Options: options, Command: command, Args: []string{"-"}, Stdin: &entryReader{list: list}})
}

// portNameSize is the size in bytes of a port's name in OpenFlow 1.0 to 1.5
// (ofp_port), without the zero at its end.
const portNameSize = 15

// mayHoldNames reports whether a text may hold the name of a port or a flow table.
func (t *Tables) mayHoldNames(ctx context.Context, b Bridge, text string) (bool, error) {
	if strings.Contains(text, `"`) { // unusual names are quoted, some with escapes
		return true, nil
	}
	names, err := t.Switch.Names(ctx, b.Name)
	return slices.ContainsFunc(names, func(name string) bool {
		return name != "" && strings.Contains(text, name[:min(len(name), portNameSize)])
	}), err
}
