package k8s

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/test/oracle/fidelity"
	"ovs-offline/workdir"
)

// content maps the files of a collection to what must not change: the entries of a
// dump, the rows of a database, and for other recorded output, whose figures change
// every second, the number of lines.
type content map[string]string

// volatile is the content of a file whose content changes without faults.
const volatile = "(changes)"

// judge returns what is wrong with a run, or "" if the run is complete or reports
// what it lacks.
func (truth content) judge(r result, dir string) string {
	if r.code != 0 && strings.TrimSpace(r.complaints) == "" {
		return "it printed no error message"
	}
	if r.code != 0 && r.code != 1 && r.code != 3 {
		return "unexpected exit code"
	}
	have, err := read(dir)
	if err != nil {
		return err.Error()
	}
	if r.code == 1 {
		if len(have) > 0 {
			return "it failed and left data"
		}
		return ""
	}
	lost, err := lost(dir)
	if err != nil {
		return err.Error()
	}
	if (r.code == 0) != (len(lost) == 0) {
		return fmt.Sprintf("the manifest lists as lost: %q", lost)
	}
	for name, want := range truth {
		got, there := have[name]
		named := strings.Contains(strings.Join(lost, "\n"), lostAs(name))
		switch {
		case !there && !named:
			return fmt.Sprintf("%s is missing, but the manifest lists only %q", name, lost)
		case there && want != volatile && got != want:
			return name + " differs from the node"
		}
	}
	return ""
}

// judgeKilled returns what is wrong with the workdir of a run that was killed, "" if it
// is empty or complete.
func (truth content) judgeKilled(dir string) string {
	if have, err := read(dir); err == nil && len(have) == 0 {
		return ""
	}
	return truth.judge(result{}, dir)
}

// lost returns what the manifest of a collection lists as lost.
func lost(dir string) ([]string, error) {
	var manifest workdir.Manifest
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	var all []string
	for _, c := range manifest.Collections {
		all = append(all, c.Lost...)
	}
	return all, err
}

// lostAs returns the words by which the manifest names a lost file: the database, or
// the command whose output it is.
func lostAs(path string) string {
	folder, name := filepath.Split(path)
	for _, k := range []workdir.Kind{workdir.NB, workdir.SB} {
		if strings.HasPrefix(folder, "db/"+string(k)+"/") {
			return "the " + k.Title() + " database: "
		}
	}
	if folder == "restore_flows/" {
		kind := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(name, ".dump")), ".")
		return "dump-" + strings.Replace(kind, "tlv", "tlv-map", 1)
	}
	if table, is := strings.CutPrefix(name, "list-"); is {
		return "list " + table
	}
	return strings.ReplaceAll(name, ".", "/")
}

// read returns the content of a collection, without what belongs to the machine: logs, which are named for
// their pods and grow, and what daemons print about themselves.
func read(dir string) (content, error) {
	var manifest workdir.Manifest
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &manifest)
	}
	if err != nil {
		return nil, err
	}
	all := content{}
	for _, c := range manifest.Collections {
		if c.Kind == workdir.Host {
			continue
		}
		for _, f := range c.Files {
			data, err := os.ReadFile(filepath.Join(dir, f.Path))
			if err != nil {
				return nil, err
			}
			if all[f.Path], err = digest(f.Path, data); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path, err)
			}
		}
	}
	return all, nil
}

func digest(path string, data []byte) (string, error) {
	switch kind := strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(path, ".dump")), "."); {
	case strings.HasPrefix(path, "db/"):
		return rows(data)
	case strings.HasSuffix(path, ".dump"):
		list := fidelity.Entries(workdir.Dump(kind), string(data))
		slices.Sort(list)
		return strings.Join(list, "\n"), nil
	}
	for _, word := range []string{"dump-flows", "conntrack", workdir.RecordedCoverage, workdir.RecordedMemory,
		workdir.RecordedUpcalls} {
		if strings.Contains(path, word) {
			return volatile, nil
		}
	}
	return fmt.Sprint(bytes.Count(data, []byte("\n")), " lines"), nil
}

// rows returns the table and UUID of each row of a standalone database, and checks the
// checksums of its records.
func rows(data []byte) (string, error) {
	var list []string
	for n := 0; len(data) > 0; n++ {
		var length int
		var sum string
		header, rest, _ := bytes.Cut(data, []byte("\n"))
		if _, err := fmt.Sscanf(string(header), "OVSDB JSON %d %s", &length, &sum); err != nil {
			return "", fmt.Errorf("record %d: %w", n, err)
		}
		if length > len(rest) || fmt.Sprintf("%x", sha1.Sum(rest[:length])) != sum {
			return "", fmt.Errorf("record %d is damaged", n)
		}
		if n > 0 {
			var tables map[string]json.RawMessage
			if err := json.Unmarshal(rest[:length], &tables); err != nil {
				return "", err
			}
			for table, raw := range tables {
				var byID map[string]json.RawMessage
				if json.Unmarshal(raw, &byID) == nil {
					for id := range byID {
						list = append(list, table+" "+id)
					}
				}
			}
		}
		data = rest[length:]
	}
	slices.Sort(list)
	return strings.Join(list, "\n"), nil
}
