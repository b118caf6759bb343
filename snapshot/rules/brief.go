package rules

import (
	"fmt"
	"strconv"
	"strings"
)

// Origin is the row that a flow was made from: the northbound row if it is known from the logical
// flow, the port or the load balancer, else the southbound row. To find it takes a tenth of the time
// that a Rule takes, which has texts too.
type Origin struct {
	Table, UUID string // "" for a flow that OVN makes from no row
	Stage       string // of a logical flow
}

// originKey identifies a hint and the table whose rows come first for it.
type originKey struct{ hint, first string }

// Origins finds the origins of many flows. It is not safe for concurrent use.
type Origins struct {
	rules  *Rules
	causes map[originKey]Origin
}

// NewOrigins returns an Origins of the rules.
func (r *Rules) NewOrigins() *Origins { return &Origins{r, map[originKey]Origin{}} }

// Find returns the origin of a flow; ok is false if no row has its cookie, and several if
// more than one has it. Then Rules.Find tells them apart.
func (o *Origins) Find(f Flow) (origin Origin, ok, several bool, err error) {
	if f.Cookie == 0 {
		return Origin{}, true, false, nil
	}
	if f.Cookie > 0xffffffff {
		return Origin{}, false, false, nil
	}
	var table, uuid string
	n := 0
	for _, t := range sourceTables() {
		for _, id := range o.rules.sb.Begins(t, uint32(f.Cookie)) {
			table, uuid = t, id
			n++
		}
	}
	if n != 1 {
		return Origin{}, false, n > 1, nil
	}
	if table != logicalFlow {
		origin, err := o.rules.northbound(table, uuid)
		return origin, true, false, err
	}
	row, ok, err := o.rules.sb.Row(table, uuid, "external_ids")
	if err != nil || !ok {
		return Origin{}, false, false, err
	}
	stage := row.Value("external_ids", "stage-name")
	origin = o.cause(row.Value("external_ids", "stage-hint"), stage)
	if origin.Table == "" {
		origin.Table, origin.UUID = table, uuid
	}
	origin.Stage = stage
	return origin, true, false, nil
}

// cause returns the northbound row of a hint.
func (o *Origins) cause(hint, stage string) Origin {
	bits, err := strconv.ParseUint(hint, 16, 32)
	if hint == "" || err != nil || o.rules.nb == nil {
		return Origin{}
	}
	tables := hintTables(stage)
	key := originKey{hint, tables[0]}
	found, known := o.causes[key]
	if known {
		return found
	}
	for _, table := range tables {
		if rows := o.rules.nb.Begins(table, uint32(bits)); len(rows) > 0 {
			found = Origin{Table: table, UUID: rows[0]}
			break
		}
	}
	o.causes[key] = found
	return found
}

// northbound returns the northbound row of a southbound port or load balancer, or else the
// southbound row.
func (r *Rules) northbound(table, uuid string) (Origin, error) {
	own := Origin{Table: table, UUID: uuid}
	if r.nb == nil || table != "Port_Binding" && table != "Load_Balancer" {
		return own, nil
	}
	row, ok, err := r.sb.Row(table, uuid, "logical_port", "external_ids")
	if err != nil || !ok {
		return own, err
	}
	if table == "Load_Balancer" {
		id := row.Value("external_ids", "lb_id")
		if _, ok, err = r.nb.Row(table, id, "name"); ok {
			own.UUID = id
		}
		return own, err
	}
	if found, ok := r.owners()[row.String("logical_port")]; ok {
		return found, nil
	}
	return own, nil
}

// DescribeSouthbound describes a southbound row, "" if there is no such row.
func (r *Rules) DescribeSouthbound(table, uuid string) (string, error) {
	row, ok, err := r.sb.Row(table, uuid)
	if err != nil || !ok {
		return "", err
	}
	if table == logicalFlow {
		return fmt.Sprintf("logical flow of stage %s: %s", row.Map("external_ids")["stage-name"], strings.TrimSpace(row.String("match"))), nil
	}
	return r.describe(table, row, r.datapathOf(row, Flow{})), nil
}

// IsLogicalFlow reports whether an origin is a logical flow that names no northbound row.
func (o Origin) IsLogicalFlow() bool { return o.Table == logicalFlow }

// IsNorthbound reports whether an origin is a row of the northbound database.
func (o Origin) IsNorthbound() bool {
	for _, table := range hintTables("") {
		if table == o.Table {
			return o.Table != "Static_MAC_Binding"
		}
	}
	return false
}
