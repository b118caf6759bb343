package daemonlog

import (
	"fmt"
	"slices"
	"strings"
)

// levels are the names of the levels, which users know from ovs-appctl vlog/set.
func levels() []string { return []string{"", "dbg", "info", "warn", "err", "emer"} }

// String returns the name of a level, "" for Unknown.
func (l Level) String() string {
	if all := levels(); l >= 0 && int(l) < len(all) {
		return all[l]
	}
	return fmt.Sprint(int(l))
}

// Levels returns the names of all levels, the worst last.
func Levels() []string { return levels()[1:] }

// ParseLevel returns the level with a name; ok is false if there is none.
func ParseLevel(name string) (level Level, ok bool) {
	i := slices.Index(Levels(), strings.ToLower(name))
	return Level(i + 1), i >= 0
}
