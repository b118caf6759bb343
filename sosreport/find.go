package sosreport

import (
	"cmp"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ovs-offline/internal/archive"
	"ovs-offline/workdir/recording"
)

// topFolders returns the top folders of the reports in a tree, "" for the tree itself. It
// ignores a report within another. A version.txt marks a report only if nothing else
// does. A hostname file does so as well if expected is set, which means that the user
// declares the source to be a report.
func topFolders(tree *archive.Tree, expected bool) []string {
	sure, weak := map[string]bool{}, map[string]bool{}
	for _, name := range tree.Names() {
		if top, ok := topOf(name); ok {
			sure[top] = true
		}
	}
	// A database marks a report only outside the reports found so far.
	for _, name := range tree.Names() {
		if top, ok := databaseTop(name); ok && !isInside(top, sure) && !sure[top] {
			weak[top] = true
		}
	}
	maps.Copy(sure, weak)
	if len(sure) == 0 {
		for _, name := range tree.Names() {
			rel := path.Base(name)
			if rel == "version.txt" && (expected || strings.HasPrefix((&contents{tree: tree}).text(name), "sosreport:")) ||
				expected && strings.HasSuffix("/"+name, "/etc/hostname") {
				sure[strings.TrimSuffix(strings.TrimSuffix(dir(name), "etc"), "/")] = true
			}
		}
		for _, name := range tree.Names() {
			if top, ok := logTop(tree, name); ok {
				sure[top] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(sure)), func(top string) bool { return isInside(top, sure) })
}

// topOf cuts a name before the first folder that only reports have.
func topOf(name string) (top string, ok bool) {
	parts := strings.Split(name, "/")
	for i, part := range parts[:len(parts)-1] {
		switch part {
		case "sos_commands", "sos_strings", "sos_containers":
			return strings.Join(parts[:i], "/"), true
		}
	}
	return "", false
}

// databaseTop cuts a name before a folder in which nodes keep their databases.
func databaseTop(name string) (top string, ok bool) {
	for rel, more := name, true; more; _, rel, more = strings.Cut(rel, "/") {
		if isDatabasePath(rel) {
			return strings.TrimSuffix(strings.TrimSuffix(name, rel), "/"), true
		}
	}
	return "", false
}

// logTop cuts a name before the folder var/log of a log of Open vSwitch or OVN, where a file beside
// that folder names the node.
func logTop(tree *archive.Tree, name string) (top string, ok bool) {
	log, isLog := recording.LogOf(name)
	top, _, found := strings.Cut("/"+name, "/var/log/")
	top = strings.TrimPrefix(top, "/")
	if !isLog || !found || log.Pod != "" || recording.IsShared(log.Program) {
		return "", false
	}
	for _, file := range []string{"hostname", "etc/hostname"} {
		if _, there := tree.Files[path.Join(top, file)]; there {
			return top, true
		}
	}
	return "", false
}

// isInside reports whether top is in the folder of another top.
func isInside(top string, tops map[string]bool) bool {
	_, _, ok := split(top, tops)
	return ok
}

// dir returns the folder of a clean name, "" for the top.
func dir(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// knownNames returns the files and folders of a report that are used, relative to its
// top.
func knownNames() []string {
	return []string{
		"version.txt", "hostname", "etc/hostname", "installed-rpms", "sos_reports/manifest.json",
		"sos_commands/host/hostname", dateFile, localDateFile, "sos_commands/rpm/package-data", "sos_commands/dpkg/dpkg_-l",
		"sos_commands/openvswitch/", "sos_commands/ovn_host/", "sos_commands/ovn_central/",
		"sos_commands/openshift_ovn/", "sos_commands/microshift_ovn/",
		"sos_strings/openvswitch/", "sos_strings/ovn_host/", "sos_strings/ovn_central/", "sos_strings/openshift_ovn/",
	}
}

// databaseFolders returns the folders that hold databases, by deployment. sos adds the
// prefix host/ to databases that it truncated in a container that has the host's root
// mounted.
func databaseFolders() []string {
	return []string{
		"etc/openvswitch/", "var/lib/openvswitch/", "usr/local/etc/openvswitch/", "etc/ovn/",
		"var/lib/ovn/", "var/lib/ovn-ic/", "var/snap/microovn/common/data/",
	}
}

// isWanted reports whether a name below a report's top is used.
func isWanted(rel string) bool {
	for _, pattern := range knownNames() {
		if rel == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(rel, pattern) {
			return true
		}
	}
	return singleOutputs()[rel] || isDatabasePath(rel) || isClientLog(rel)
}

// singleOutputs are the single outputs that are used of plugins whose other outputs are not used. Outputs
// about the machine are not among them.
var singleOutputs = sync.OnceValue(func() map[string]bool {
	files := map[string]bool{}
	for _, pattern := range patterns() {
		if !pattern.host && !slices.Contains(knownNames(), pattern.folder+"/") {
			files[pattern.folder+"/"+mangle(pattern.command)] = true
		}
	}
	return files
})

// machineOutputs are the outputs about the machine. Those of devices have the name of the device after
// the one here.
var machineOutputs = sync.OnceValue(func() map[string]bool {
	files := map[string]bool{}
	for _, pattern := range patterns() {
		if pattern.host {
			files[cmp.Or(pattern.file, pattern.folder+"/"+mangle(pattern.command))] = true
		}
	}
	return files
})

// isAside reports whether a name below a report's top is that of a file about the machine: a log, an
// output, also of a network namespace, or a file from which a text is made.
func isAside(rel string) bool {
	_, isLog := recording.LogOf(rel)
	return isLog || isMachineOutput(rel) || recording.MayHaveHostText(rel)
}

func isMachineOutput(rel string) bool {
	if isNamespaceOutput(rel) {
		return true
	}
	if strings.HasPrefix(path.Base(rel), "ethtool_-") {
		command, _, found := strings.Cut(path.Base(rel)[len("ethtool_-"):], "_")
		rel = path.Dir(rel) + "/ethtool_-" + command
		return found && machineOutputs()[rel]
	}
	return machineOutputs()[rel]
}

// isClientLog reports whether a name belongs to a log of clients of libovsdb. sos's plugin
// openshift_ovn copies those beside the databases.
func isClientLog(rel string) bool {
	return recording.IsClientLog(rel) && isDatabasePath(path.Dir(rel)+"/log.db")
}

func isDatabasePath(rel string) bool {
	rel = strings.TrimPrefix(rel, "host/")
	for _, folder := range databaseFolders() {
		if strings.HasPrefix(rel, folder) && strings.HasSuffix(rel, ".db") && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
