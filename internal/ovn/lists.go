package ovn

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/internal/phrase"
	"ovs-offline/pkg/ovsdb"
)

// List is what the output of a command of ovn-nbctl that lists rows in a form of its own, such as acl-list, has of a table.
type List struct {
	Rows    []ovsdb.Record // with the columns that their lines tell; with UUIDs made of the lines, where none is printed
	Unnamed bool           // no UUIDs are printed
	Lost    []string       // what is not read, and why
}

// ReadList reads the output of a command of ovn-nbctl(8) that lists rows, as OVN 20.03 to 26.03 print it. whole is false for one of which lines were left
// out. A line that can't be read, or that may be one of two things, costs that line. ok is false for another command.
func ReadList(command, text string, whole bool) (list List, ok bool) {
	reader := &listReader{cut: map[string]int{}}
	switch command {
	case "acl-list":
		reader.row, reader.mark = readACL, "-lport "
	case "lr-route-list":
		routes := &routeReader{}
		reader.row, reader.heading, reader.mark = routes.read, routes.heading, "-ip"
	case "lr-nat-list":
		translations := &natReader{}
		reader.row, reader.heading, reader.mark = translations.read, translations.heading, "nat "
	case "lb-list":
		return readBalancers(text, whole), true
	case "qos-list":
		reader.row, reader.mark = readQoS, "-lport "
	default:
		return List{}, false
	}
	for line := range strings.Lines(text) {
		reader.add(strings.TrimRight(line, " \r\n"))
	}
	return List{reader.rows, true, reader.lost()}, true
}

// listReader reads the lines of a list.
type listReader struct {
	// row reads a line; nil for another one. A value without a text may be cut off.
	row     func(line string) []ovsdb.Value
	heading func(line string) bool // reports whether a line is one, and notes what it says; nil for a list without headings
	mark    string                 // in the lines of rows alone
	rows    []ovsdb.Record
	last    string         // the line above if it was read as a row, "" for another
	apart   bool           // an empty line stands above, behind which other text may follow
	unread  string         // the first line that was not read
	count   int            // of these
	cut     map[string]int // the rows by the column of which the value may be cut off
}

// maxListed is the length of the longest line that is read, in bytes.
const maxListed = 64 << 10

// add reads a line.
func (r *listReader) add(line string) {
	bare := strings.TrimSpace(line)
	switch {
	case bare == "":
		r.last, r.apart = "", true
		return
	case r.heading != nil && r.heading(line):
		r.last, r.apart = "", false
		return
	}
	var values []ovsdb.Value
	if len(line) <= maxListed {
		values = r.row(line)
	}
	switch {
	case values != nil:
		values = slices.DeleteFunc(values, func(v ovsdb.Value) bool {
			r.cut[v.Column] += 1 - min(1, len(v.Text))
			return v.Text == ""
		})
		r.rows = append(r.rows, ovsdb.Record{UUID: ovsdb.UUIDOf(fmt.Sprintf("%d\x00%s", len(r.rows), bare)), Columns: values})
		r.last, r.apart = line, false
		return
	case r.apart && !strings.Contains(bare, r.mark):
		return
	case r.last != "" && len(line) <= maxListed && (r.row(r.last+" "+bare) != nil || r.row(r.last+bare) != nil): // it may be the end of a row that a program wrapped
		r.rows = r.rows[:len(r.rows)-1]
		r.lose(r.last)
	}
	r.lose(line)
	r.last = ""
}

func (r *listReader) lose(line string) {
	if r.count++; r.count == 1 {
		r.unread = strings.TrimSpace(line)
	}
}

// lost says what was not read.
func (r *listReader) lost() (lost []string) {
	if r.count > 0 {
		lost = append(lost, fmt.Sprintf("%s can't be read, the first is: %s", phrase.Count(r.count, "line"), phrase.Shorten(r.unread, 100)))
	}
	for _, column := range slices.Sorted(maps.Keys(r.cut)) {
		if r.cut[column] == 0 {
			continue
		}
		lost = append(lost, fmt.Sprintf("%s may be cut off in %s", column, phrase.Count(r.cut[column], "row")))
	}
	return lost
}

// asListed returns a string as ovn-nbctl list prints it.
func asListed(text string) string { return strconv.Quote(text) }

// optional returns a string as ovn-nbctl list prints it, an empty one as none.
func optional(text string) string {
	if text == "" {
		return "[]"
	}
	return asListed(text)
}

// maxEnds is the number of places in a line at which the match of an ACL may end that are looked at.
const maxEnds = 32

var (
	aclBegin = lazyregexp.New(`^(from-lport|to-lport) +(\d+) \(`)
	aclEnd   = lazyregexp.New(`^\) (allow|allow-related|allow-stateless|drop|reject|pass)(?: network-function-group=\S+)?( log\((.*)\))?(?: label=(\d+))?(?: \[tier (\d+)\])?(?: \[after-lb\])?(?: \[[^\[\]]*\])?$`)
	aclLog   = lazyregexp.New(`^(?:name=(.*?),)?(?:severity=(alert|warning|notice|info|debug),)?(?:meter="(.*)",)?$`)
)

// readACL reads a line of acl-list. Whether an ACL that does not log has a name, a severity or a meter is not printed, and which tier it has
// only by the last releases. A line that can be read in two ways is left out: matches and names may have parentheses.
func readACL(line string) (values []ovsdb.Value) {
	line = strings.TrimSpace(line)
	begin := aclBegin.FindStringSubmatchIndex(line)
	if begin == nil {
		return nil
	}
	tried := 0
	for at := begin[1]; at < len(line); at++ {
		if !strings.HasPrefix(line[at:], ") ") {
			continue
		}
		if tried++; tried > maxEnds {
			return nil
		}
		end := aclEnd.FindStringSubmatch(line[at:])
		if end == nil {
			continue
		}
		if values != nil {
			return nil
		}
		values = []ovsdb.Value{{Column: "action", Text: asListed(end[1])}, {Column: "direction", Text: asListed(line[begin[2]:begin[3]])}, {Column: "label", Text: cmp.Or(end[4], "0")},
			{Column: "log", Text: strconv.FormatBool(end[2] != "")}, {Column: "match", Text: asListed(line[begin[1]:at])}, {Column: "priority", Text: line[begin[4]:begin[5]]}}
		if end[5] != "" {
			values = append(values, ovsdb.Value{Column: "tier", Text: end[5]})
		}
		if end[2] == "" {
			continue
		}
		log := aclLog.FindStringSubmatch(end[3] + strings.Repeat(",", min(1, len(end[3]))))
		if log == nil {
			return nil
		}
		for i, column := range []string{"name", "severity", "meter"} {
			values = append(values, ovsdb.Value{Column: column, Text: optional(log[i+1])})
		}
	}
	return values
}

var (
	routeTable = lazyregexp.New(`^Route Table (.+):$`)
	routeRow   = lazyregexp.New(`^(\S+) +(\S+) (dst-ip|src-ip)(?: (.+))?$`)
)

// routeReader reads the lines of lr-route-list. Since OVN 21.12, the name of a route table stands above its routes.
type routeReader struct {
	table string
	known bool // a heading named the table
}

func (r *routeReader) heading(line string) bool {
	if line == "IPv4 Routes" || line == "IPv6 Routes" {
		r.known = false
		return true
	}
	match := routeTable.FindStringSubmatch(line)
	if match == nil {
		return false
	}
	if r.table, r.known = match[1], true; r.table == "<main>" {
		r.table = ""
	}
	return true
}

// read reads a route. A next hop that is malformed is printed as an empty one is, a policy that is not set as dst-ip; whether a route has a BFD session
// is printed, and not which. Prefixes are printed without the bits of hosts.
func (r *routeReader) read(line string) []ovsdb.Value {
	match := routeRow.FindStringSubmatch(strings.TrimSpace(line))
	if match == nil || !Prefix(match[1]).IsValid() || match[2] != "discard" && !Prefix(match[2]).IsValid() {
		return nil
	}
	port := " " + match[4]
	for _, mark := range []string{"bfd", "override-connected", "ecmp-symmetric-reply", "ecmp", "(learned)"} {
		port = strings.TrimSuffix(port, " "+mark)
	}
	port = strings.TrimPrefix(port, " ")
	if strings.Contains(port, " ") { // a mark that is not known
		return nil
	}
	values := []ovsdb.Value{{Column: "ip_prefix", Text: asListed(match[1])}, {Column: "nexthop", Text: asListed(match[2])}, {Column: "output_port", Text: optional(port)},
		{Column: "policy", Text: asListed(match[3])}}
	if r.known {
		values = append(values, ovsdb.Value{Column: "route_table", Text: asListed(r.table)})
	}
	return values
}

// natReader reads the lines of lr-nat-list, whose cells stand under the names of their columns. Long values are cut off.
type natReader struct {
	at    map[string]int // where the columns begin, in bytes
	names []string
}

func (r *natReader) heading(line string) bool {
	names := strings.Fields(line)
	logical := slices.Index(names, "LOGICAL_IP")
	if logical < 2 || names[0] != "TYPE" || !slices.Contains(names[:logical], "EXTERNAL_IP") || !slices.Contains(names[logical:], "EXTERNAL_MAC") {
		return false
	}
	r.at, r.names = map[string]int{}, names
	at := 0
	for _, name := range names {
		at += strings.Index(line[at:], name)
		r.at[name] = at
		at += len(name)
	}
	return true
}

// width is the length of the longest value of a column that is not the last: four blanks follow.
func (r *natReader) width(name string) int {
	return r.at[r.names[slices.Index(r.names, name)+1]] - r.at[name] - 4
}

// read reads a NAT rule. Its gateway port is a name, where the table has a UUID. Where a rule lacks a MAC address or a logical port, neither is printed.
func (r *natReader) read(line string) []ovsdb.Value {
	cells := map[string]string{}
	for i, name := range r.names {
		if name == "LOGICAL_IP" {
			break
		}
		if len(line) < r.at[r.names[i+1]] {
			return nil
		}
		cell := line[r.at[name]:r.at[r.names[i+1]]]
		if cells[name] = strings.TrimRight(cell, " "); !strings.HasSuffix(cell, "    ") || strings.HasPrefix(cells[name], " ") {
			return nil
		}
	}
	if !slices.Contains([]string{"snat", "dnat", "dnat_and_snat"}, cells["TYPE"]) || strings.TrimSpace(line[:r.at["TYPE"]]) != "" {
		return nil
	}
	logical, rest, bound := strings.Cut(line[r.at["LOGICAL_IP"]:], " ")
	mac, port, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if port = strings.TrimLeft(port, " "); bound && (MAC(mac) == "" || port == "") {
		return nil
	}
	external, ok := r.address("EXTERNAL_IP", cells["EXTERNAL_IP"], true)
	inner, isAddress := r.address("LOGICAL_IP", logical, bound)
	if !ok || !isAddress {
		return nil
	}
	values := []ovsdb.Value{{Column: "type", Text: cells["TYPE"]}, {Column: "external_ip", Text: external}, {Column: "logical_ip", Text: inner}}
	for name, column := range map[string]string{"EXTERNAL_PORT": "external_port_range", "MATCH": "match"} {
		cell, has := cells[name]
		switch {
		case has && len(cell) >= r.width(name):
			values = append(values, ovsdb.Value{Column: column})
		case has:
			values = append(values, ovsdb.Value{Column: column, Text: asListed(cell)})
		}
	}
	if bound {
		values = append(values, ovsdb.Value{Column: "external_mac", Text: asListed(mac)}, ovsdb.Value{Column: "logical_port", Text: asListed(port)})
	}
	return values
}

// address returns an address or a network as ovn-nbctl list prints it, "" for one that may be cut off. ok is false for another text.
func (r *natReader) address(name, cell string, cuts bool) (text string, ok bool) {
	valid := Prefix(cell).IsValid()
	if cuts && len(cell) >= r.width(name) && !(valid && !strings.ContainsAny(cell, ":/")) {
		return "", true
	}
	return asListed(cell), valid
}

var qosRow = lazyregexp.New(`^(from-lport|to-lport) +(\d+) \((.*)\)(?: rate=(\d+))?(?: burst=(\d+))?((?: (?:dscp|mark)=\d+)*)$`)

// readQoS reads a line of qos-list, which has all that such a rule limits and sets.
func readQoS(line string) []ovsdb.Value {
	match := qosRow.FindStringSubmatch(strings.TrimSpace(line))
	if match == nil {
		return nil
	}
	var bandwidth []string
	for i, key := range []string{"burst", "rate"} {
		if value := match[5-i]; value != "" {
			bandwidth = append(bandwidth, key+"="+value)
		}
	}
	actions := strings.Fields(match[6])
	slices.Sort(actions)
	return []ovsdb.Value{{Column: "action", Text: "{" + strings.Join(actions, ", ") + "}"}, {Column: "bandwidth", Text: "{" + strings.Join(bandwidth, ", ") + "}"},
		{Column: "direction", Text: asListed(match[1])}, {Column: "match", Text: asListed(match[3])}, {Column: "priority", Text: match[2]}}
}

// balancerReader reads the lines of lb-list: a load balancer with its first VIP, and one line for each of the others, under the names of the columns.
type balancerReader struct {
	listReader
	vips   [][]string // of each row
	cut    []bool     // rows of which VIPs may be missing
	open   bool       // the next line may have a VIP of the last row
	at     [5]int     // where UUID, LB, PROTO, VIP and IPs begin, in bytes
	headed bool
}

// readBalancers reads the output of lb-list. It prints the first 16 bytes of names, the protocol only of a VIP with a port, and no VIPs that are malformed.
func readBalancers(text string, whole bool) List {
	r := &balancerReader{listReader: listReader{cut: map[string]int{}}}
	for line := range strings.Lines(text) {
		r.add(strings.TrimRight(line, " \r\n"))
	}
	for i := range r.rows {
		if !whole || r.cut[i] {
			r.listReader.cut["vips"]++
			continue
		}
		slices.Sort(r.vips[i])
		r.rows[i].Columns = append(r.rows[i].Columns, ovsdb.Value{Column: "vips", Text: "{" + strings.Join(r.vips[i], ", ") + "}"})
	}
	return List{r.rows, false, r.lost()}
}

func (r *balancerReader) add(line string) {
	bare := strings.TrimSpace(line)
	cells := r.cells(line)
	switch {
	case bare == "":
		r.open, r.apart = false, true
	case r.heading(line):
		r.open, r.apart = false, false
	case cells != nil && ovsdb.IsUUID(cells[0]):
		row := ovsdb.Record{UUID: cells[0]}
		if len(cells[1]) < r.at[2]-r.at[1]-4 {
			row.Columns = append(row.Columns, ovsdb.Value{Column: "name", Text: asListed(cells[1])})
		} else {
			r.listReader.cut["name"]++
		}
		r.rows, r.vips, r.cut = append(r.rows, row), append(r.vips, nil), append(r.cut, false)
		r.open, r.apart = true, false
		r.addVIP(cells)
	case cells != nil && cells[0]+cells[1] == "" && r.open:
		r.addVIP(cells)
	case cells == nil && r.apart:
	default: // a VIP of a row that is not there, or the rest of a line that was wrapped
		if len(r.cut) > 0 {
			r.cut[len(r.cut)-1] = true
		}
		r.lose(line)
		r.open = false
	}
}

func (r *balancerReader) heading(line string) bool {
	if !slices.Equal(strings.Fields(line), []string{"UUID", "LB", "PROTO", "VIP", "IPs"}) {
		return false
	}
	for i, name := range []string{"UUID", " LB", "PROTO", " VIP", "IPs"} {
		r.at[i] = strings.Index(line, name) + strings.Count(name, " ")
	}
	r.headed = true
	return true
}

// cells returns the cells of a line, nil for one without them.
func (r *balancerReader) cells(line string) []string {
	if !r.headed || len(line) < r.at[3] || len(line) > maxListed {
		return nil
	}
	line += strings.Repeat(" ", max(0, r.at[4]-len(line)))
	var cells []string
	for i := range 4 {
		cell := line[r.at[i]:r.at[i+1]]
		trimmed := strings.TrimRight(cell, " ")
		if strings.HasPrefix(trimmed, " ") || !strings.HasSuffix(cell, "    ") {
			return nil
		}
		cells = append(cells, trimmed)
	}
	if cells[3] == "" || strings.ContainsAny(cells[3]+line[r.at[4]:], " \"\\") && strings.TrimSpace(line[r.at[4]:]) != "" {
		return nil
	}
	return append(cells, strings.TrimSpace(line[r.at[4]:]))
}

// addVIP adds a VIP to the last row.
func (r *balancerReader) addVIP(cells []string) {
	last := len(r.rows) - 1
	r.vips[last] = append(r.vips[last], asListed(cells[3])+"="+asListed(cells[4]))
	row := &r.rows[last]
	known := slices.ContainsFunc(row.Columns, func(v ovsdb.Value) bool { return v.Column == "protocol" })
	if !known && slices.Contains([]string{"tcp", "udp", "sctp"}, cells[2]) {
		row.Columns = append(row.Columns, ovsdb.Value{Column: "protocol", Text: cells[2]})
	}
}
