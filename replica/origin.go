package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/ovn"
	"ovs-offline/pkg/openflow"
	"ovs-offline/replica/report"
	"ovs-offline/workdir"
)

// sourceTables are the southbound tables whose rows ovn-controller makes flows from.
func sourceTables() []string {
	return []string{"Logical_Flow", "Port_Binding", "Multicast_Group", "MAC_Binding", "Load_Balancer", "Datapath_Binding", "Chassis", "Chassis_Template_Var", "FDB", "Static_MAC_Binding"}
}

// compareOrigin adds to the report how many of the recorded flows of the integration bridge
// are from the collected southbound database. A failure is a remark: all else works.
func (s *starter) compareOrigin(ctx context.Context) {
	origin, err := originOf(ctx, s.wd)
	if err != nil && ctx.Err() == nil {
		s.report.Remark(fmt.Sprintf("whether the OVN SB database is of the same moment as the flows is not known: %v", err))
	}
	s.report.Origin = origin
}

// Doubts returns the reasons why the collected databases of a node, or what is computed from them,
// may be wrong.
func Doubts(ctx context.Context, wd *workdir.Dir) ([]string, error) {
	manifest, err := wd.Manifest()
	if err != nil {
		return nil, err
	}
	origin, err := originOf(ctx, wd)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return DatabaseDoubts(manifest, origin), nil
}

// DatabaseDoubts is Doubts where it is known from which database the flows are.
func DatabaseDoubts(manifest *workdir.Manifest, origin *report.Origin) (doubts []string) {
	for _, text := range manifest.LostDatabases() {
		doubts = append(doubts, "a database could not be read, or not wholly: "+text)
	}
	if text := origin.Sentence(); text != "" {
		doubts = append(doubts, text)
	}
	return doubts
}

// originOf returns nil for a node without OVN or without flows, and for one whose logical flows have
// no UUIDs: those of a database that was made from its printed tables.
func originOf(ctx context.Context, wd *workdir.Dir) (*report.Origin, error) {
	bridge, err := IntegrationBridge(ctx, wd)
	if bridge == "" || err != nil {
		return nil, err
	}
	cookies, err := cookiesOf(ctx, wd, wd.DumpFile(bridge, workdir.Flows))
	if len(cookies) == 0 || err != nil {
		return nil, err
	}
	manifest, err := wd.Manifest()
	if err != nil || manifest.FromPrinted(workdir.SB) != nil {
		return nil, err
	}
	index, err := wd.Index(ctx, wd.Database(workdir.SB), sourceTables()...)
	if err != nil {
		return nil, err
	}
	defer index.Close()
	origin := &report.Origin{Bridge: bridge, Changed: index.Changed.UTC()}
	if collection := manifest.Collection(workdir.OVS); collection != nil {
		origin.Recorded, origin.RecordedAbout = collection.Recorded, collection.RecordedAbout
	}
	if at := manifest.FlowsRecorded(bridge); !at.IsZero() {
		origin.Recorded, origin.RecordedAbout = at, false
	}
	for cookie, flows := range cookies {
		origin.Flows += flows
		for _, table := range sourceTables() {
			if len(index.Begins(table, cookie)) > 0 {
				origin.Known += flows
				break
			}
		}
	}
	return origin, nil
}

// IntegrationBridge returns the name of the integration bridge, "" for a node without OVN.
func IntegrationBridge(ctx context.Context, wd *workdir.Dir) (string, error) {
	index, err := wd.Index(ctx, wd.Database(workdir.OVS), "Open_vSwitch")
	if errors.Is(err, os.ErrNotExist) { // a must-gather without conf.db may have the flows
		return ovn.Integration, nil
	}
	if err != nil {
		return "", err
	}
	defer index.Close()
	settings, err := ovn.ReadSettings(index)
	if err != nil || !settings.Configured() {
		return "", err
	}
	return settings.Bridge(), nil
}

// cookiesOf returns the number of flows of each cookie of a dump, without the cookie 0
// and cookies of more than 32 bits, which ovn-controller does not write.
func cookiesOf(ctx context.Context, wd *workdir.Dir, dump string) (map[uint32]int, error) {
	file, ok, err := wd.Collected(dump)
	if !ok || err != nil {
		return nil, err
	}
	defer file.Close()
	cookies := map[uint32]int{}
	for flow, problem := range openflow.RawFlows(interrupt.Reader(ctx, file)) {
		if problem != nil {
			continue // the report names it
		}
		_, rest, found := strings.Cut(flow.Match, "cookie=")
		text, _, _ := strings.Cut(rest, ",")
		if cookie, err := strconv.ParseUint(text, 0, 32); found && err == nil && cookie != 0 {
			cookies[uint32(cookie)]++
		}
	}
	return cookies, nil
}
