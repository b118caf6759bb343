package timeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"ovs-offline/answer/history"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/pkg/ovsdb/file"
)

// lag is how much later than the clock of a chassis that of the server of the southbound database is.
// ovn-controller writes the time of its own clock into Chassis_Private.nb_cfg_timestamp, and the server
// records its own time with that transaction. What passes between the two is never negative.
type lag struct {
	least time.Duration
	count int
}

// skews returns sentences about clocks that can't be right.
func (t *Timeline) skews(ctx context.Context) (sentences []string, err error) {
	for _, source := range t.databases {
		if source.Schema != ovsdb.SB || source.File == "" || t.query.LogsOnly {
			continue
		}
		lags, err := lagsOf(ctx, source)
		if err != nil {
			return nil, err
		}
		for _, chassis := range slices.Sorted(maps.Keys(lags)) {
			if text := lags[chassis].sentence(cmp.Or(t.names.chassis[chassis], chassis)); text != "" {
				sentences = append(sentences, text)
			}
		}
	}
	return sentences, nil
}

func lagsOf(ctx context.Context, source history.Source) (map[string]*lag, error) {
	const column = "nb_cfg_timestamp"
	lags := map[string]*lag{}
	source.Logs = nil
	_, err := history.Read(ctx, []history.Source{source}, history.Query{Table: "Chassis_Private", Column: column}, func(event *history.Event) error {
		for _, row := range event.Rows {
			written, err := strconv.ParseInt(row.Columns[column].New, 10, 64)
			if err != nil || written <= 0 || row.Change != file.Modified || event.Time.IsZero() {
				continue
			}
			found := event.Time.Sub(time.UnixMilli(written))
			l := lags[row.Name]
			if l == nil {
				l = &lag{least: found}
				lags[row.Name] = l
			}
			l.least, l.count = min(l.least, found), l.count+1
		}
		return nil
	})
	return lags, err
}

// sentence describes a lag that shows that a clock is wrong, "" for one that may be due to the way of a
// transaction.
func (l *lag) sentence(chassis string) string {
	const (
		ahead  = -100 * time.Millisecond
		behind = 5 * time.Second
		enough = 3 // a chassis that was busy once is not behind
	)
	switch {
	case l.least < ahead:
		return fmt.Sprintf("the clock of %s is at least %s ahead of that of the OVN SB server: a transaction of it is recorded that long before ovn-controller made it (nb_cfg_timestamp). Entries of both are not in their true order",
			chassis, (-l.least).Round(time.Millisecond))
	case l.least > behind && l.count >= enough:
		return fmt.Sprintf("the clock of %s is up to %s behind that of the OVN SB server, or its transactions take that long: none of %d was recorded sooner after ovn-controller made it (nb_cfg_timestamp)",
			chassis, l.least.Round(time.Millisecond), l.count)
	}
	return ""
}
