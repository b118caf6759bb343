package compare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
	"ovs-offline/workdir"
)

// TestCountersThatGrew compares captures whose statistics are changed by hand, because a
// dummy device counts no errors.
func TestCountersThatGrew(t *testing.T) {
	l := newLab(t)
	before, after := l.capture(), l.capture()
	for folder, counters := range map[string]string{
		before: "rx_errors=1, tx_dropped=9, rx_crc_err=4, rx_packets=",
		after:  "rx_errors=7, tx_dropped=2, rx_crc_err=0, tx_errors=0, rx_packets=100",
	} {
		edit(t, folder, func(name, record string) string {
			if name != "eth1" {
				return record
			}
			return strings.Replace(record, "rx_packets=", counters, 1)
		})
	}
	expectLines(t, compared(t, before, after),
		"changed: interface eth1 of node compute1: rx_errors 1 -> 7 (6 more); tx_dropped 9 -> 2 (counted again)",
		"changed: interface eth1 of node compute2: rx_errors 1 -> 7 (6 more); tx_dropped 9 -> 2 (counted again)")
}

// edit changes the records in the recorded lists of interfaces.
func edit(t *testing.T, folder string, change func(name, record string) string) {
	t.Helper()
	for _, node := range []string{"compute1", "compute2"} {
		wd, err := workdir.Find(filepath.Join(folder, node))
		if err != nil {
			t.Fatal(err)
		}
		path := wd.Recorded(workdir.RecordedList("Interface"))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		records := strings.Split(string(text), "\n\n")
		for i, record := range records {
			_, rest, _ := strings.Cut(record, "\nname ")
			line, _, _ := strings.Cut(rest, "\n")
			_, name, _ := strings.Cut(line, ": ")
			records[i] = change(strings.TrimSpace(name), record)
		}
		if err := os.WriteFile(path, []byte(strings.Join(records, "\n\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNodesThatCameOrWent compares sets with other nodes.
func TestNodesThatCameOrWent(t *testing.T) {
	l := newLab(t)
	before, after := l.capture(), l.capture()
	if err := os.RemoveAll(filepath.Join(after, "compute2")); err != nil {
		t.Fatal(err)
	}
	expectLines(t, compared(t, before, after), "gone: node compute2")
	expectLines(t, compared(t, after, before), "added: node compute2")
}

// TestSouthboundAlone compares captures without the northbound database, as of a node of
// which only the southbound one was collected.
func TestSouthboundAlone(t *testing.T) {
	l := newLab(t)
	before := l.capture()
	l.nb(`lsp-del vm5
add Address_Set clients addresses 10.0.1.9`)
	l.settle()
	after := l.capture()
	for _, folder := range []string{before, after} {
		for _, node := range []string{"compute1", "compute2"} {
			if err := os.RemoveAll(filepath.Join(folder, node, "db", string(workdir.NB))); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := compared(t, before, after)
	var lines []string
	for _, f := range c.Findings {
		if f.Kind != "flow" {
			lines = append(lines, f.Line())
		}
	}
	expect.Equal(t, strings.Join(lines, "\n"), "gone: port vm5\nchanged: address set clients: addresses +10.0.1.9")
}
