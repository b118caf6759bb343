package replica

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/openflow"
	"ovs-offline/internal/ovsdb"
	"ovs-offline/internal/ovsdb/file"
	"ovs-offline/internal/workdir"
	"ovs-offline/replica/report"
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

// originOf returns nil for a node without OVN or without flows.
func originOf(ctx context.Context, wd *workdir.Dir) (*report.Origin, error) {
	bridge, err := integrationBridge(ctx, wd)
	if bridge == "" || err != nil {
		return nil, err
	}
	cookies, err := cookiesOf(ctx, wd.DumpFile(bridge, workdir.Flows))
	if len(cookies) == 0 || err != nil {
		return nil, err
	}
	x, err := file.OpenIndex(ctx, wd.Database(workdir.SB), sourceTables()...)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	origin := &report.Origin{Bridge: bridge}
	for cookie, flows := range cookies {
		origin.Flows += flows
		for _, table := range sourceTables() {
			if len(x.Begins(table, cookie)) > 0 {
				origin.Known += flows
				break
			}
		}
	}
	return origin, nil
}

// integrationBridge returns the name of the integration bridge, "" for a node without OVN.
func integrationBridge(ctx context.Context, wd *workdir.Dir) (string, error) {
	x, err := file.OpenIndex(ctx, wd.Database(workdir.OVS), "Open_vSwitch")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer x.Close()
	for row, err := range x.Rows("Open_vSwitch", "external_ids") {
		if err != nil {
			return "", err
		}
		if name, ovn := ovsdb.IntegrationBridge(row.Map("external_ids")); ovn {
			return name, nil
		}
	}
	return "", nil
}

// cookiesOf returns the number of flows of each cookie that a dump has, without the cookie 0
// and those of more than 32 bits, which ovn-controller does not write.
func cookiesOf(ctx context.Context, dump string) (map[uint32]int, error) {
	f, ok, err := workdir.OpenCollected(dump)
	if !ok || err != nil {
		return nil, err
	}
	defer f.Close()
	cookies := map[uint32]int{}
	for flow, problem := range openflow.RawFlows(interrupt.Reader(ctx, f)) {
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
