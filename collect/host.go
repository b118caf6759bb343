package collect

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"ovs-offline/internal/archive"
	"ovs-offline/internal/lazyregexp"
	"ovs-offline/pkg/ovsdb/raft"
	"ovs-offline/workdir"
	"ovs-offline/workdir/recording"
)

// addHostLog adds a log to its node: that of the pod that printed it, or that of its folder.
func (l *looseReader) addHostLog(name string, id identity) error {
	host := l.hostOfFile(name)
	if id.log.Pod != "" {
		host = cmp.Or(l.nodeOfPod[id.log.Pod], host, id.log.Pod)
	}
	node := l.node(host)
	node.HostLogs = append(node.HostLogs, recording.Log{File: l.tree.Files[name], Program: id.log.Program, Name: id.log.Name, Origin: l.origin(name)})
	return nil
}

// addHostText adds a file of which a text about the machine is made.
func (l *looseReader) addHostText(name string, id identity) error {
	node := l.node(l.hostOfFile(name))
	node.HostFiles = append(node.HostFiles, recording.HostFile{File: l.tree.Files[name], Text: id.text, Origin: l.origin(name)})
	return nil
}

// addStatus adds what cluster/status printed of a server: to the node whose pod it is, or that of its
// folder. Otherwise the nodes that get a database of the server get it too.
func (l *looseReader) addStatus(name string, id identity) error {
	if host := cmp.Or(l.nodeOfPod[podOfStatus(name)], l.hostOfFile(name)); host != "" {
		l.take(identity{command: statusCommand(id.member), node: host}, l.tree.Files[name], l.origin(name))
		return nil
	}
	l.loose.statuses = append(l.loose.statuses, printedMember{id.member, recording.Output{File: l.tree.Files[name], Command: statusCommand(id.member), Origin: l.origin(name)}})
	return nil
}

// podOfStatus returns the name of the pod in whose folder or file the output of a command is.
func podOfStatus(name string) string { return strings.TrimSuffix(path.Base(name), path.Ext(name)) }

// hostOfFile returns the node of a file: that of a folder of outputs of one node, of an agent's bundle,
// or of kube-ovn's plugin; "" if it is not known.
func (l *looseReader) hostOfFile(name string) string {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if host := l.hostOfTop[folder]; host != "" {
			return host
		}
		if folder == "/" {
			break
		}
	}
	if match := supportconfigTop.FindStringSubmatch(path.Dir(name)); match != nil {
		return cmp.Or(match[1], match[2])
	}
	return l.hostOfFolder(name)
}

// isHostOnly reports whether a node has nothing of Open vSwitch or OVN that can be replayed.
func isHostOnly(node *recording.Recording) bool {
	return len(node.Databases) == 0 && len(node.Bridges) == 0 && len(node.Logs) == 0 && len(node.LostDatabases) == 0 && len(node.Dangling) == 0 &&
		!slices.ContainsFunc(node.All, func(output recording.Output) bool {
			command, known := recording.Find(output.Command)
			return !known || command.Dump != "" || command.Prints != "" || workdirMakesDatabase(command.Name)
		})
}

// workdirMakesDatabase reports whether the OVS database can be made from the output of a command.
func workdirMakesDatabase(name recording.Name) bool {
	return name == workdir.RecordedDatabaseDump || name == workdir.RecordedSwitchShow || strings.HasPrefix(string(name), "list-")
}

// placeHostOnly places what belongs to machines of which the inputs have nothing else. Each is a node
// of its own, but for the machines of a must-gather that has only databases of the whole cluster, and for
// one without a name beside one other node.
func placeHostOnly(nodes, hostOnly []*recording.Recording) []*recording.Recording {
	var cluster []*recording.Recording
	for _, node := range nodes {
		if node.Host == clusterNode {
			cluster = append(cluster, node)
		}
	}
	for _, node := range hostOnly {
		switch {
		case len(cluster) == 1 && node.Source.Kind != "sos report":
			mergeHost(cluster[0], node)
		case node.Host == "" && len(nodes) == 1:
			mergeHost(nodes[0], node)
		default:
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// mergeHost adds to a node what belongs to the machine of another recording.
func mergeHost(node, more *recording.Recording) {
	own := node.BySubject()
	for _, output := range more.All {
		if _, exists := own[output.Subject()]; !exists {
			node.All = append(node.All, output)
		}
	}
	node.HostLogs = append(node.HostLogs, more.HostLogs...)
	node.HostTexts = append(node.HostTexts, more.HostTexts...)
	node.Remarks, node.Lost = append(node.Remarks, more.Remarks...), append(node.Lost, more.Lost...)
}

// printedMember is the output of cluster/status that belongs to no node yet.
type printedMember struct {
	status *raft.Status
	recording.Output
}

// placeStatuses gives the outputs of cluster/status to the nodes with a database of the server that
// printed them, or else to the first node. Those that one node gets stay together.
func (r *filesReader) placeStatuses(nodes []*recording.Recording) error {
	for _, printed := range r.loose.statuses {
		var of []*recording.Recording
		for _, node := range nodes {
			if r.hasServer(node, printed.status.Server) {
				of = append(of, node)
			}
		}
		if len(of) == 0 {
			of = nodes[:min(1, len(nodes))]
		}
		for _, node := range of {
			if err := r.addPrinted(node, printed.Output); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPrinted bounds what a node gets of outputs of cluster/status, in bytes. One has about a thousand.
const maxPrinted = 256 << 10

// addPrinted adds an output of cluster/status to a node, behind those that it has.
func (r *filesReader) addPrinted(node *recording.Recording, output recording.Output) error {
	var text []byte
	at := slices.IndexFunc(node.All, func(other recording.Output) bool { return other.Command == output.Command })
	if at < 0 {
		at = len(node.All)
		node.All = append(node.All, output)
	} else if err := appendFile(&text, node.All[at].Spooled); err != nil {
		return err
	}
	if len(text) >= maxPrinted {
		node.Lost = append(node.Lost, output.Origin+" is left out: there are too many outputs of cluster/status")
		return nil
	}
	if err := appendFile(&text, output.Spooled); err != nil {
		return err
	}
	file, err := archive.Spool(r.ctx, r.spool, bytes.NewReader(text)) // several nodes may get it
	node.All[at].File = file
	return err
}

// appendFile appends the beginning of a file to a text, and the end of its last line.
func appendFile(text *[]byte, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxPrinted))
	*text = append(append(*text, content...), '\n')
	return err
}

// hasServer reports whether a node has a database file of a server of a cluster.
func (r *filesReader) hasServer(node *recording.Recording, server string) bool {
	return slices.ContainsFunc(node.Databases, func(db recording.Database) bool {
		info, err := db.Inspect(r.ctx)
		return err == nil && info.Server == server
	})
}

// isOfHost reports whether an output belongs to the machine.
func isOfHost(output recording.Output) bool {
	command, _ := recording.Find(output.Command)
	return command.Host
}

// tells reports whether what was collected of the machine tells about Open vSwitch or OVN: it has a log
// of theirs, or an output. The logs and outputs of any machine do not.
func (p *Plan) tells() bool {
	return slices.ContainsFunc(p.HostLogs, func(log recording.Log) bool { return !recording.IsShared(log.Program) }) ||
		slices.ContainsFunc(slices.Concat(p.Recorded, p.HostOutputs), func(output recording.Output) bool {
			command, _ := recording.Find(output.Command)
			return strings.HasPrefix(command.Line, "ov")
		})
}

// makeHostTexts makes the texts about the machine of the files that were found, and adds them to the
// outputs of the node. Of a text in several parts, each part has the path of its file.
func makeHostTexts(ctx context.Context, spool string, node *recording.Recording) error {
	parts, origins := map[string]*strings.Builder{}, map[string]string{}
	for _, file := range node.HostFiles {
		text, err := textOf(file)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		if parts[file.Text] == nil {
			parts[file.Text], origins[file.Text] = &strings.Builder{}, file.Origin
		}
		parts[file.Text].WriteString(text)
	}
	node.HostFiles = nil
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		spooled, err := archive.Spool(ctx, spool, strings.NewReader(parts[name].String()))
		if err != nil {
			return err
		}
		node.HostTexts = append(node.HostTexts, recording.Output{File: spooled, Command: recording.Name(name), Origin: origins[name]})
	}
	return nil
}

// maxHostFile bounds what is read of a file of which a text is made: a bundle of certificates has
// some 200 KiB.
const maxHostFile = 1 << 20

// textOf returns what is kept of a file.
func textOf(file recording.HostFile) (string, error) {
	in, err := os.Open(file.Spooled)
	if err != nil {
		return "", err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, maxHostFile))
	if err != nil {
		return "", err
	}
	switch file.Text {
	case workdir.HostCertificates:
		return certificates(file.Origin, raw), nil
	case workdir.HostCPUSets:
		return cpuSets(file.Origin, string(raw)), nil
	}
	return fmt.Sprintf("%s %s\n", file.Origin, strings.TrimSpace(string(raw[:min(len(raw), 32)]))), nil
}

// certificates returns the names and dates of the certificates in a file, each on a line of its own. Of
// what sos prints, only the dates are known.
func certificates(origin string, raw []byte) string {
	var text strings.Builder
	line := func(subject, issuer string, from, to time.Time) {
		fmt.Fprintf(&text, "%s\tsubject=%q\tissuer=%q\tnotBefore=%s\tnotAfter=%s\n", origin, subject, issuer, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && strings.HasSuffix(block.Type, "CERTIFICATE") {
			line(certificate.Subject.String(), certificate.Issuer.String(), certificate.NotBefore, certificate.NotAfter)
		}
	}
	dates := map[string]time.Time{}
	for _, match := range printedDate.FindAllStringSubmatch(string(raw), -1) {
		if at, err := time.Parse("Jan _2 15:04:05 2006 MST", match[2]); err == nil {
			dates[match[1]] = at
		}
	}
	if len(dates) == 2 {
		line("", "", dates["notBefore"], dates["notAfter"])
	}
	return text.String()
}

// printedDate matches what "openssl x509 -dates" prints.
var printedDate = lazyregexp.New(`(?m)^(notBefore|notAfter)=(.+?)\r?$`)

// cpuSets returns the lines of nova.conf with the processors that instances may use. The rest of the
// file has passwords.
func cpuSets(origin, text string) string {
	var sets strings.Builder
	section := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, maxHostFile)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section = line
		}
		name, value, _ := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if section == "[compute]" && (name == "cpu_dedicated_set" || name == "cpu_shared_set") || section == "[DEFAULT]" && name == "vcpu_pin_set" {
			fmt.Fprintf(&sets, "%s\t%s %s=%s\n", origin, section, name, strings.TrimSpace(value))
		}
	}
	return sets.String()
}
