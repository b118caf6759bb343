package restore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
	"ovs-offline/replica/report"
)

// editTableNames gives names to the flow tables that the collected flows name.
//
// Cause: on a terminal, ovs-ofctl prints the names of the tables that have one, and no number. A controller can name tables as
// well as the database can, and then the database does not have the names.
//
// Remedy: the tables get numbers that agree with the order of the dump, in which ovs-vswitchd prints tables by their numbers, and
// the database gets their names (ovs-vswitchd.conf.db(5), Flow_Table).
func editTableNames(ctx context.Context, replica *Replica, outcome *report.Outcome) error {
	known := map[string]bool{}
	rows, err := replica.DB.Select(ctx, "Flow_Table", "name")
	if err != nil {
		return err
	}
	for _, row := range rows {
		known[row.String("name")] = true
	}
	var changes []ovsdb.Change
	for i, bridge := range replica.Bridges {
		used, err := replica.Facts.Tables(ctx, bridge.Name)
		if err != nil {
			return err
		}
		numbers := numberTables(used)
		named := map[int]ovsdb.Ref{}
		var names []string
		for _, name := range used {
			number, isName := numbers[name]
			if !isName || known[name] {
				continue
			}
			row := fmt.Sprintf("table_%d_%d", i, number)
			changes = append(changes, ovsdb.Insert("Flow_Table", row, ovsdb.Columns{"name": name}))
			named[number] = ovsdb.Ref{Name: row}
			names = append(names, fmt.Sprintf("%s (%d)", name, number))
		}
		if len(named) > 0 {
			changes = append(changes, ovsdb.Update("Bridge", bridge.UUID, ovsdb.Columns{"flow_tables": named}))
			outcome.Note(report.Approximated, "%s: the numbers of the flow tables that its flows name were not collected; they are assumed in the order of the dump: %s", bridge.Name, phrase.FirstNames(names))
		}
	}
	return replica.DB.Transact(ctx, changes...)
}

// maxTables is the number of flow tables of a bridge; 254 is for internal use.
const maxTables = 254

// numberTables returns numbers for the tables that have only a name. Each is above the table before it, and not used.
func numberTables(used []string) map[string]int {
	taken := map[int]bool{}
	for _, table := range used {
		if number, err := strconv.Atoi(table); err == nil {
			taken[number] = true
		}
	}
	numbers := map[string]int{}
	last := -1
	for _, table := range slices.Compact(slices.Clone(used)) {
		if number, err := strconv.Atoi(table); err == nil {
			last = number
			continue
		}
		if number, known := numbers[table]; known {
			last = number
			continue
		}
		for last++; taken[last]; last++ {
		}
		if last < maxTables {
			taken[last], numbers[table] = true, last
		}
	}
	return numbers
}
