package lab

import (
	"fmt"
	"slices"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/snapshot/node"
)

// readDatabase reads a command line of a tool of a database: options, and subcommands separated by "--". If one of these is
// refused, all are: the tool carries out all or none.
func (s *step) readDatabase(tool databaseTool, words []string) (todo bool, err error) {
	if !writesAny(tool, words) && slices.ContainsFunc(words, func(word string) bool { return tool.commands[word] == reads }) {
		return false, nil
	}
	var sections [][]string
	for i, section := range split(words) {
		section, err := tool.section(section, i == 0)
		if err != nil {
			return true, err
		}
		if len(section) == 0 {
			continue
		}
		section, err = s.checkSection(tool, section)
		if err != nil {
			return true, err
		}
		todo = true
		if len(section) > 0 {
			sections = append(sections, append([]string{"--"}, section...))
		}
	}
	s.args = slices.Concat(sections...)
	return todo, nil
}

// writesAny reports whether a command line may change the database.
func writesAny(tool databaseTool, words []string) bool {
	return slices.ContainsFunc(split(words), func(section []string) bool {
		name := slices.IndexFunc(section, func(word string) bool { return !strings.HasPrefix(word, "-") })
		return name >= 0 && tool.commands[section[name]] == writes
	})
}

// split splits words at "--".
func split(words []string) (sections [][]string) {
	section := []string{}
	for _, word := range words {
		if word == "--" {
			sections = append(sections, section)
			section = []string{}
			continue
		}
		section = append(section, word)
	}
	return append(sections, section)
}

// section returns a subcommand with its options and operands. The options of the tool itself, which only the first section can
// have, are left out.
func (t databaseTool) section(words []string, first bool) (section []string, err error) {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name, _, assigned := strings.Cut(words[0], "=")
		takesNext, dropped := t.dropped[name]
		switch {
		case first && dropped:
			if takesNext && !assigned && len(words) > 1 {
				words = words[1:]
			}
		case slices.Contains(t.options, name):
			section = append(section, words[0])
		default:
			return nil, fmt.Errorf("the option %s of %s is not on the list of a lab", name, t.name)
		}
		words = words[1:]
	}
	if len(words) == 0 {
		if len(section) > 0 {
			return nil, fmt.Errorf("it names no subcommand of %s", t.name)
		}
		return nil, nil
	}
	if t.commands[words[0]] == unlisted {
		return nil, fmt.Errorf("the subcommand %s of %s is not on the list of a lab", words[0], t.name)
	}
	return append(section, words...), nil
}

// checkSection checks the operands of a subcommand, and returns what of it runs now.
func (s *step) checkSection(tool databaseTool, section []string) ([]string, error) {
	at := slices.IndexFunc(section, func(word string) bool { return !strings.HasPrefix(word, "-") })
	options, name, operands := section[:at], section[at], section[at+1:]
	if tool.commands[name] == reads {
		if name == "get" && len(options) > 0 { // it names a row for the other subcommands
			return section, nil
		}
		return nil, nil
	}
	switch {
	case tool.name == "ovn-nbctl" || tool.name == "ovn-sbctl":
		return section, checkLogical(name, operands)
	case name == "set-controller":
		return section, checkTargets(operands)
	case name == "add-port" || name == "add-bond":
		return section, checkPortColumns(operands)
	case slices.Contains([]string{"set", "add", "remove", "clear", "create", "destroy"}, name):
		return s.checkRows(options, name, operands)
	}
	return section, nil
}

// checkLogical refuses what writes the addresses and keys of an OVN database server.
func checkLogical(name string, operands []string) error {
	if !slices.Contains([]string{"set", "add", "remove", "clear", "create", "destroy"}, name) || len(operands) == 0 {
		return nil
	}
	table := normal(operands[0])
	if strings.HasPrefix("connection", table) || strings.HasPrefix("ssl", table) {
		return fmt.Errorf("the table %s has addresses and keys of servers", operands[0])
	}
	for _, operand := range operands[1:] {
		if column := normal(operand); strings.HasPrefix("nb_global", table) && (strings.HasPrefix(column, "conn") || strings.HasPrefix(column, "ssl")) {
			return fmt.Errorf("the column %s has addresses and keys of servers", operand)
		}
	}
	return nil
}

// normal returns a name as ovs-vsctl compares it.
func normal(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// checkTargets accepts addresses of controllers, to which nothing here can connect, and no sockets of this machine.
func checkTargets(operands []string) error {
	for _, target := range operands[min(1, len(operands)):] {
		if !strings.HasPrefix(target, "tcp:") && !strings.HasPrefix(target, "ssl:") {
			return fmt.Errorf("a controller has an address that begins with tcp: or ssl:, and not %s", target)
		}
	}
	return nil
}

// checkPortColumns checks the columns of add-port and add-bond.
func checkPortColumns(operands []string) error {
	for _, operand := range operands {
		if !strings.Contains(operand, "=") {
			continue
		}
		if _, err := readColumn(tableNamed("Port"), operand); err != nil {
			return err
		}
	}
	return nil
}

// tableNamed returns the table of a name.
func tableNamed(name string) table {
	all := tables()
	return all[slices.IndexFunc(all, func(t table) bool { return t.name == name })]
}

// findTable returns the table that a word means, as ovs-vsctl does: its name without regard to case, or the beginning of one.
func findTable(word string) (table, error) {
	var found []string
	all := otherTables()
	for _, t := range tables() {
		all = append(all, t.name)
	}
	for _, name := range all {
		if normal(name) == normal(word) {
			found = []string{name}
			break
		}
		if strings.HasPrefix(normal(name), normal(word)) {
			found = append(found, name)
		}
	}
	if len(found) == 1 && !slices.Contains(otherTables(), found[0]) {
		return tableNamed(found[0]), nil
	}
	return table{}, fmt.Errorf("the table %s is not on the list of a lab", word)
}

// column is a column with a key and a value, as a word of ovs-vsctl names them: COLUMN[:KEY][=VALUE].
type column struct {
	name, key, value string
	word             string // with the column's own name
}

var columnWord = lazyregexp.New(`^([A-Za-z][\w-]*)(?::("(?:[^"\\]|\\.)*"|[^=]*))?(=|$)`)

// readColumn reads a word of ovs-vsctl. The column has to be on the list of the table.
func readColumn(t table, word string) (c column, err error) {
	match := columnWord.FindStringSubmatch(word)
	if match == nil {
		return c, fmt.Errorf("%s names no column", word)
	}
	name := normal(match[1])
	if name == "option" || name == "external_id" { // the beginning of a column's name
		name += "s"
	}
	if !slices.Contains(t.columns, name) {
		return c, fmt.Errorf("the column %s of %s is not on the list of a lab", match[1], t.name)
	}
	c = column{name: name, key: strings.Trim(match[2], `"`), word: name + word[len(match[1]):]}
	if match[3] == "=" {
		c.value = strings.Trim(word[len(match[0]):], `"`)
	}
	return c, nil
}

// waits reports whether a column has ovs-vswitchd open something of the host: a device of DPDK, a socket, a file.
func (c column) waits(t table) bool {
	switch t.name + "." + c.name {
	case "Interface.type":
		return !slices.Contains([]string{"", "system", "internal", "patch"}, c.value) && !node.IsTunnel(c.value)
	case "Interface.options":
		return !c.hasOnly(isTunnelOption)
	case "Bridge.datapath_type":
		return c.value != "" && c.value != "system"
	case "Open_vSwitch.other_config":
		return !c.hasOnly(isFlowSetting)
	}
	return false
}

// hasOnly reports whether all keys of a value are accepted.
func (c column) hasOnly(accepted func(key string) bool) bool {
	if c.key != "" {
		return accepted(c.key)
	}
	for pair := range strings.SplitSeq(strings.Trim(c.value, "{} "), ",") {
		key, _, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if key != "" && !accepted(strings.Trim(key, `"`)) {
			return false
		}
	}
	return true
}

// checkRows checks a subcommand that writes rows of Open vSwitch, and returns what of it runs while ovs-vswitchd does.
func (s *step) checkRows(options []string, name string, operands []string) ([]string, error) {
	if len(operands) == 0 {
		return nil, fmt.Errorf("%s needs a table", name)
	}
	t, err := findTable(operands[0])
	if err != nil {
		return nil, err
	}
	now := slices.Concat(options, []string{name, t.name})
	rest := operands[1:]
	switch name {
	case "destroy":
		return append(now, rest...), nil
	case "create":
		return s.checkNew(now, t, rest)
	}
	if len(rest) < 2 {
		return nil, fmt.Errorf("%s needs a row and a column", name)
	}
	row, words := rest[0], rest[1:]
	now = append(now, row)
	if name == "add" || name == "remove" {
		return s.checkElements(now, name, t, row, words)
	}
	var left []string
	for _, word := range words {
		c, err := readColumn(t, word)
		if err != nil {
			return nil, err
		}
		if name == "set" && c.waits(t) {
			s.withhold("set", t.name, row, c.word)
			continue
		}
		left = append(left, c.word)
	}
	if len(left) == 0 {
		return nil, nil
	}
	return append(now, left...), nil
}

// withhold keeps a change for when ovs-vswitchd has ended.
func (s *step) withhold(words ...string) {
	s.withheld = append(s.withheld, append([]string{"--if-exists"}, words...))
}

// checkElements checks "add" and "remove", whose words after the column are elements: KEY=VALUE, or VALUE.
func (s *step) checkElements(now []string, name string, t table, row string, words []string) ([]string, error) {
	c, err := readColumn(t, words[0])
	if err != nil {
		return nil, err
	}
	for _, element := range words[1:] {
		c.value = element
		if name == "add" && c.waits(t) {
			s.withhold(slices.Concat([]string{name, t.name, row, c.name}, words[1:])...)
			return nil, nil
		}
	}
	return slices.Concat(now, []string{c.name}, words[1:]), nil
}

// checkNew checks "create".
func (s *step) checkNew(now []string, t table, words []string) ([]string, error) {
	name, waiting := "", []string(nil)
	for _, word := range words {
		c, err := readColumn(t, word)
		if err != nil {
			return nil, err
		}
		if c.name == "name" {
			name = c.value
		}
		if c.waits(t) {
			waiting = append(waiting, c.word)
			continue
		}
		now = append(now, c.word)
	}
	if len(waiting) > 0 && name == "" {
		return nil, fmt.Errorf("the row has no name, and %s is written only once ovs-vswitchd has ended", waiting[0])
	}
	for _, word := range waiting {
		s.withhold("set", t.name, name, word)
	}
	return now, nil
}
