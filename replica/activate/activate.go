// Package activate writes a replica's bin directory: the scripts that make a shell use
// the replica, and for each tool a wrapper that runs the tool on the replica.
package activate

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"ovs-offline/internal/terminal"
	"ovs-offline/replica/runtime/process"
)

//go:embed templates
var templates embed.FS

// script is the name of the script for bash and zsh.
const script = "activate"

// Replica holds the parameters of the scripts. All paths are absolute.
type Replica struct {
	Node      string   // the node's name in the prompt; "" for a prompt without one
	Exec      []string // command line that runs a tool elsewhere, without the tool's name; nil to run tools on this host
	Local     []string // tools to run on this host in spite of Exec
	Bin       string   // the directory to write to
	OVSRunDir string   // where ovs-vswitchd and the OVS database have their sockets
	OVNRunDir string   // where ovn-appctl looks for control sockets
	OVS       bool     // whether an OVS database was collected
	NBSocket  string   // socket of the OVN NB database server; "" if none was collected
	SBSocket  string   // socket of the OVN SB database server; "" if none was collected
	Recorded  string   // socket of the OVS database as recorded; "" if it is not served
	// Ended is printed by the wrappers of tools that ask ovs-vswitchd and fail because it
	// has ended, where it is not exec that runs them.
	Ended string
	// TraceWarning is printed by the wrapper of ovn-trace that runs the tool on this
	// host, where it is not exec that runs it; "" for none.
	TraceWarning string
}

// Script returns the path of the script that a user sources.
func Script(bin string) string { return filepath.Join(bin, script) }

// recordedTool is the name of the wrapper of ovs-vsctl for the database as recorded.
const recordedTool = "ovs-vsctl-recorded"

// RecordedTool returns the path of the wrapper of ovs-vsctl for the database as
// recorded.
func RecordedTool(bin string) string { return filepath.Join(bin, recordedTool) }

// Tools lists the programs that get a wrapper.
func Tools() []string {
	return []string{"ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovsdb-client",
		"ovn-nbctl", "ovn-sbctl", "ovn-trace", "ovn-detrace", "ovn-appctl"}
}

// Write writes the scripts, each atomically, and replaces the scripts of an earlier start.
func Write(replica Replica) error {
	if err := replica.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(replica.Bin, zshFolder), 0o700); err != nil {
		return fmt.Errorf("creating the directory of the scripts: %w", err)
	}
	parsed, err := template.New("").Funcs(template.FuncMap{"quote": quote, "fish": quoteFish}).ParseFS(templates, "templates/*")
	if err != nil {
		return fmt.Errorf("reading the templates of the scripts: %w", err)
	}
	// The mark is written first, so that no wrapper is ever taken for a tool.
	if err := writeFile(replica.Bin, process.WrapperMark, 0o644, nil); err != nil {
		return err
	}
	for _, file := range replica.files() {
		var text bytes.Buffer
		if err := parsed.ExecuteTemplate(&text, file.template, replica.templateValues(file.name)); err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
		if err := writeFile(replica.Bin, file.name, file.mode, text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// file is a file in the directory, by its path there.
type file struct {
	name, template string
	mode           os.FileMode
}

// files returns the files that Write writes, without the mark.
func (r Replica) files() []file {
	var list []file
	for _, tool := range Tools() {
		wrapper := file{tool, "exec.sh", 0o755}
		if len(r.Exec) == 0 || slices.Contains(r.Local, tool) {
			wrapper.template = "wrapper.sh"
		}
		list = append(list, wrapper)
	}
	return append(list, file{recordedTool, "recorded.sh", 0o755},
		file{bashSettings, "bashrc.sh", 0o644}, file{zshFolder + "/.zshrc", "zshrc.sh", 0o644},
		file{fishScript, "activate.fish", 0o644}, file{script, "activate.sh", 0o644})
}

// Remove removes the files that Write wrote, and the directory if it is then empty.
func Remove(bin string) error {
	var failed []error
	for _, name := range written() {
		if err := os.Remove(filepath.Join(bin, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = append(failed, fmt.Errorf("removing a script of the replica: %w", err))
		}
	}
	for _, dir := range []string{filepath.Join(bin, zshFolder), bin} {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if unfinished(entry.Name()) {
				_ = os.Remove(filepath.Join(dir, entry.Name()))
			}
		}
		_ = os.Remove(dir) // fails if the directory has other files, as it should
	}
	return errors.Join(failed...)
}

// Environment returns the variables that the scripts set for the tools. The scripts
// unset variables with an empty value.
func (r Replica) Environment() map[string]string {
	return map[string]string{
		"OVS_DBG_WORKDIR": filepath.Dir(r.Bin), // of ovs-offline itself
		"OVS_RUNDIR":      r.OVSRunDir, "OVN_RUNDIR": r.OVNRunDir, "OVN_NB_DB": remoteOption(r.NBSocket), "OVN_SB_DB": remoteOption(r.SBSocket),
		// These variables would make the tools use another daemon or database.
		"OVN_NB_DAEMON": "", "OVN_SB_DAEMON": "", "OVN_NBCTL_OPTIONS": "", "OVN_SBCTL_OPTIONS": "",
	}
}

// written returns the paths in the directory of the files that Write writes.
func written() []string {
	names := []string{process.WrapperMark}
	for _, file := range (Replica{}).files() {
		names = append(names, file.name)
	}
	return names
}

// unfinished reports whether writeFile leaves files of that name when it is killed.
func unfinished(name string) bool {
	for _, whole := range written() {
		digits, ok := strings.CutPrefix(name, "."+filepath.Base(whole)+".")
		if _, err := strconv.ParseUint(digits, 10, 64); ok && err == nil {
			return true
		}
	}
	return false
}

// check returns an error for paths that can't be passed to the tools even quoted: a
// colon separates the entries of PATH, a comma the databases of OVN and OVS tools.
func (r Replica) check() error {
	for _, path := range []string{r.Bin, r.OVSRunDir, r.OVNRunDir, r.NBSocket, r.SBSocket, r.Recorded} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%q is not an absolute path", path)
		}
		if strings.ContainsAny(path, ",\n\x00") {
			return fmt.Errorf("%q: the OVS and OVN tools can't use a path with a comma or a line break", path)
		}
	}
	if strings.ContainsRune(r.Bin, ':') {
		return fmt.Errorf("%q: PATH can't hold a directory with a colon in its name", r.Bin)
	}
	return nil
}

// templateValues returns the values for a tool's template. The template quotes the paths.
func (r Replica) templateValues(tool string) map[string]any {
	return map[string]any{
		"Prompt": r.prompt(), "Tool": tool, "Refusal": r.refusal(tool), "Warning": r.warning(tool), "Ended": r.endedText(tool), "Timeout": timeout(tool), "Late": exitLate, "Advice": LateAdvice(tool, exitLate), "Hint": process.PackageHint(tool), "Mark": process.WrapperMark, "Exec": r.Exec,
		"Bin": r.Bin, "Activate": Script(r.Bin), "OVSRunDir": r.OVSRunDir, "OVNRunDir": r.OVNRunDir, "OVS": r.OVS,
		"NB": remoteOption(r.NBSocket), "SB": remoteOption(r.SBSocket), "Recorded": remoteOption(r.Recorded),
		"Saved": []string{"PATH", "PS1", "OVS_RUNDIR", "OVN_RUNDIR", "OVN_NB_DB", "OVN_SB_DB",
			"OVN_NB_DAEMON", "OVN_SB_DAEMON", "OVN_NBCTL_OPTIONS", "OVN_SBCTL_OPTIONS"},
	}
}

// warning returns the line that the wrapper of a tool prints after the tool, "" for none.
func (r Replica) warning(tool string) string {
	if tool != "ovn-trace" || r.TraceWarning == "" {
		return ""
	}
	return "warning: " + terminal.Escape(r.TraceWarning)
}

// endedText returns what the wrapper of a tool prints if the tool fails because ovs-vswitchd
// has ended, "" for a tool that does not ask ovs-vswitchd.
func (r Replica) endedText(tool string) string {
	if !AsksSwitch(tool) || r.Ended == "" {
		return ""
	}
	return tool + ": " + terminal.Escape(r.Ended)
}

// AsksSwitch reports whether a tool fails once ovs-vswitchd has ended. ovs-vsctl waits.
func AsksSwitch(tool string) bool { return tool == "ovs-appctl" || tool == "ovs-ofctl" }

// maxSeconds is the time that the wrapper of ovs-appctl gives it, unless the user gives
// it another. A trace on a replica of a million flows takes a second.
const maxSeconds = 120

// exitLate is the exit code, in a shell, of a tool whose time is up: 128 and SIGALRM.
const exitLate = 128 + 14

// timeout returns the option with which the wrapper of a tool bounds its time. It comes
// before the user's options, which override it.
func timeout(tool string) string {
	if tool != "ovs-appctl" {
		return ""
	}
	return fmt.Sprintf("--timeout=%d", maxSeconds)
}

// LateAdvice returns what to do after a tool has ended with an exit code because its
// time was up, "" for another exit code.
func LateAdvice(tool string, exit int) string {
	if timeout(tool) == "" || exit != exitLate {
		return ""
	}
	return fmt.Sprintf(`%s: ovs-vswitchd did not answer in time (the limit is %d s; -T SECONDS sets another). If it stays busy, "ovs-offline start" starts the replica again`, tool, maxSeconds)
}

// refusal returns the reason why a tool can't be used with the collected data; "" if
// it can. Without this check the tool would use the host's own database.
func (r Replica) refusal(tool string) string {
	if tool == recordedTool && r.OVS && r.Recorded == "" {
		return "the OVS database as recorded is not served: ovs-offline report gives the reason"
	}
	needs := map[string][]string{"ovs-vsctl": {"OVS"}, recordedTool: {"OVS"}, "ovn-nbctl": {"OVN NB"}, "ovn-sbctl": {"OVN SB"},
		"ovn-trace": {"OVN SB"}, "ovn-detrace": {"OVN NB", "OVN SB"}}
	has := map[string]bool{"OVS": r.OVS, "OVN NB": r.NBSocket != "", "OVN SB": r.SBSocket != ""}
	for _, database := range needs[tool] {
		if !has[database] {
			return "no " + database + " database was collected"
		}
	}
	return ""
}

// prompt returns what stands before a shell's prompt. The shells expand special
// characters there, so the ones in the node's name are replaced.
func (r Replica) prompt() string {
	const longest = 60
	node := strings.Map(func(char rune) rune {
		if char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || char >= '0' && char <= '9' || strings.ContainsRune("._@+-", char) {
			return char
		}
		return '_'
	}, r.Node)
	return strings.TrimSuffix("(ovs-offline "+node[:min(len(node), longest)], " ") + ")"
}

func remoteOption(socket string) string {
	if socket == "" {
		return ""
	}
	return "unix:" + socket
}

// quote quotes a text as one word for a shell.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// quoteFish quotes a text as one word for fish.
func quoteFish(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}

// writeFile writes a file atomically: a shell may be reading the old one.
func writeFile(dir, name string, mode os.FileMode, text []byte) (err error) {
	path := filepath.Join(dir, name)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}()
	_, err = file.Write(text)
	if err := errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
