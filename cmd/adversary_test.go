package cmd

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ovs-offline/test/check/sweep"
	"ovs-offline/test/daemons/engines"
	"ovs-offline/test/daemons/ovs"
	"ovs-offline/test/oracle/sets"
)

// What an adversary knows of the original: what plain expressions find in its files.
var (
	knownUUID     = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
	knownMAC      = regexp.MustCompile(`\b[0-9a-f][02468ace](?::[0-9a-f]{2}){5}\b`)
	knownAddress  = regexp.MustCompile(`\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b`)
	knownAddress6 = regexp.MustCompile(`\b(?:f[cd][0-9a-f]{2}|2[0-9a-f]{3}):[0-9a-f:]*:[0-9a-f]+\b`)
	knownName     = regexp.MustCompile(`"(?:name|hostname|iface-id|logical_port|description|neutron:[a-z_]*name|system-id|domain_name)"[:,]"([^"]{4,})"`)
	knownSystemID = regexp.MustCompile(`"system-id","([0-9a-f]{8})-`)
	userdataText  = regexp.MustCompile(`(?:userdata=|note:)[0-9a-f.]*`)
)

// eachFile calls use with the path and the content of each file below a folder.
func eachFile(t *testing.T, folder string, use func(path, content string)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(folder, path)
		use(rel, string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// regexpOf returns an expression for any of some words.
func regexpOf(words []string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:` + strings.Join(words, "|") + `)`)
}

// stays4 reports whether docs/sharing.md says that an address stays.
func stays4(a netip.Addr) bool {
	first := a.As4()[0]
	return first == 0 || first == 127 || first >= 224 || a.IsLinkLocalUnicast() || a == netip.MustParseAddr("192.0.0.0") // a mask
}

// addressSpellings returns an IPv4 address in fifteen spellings and more.
func addressSpellings(a netip.Addr) []string {
	b, text := a.As4(), a.String()
	n := binary.BigEndian.Uint32(b[:])
	hexes := hex.EncodeToString(b[:])
	high, low := n>>16, n&0xffff
	with := func(separator string) string { return strings.ReplaceAll(text, ".", separator) }
	return []string{
		text, with("-"), with("_"), with("%2E"), "::ffff:" + text, "64:ff9b::" + text, fmt.Sprintf("::ffff:%x:%x", high, low),
		fmt.Sprintf("64:ff9b::%x:%x", high, low), fmt.Sprintf("2002:%x:%x:", high, low), fmt.Sprint(n), fmt.Sprintf("0x%x", n),
		hexes, strings.ToUpper(hexes), fmt.Sprintf("%02x%02x%02x%02x", b[3], b[2], b[1], b[0]), inOctets(string(b[:])),
		inOctets(text), fmt.Sprintf("%d.%d.%d.%d.in-addr", b[3], b[2], b[1], b[0]),
	}
}

// macSpellings returns a MAC address in twelve spellings and more.
func macSpellings(m net.HardwareAddr) []string {
	text, digits := m.String(), hex.EncodeToString(m)
	eui := net.HardwareAddr{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}
	link := netip.AddrFrom16([16]byte(append([]byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0}, eui...))).String()
	with := func(separator string) string { return strings.ReplaceAll(text, ":", separator) }
	all := []string{
		text, with("-"), with("."), with("_"), with("%3A"), digits, "0x" + strings.TrimLeft(digits, "0"),
		digits[:4] + "." + digits[4:8] + "." + digits[8:], eui.String(), hex.EncodeToString(eui), inOctets(text),
		fmt.Sprintf("%x:%x:%x:%x:%x:%x", m[0], m[1], m[2], m[3], m[4], m[5]), strings.TrimPrefix(link, "fe80::"),
	}
	for _, one := range slices.Clone(all) {
		all = append(all, strings.ToUpper(one))
	}
	return all
}

// search looks for texts in the files of a folder and their names, where no longer word, number or address goes on, and
// reports them.
func search(t *testing.T, folder string, wanted map[string]string) {
	t.Helper()
	found, seen := map[string]int{}, map[string]string{}
	word := regexp.MustCompile(`[0-9A-Za-z]+`)
	starts := map[string][]string{} // by their first words
	for text := range wanted {
		first := word.FindString(text)
		starts[first] = append(starts[first], text)
	}
	isWord := func(text string, i int) bool { return i >= 0 && i < len(text) && word.MatchString(text[i:i+1]) }
	look := func(path, text string) {
		for _, at := range word.FindAllStringIndex(text, -1) {
			for _, secret := range starts[text[at[0]:at[1]]] {
				begin := at[0] - strings.Index(secret, word.FindString(secret))
				end := begin + len(secret)
				if begin < 0 || end > len(text) || text[begin:end] != secret || isWord(text, end) {
					continue
				}
				if found[secret]++; seen[secret] == "" {
					seen[secret] = fmt.Sprintf("%s: %q", path, text[max(0, begin-60):min(len(text), end+30)])
				}
			}
		}
	}
	eachFile(t, folder, func(path, content string) { look(path, content); look("name of a file", path) })
	for _, secret := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s (%s) is there %d times: %s", secret, wanted[secret], found[secret], seen[secret])
	}
}

// TestAnAdversaryFindsNothing looks in anonymised bundles for what plain expressions find in the originals, in many
// spellings: also in those of nodes whose OVN databases were left out, for what these say. It allows only what docs/sharing.md or
// the command says stays.
func TestAnAdversaryFindsNothing(t *testing.T) {
	r := engines.Get(t, engines.Process)
	report := func(name, path string) func(t *testing.T, s session, folder string) {
		return func(_ *testing.T, s session, folder string) {
			s.run("-w", filepath.Join(folder, name), "collect", "../testdata/captures/"+path)
		}
	}
	worker := report("ovn-worker", "ovn-kubernetes-worker/sosreport-ovn-worker-2026-11-21-kdplive.tar.xz")
	compute := report("compute1", "ovn-openstack-compute/sosreport-compute1-2026-11-21-kdplive.tar.xz")
	type collection struct {
		name             string
		fill             func(t *testing.T, s session, folder string)
		withoutDatabases bool
	}
	const without = " without databases"
	all := []collection{{"worker", worker, false}, {"compute", compute, false}, {"worker" + without, worker, true}, {"compute" + without, compute, true}}
	for _, name := range slices.Concat(sets.Names(), sets.NamespaceNames(), sets.OwnNames()) {
		recorded := sets.RecordedNamespaces
		if slices.Contains(sets.Names(), name) {
			recorded = sets.Recorded
		}
		set := func(t *testing.T, _ session, folder string) {
			if _, err := recorded(t, "../scripts/lab/lab", name).Workdirs(t.Context(), folder, sets.Native); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, collection{name, set, false}, collection{name + without, set, true})
	}
	for _, row := range sweep.Named(t, all, func(c collection) string { return c.name }, "worker", "compute", "worker"+without, "compute"+without,
		"openstack", "openstack"+without) {
		t.Run(row.name, func(t *testing.T) {
			s := newSession(t, r)
			folder, unpacked := filepath.Join(s.dir, "original"), filepath.Join(s.dir, "unpacked")
			bundle := filepath.Join(s.dir, "case.ovs-offline")
			for _, path := range []string{folder, unpacked} {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			row.fill(t, s, folder)
			wanted := secretsOf(t, folder)
			if row.withoutDatabases {
				for _, kind := range []string{"ovn_nb", "ovn_sb"} {
					databases, err := filepath.Glob(filepath.Join(folder, "*/db", kind))
					for _, path := range databases {
						err = errors.Join(err, os.RemoveAll(path))
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			said := s.run("-w", folder, "save", "--anonymise", bundle)
			_, kept, _ := strings.Cut(said, "stay: ")
			kept, _, _ = strings.Cut(kept, "\n")
			for _, name := range strings.Split(kept, ", ") {
				delete(wanted, name)
				delete(wanted, inOctets(name))
			}
			ovs.Run(t, "tar", "--zstd", "-xf", bundle, "-C", unpacked)
			delete(wanted, `"name":"join"`) // OVN-Kubernetes gives it, and a northbound database that was left out had it
			delete(wanted, "main")          // a router of the set, and what ovs-vswitchd calls its first thread
			search(t, unpacked, wanted)
		})
	}
}

// secretsOf returns all spellings of what an adversary finds in the files of a folder, and of what each is one.
func secretsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	wanted := map[string]string{}
	counts := map[string]int{}
	eachFile(t, folder, func(path, content string) {
		content = userdataText.ReplaceAllString(content, "") // no addresses with dots
		for _, id := range knownUUID.FindAllString(content, -1) {
			plain := strings.ReplaceAll(id, "-", "")
			under := strings.ReplaceAll(id, "-", "_")
			for _, cut := range []string{
				id, plain, under, plain[:16], plain[:12], id[:13], id[:18], id[:23], id[9:], id[24:],
			} {
				wanted[cut], wanted[strings.ToUpper(cut)] = id, id
			}
			counts["UUIDs"]++
		}
		for _, text := range knownMAC.FindAllString(content, -1) {
			if m, err := net.ParseMAC(text); err == nil && text != "00:00:00:00:00:00" {
				for _, spelled := range macSpellings(m) {
					wanted[spelled] = text
				}
				counts["MACs"]++
			}
		}
		for _, text := range knownAddress.FindAllString(content, -1) {
			if a, err := netip.ParseAddr(text); err == nil && !stays4(a) {
				for _, spelled := range addressSpellings(a) {
					wanted[spelled] = text
				}
				counts["addresses"]++
			}
		}
		for text := range strings.Lines(content) {
			hasNames := strings.HasSuffix(path, "conf.db") || strings.HasSuffix(path, "ovnnb_db.db")
			if strings.Contains(text, `"cksum":`) || !hasNames {
				continue // a schema; names in the southbound database come from the others, and from OVN
			}
			for _, id := range knownSystemID.FindAllStringSubmatch(text, -1) {
				wanted[id[1]], wanted[id[1][:6]] = id[0], id[0]
			}
			for _, match := range knownName.FindAllStringSubmatch(text, -1) {
				if slices.Contains([]string{"gateway", "network", "join"}, match[1]) { // nodes and a switch, and words elsewhere
					wanted[match[0]] = match[1]
					continue
				}
				wanted[match[1]], wanted[inOctets(match[1])] = match[1], match[1]
				counts["names"]++
			}
		}
		for _, text := range knownAddress6.FindAllString(content, -1) {
			if a, err := netip.ParseAddr(text); err == nil && a.IsGlobalUnicast() {
				wanted[a.String()], wanted[a.StringExpanded()], wanted[strings.ToUpper(a.String())] = text, text, text
				wanted[inOctets(string(a.AsSlice()))] = text
				counts["IPv6 addresses"]++
			}
		}
	})
	t.Log(counts, len(wanted), "texts are looked for")
	return wanted
}
