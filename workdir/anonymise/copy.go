// Package anonymise copies collected data with other names, addresses, MAC addresses and UUIDs, which are replaced in
// the same way in databases, flows, outputs and logs. A word stays only if it is known to have a meaning; everything
// else is taken for a name. Prefixes, families, and the lengths of names are kept, so that the copies give the same
// answers.
package anonymise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ovs-offline/internal/interrupt"
	"ovs-offline/internal/phrase"
	"ovs-offline/internal/temporary"
	"ovs-offline/pkg/ovsdb/file"
	"ovs-offline/workdir"
	"ovs-offline/workdir/bundle"
)

// Result is copies of the data of nodes.
type Result struct {
	Nodes   []bundle.Workdir // with their new names
	Map     *Map
	Remarks []string // what was left out, and which names stay
}

// With calls use with copies of the data of nodes, in a temporary folder that is removed afterwards. progress is called
// with what is done.
func With(ctx context.Context, nodes []bundle.Workdir, progress func(text string), use func(*Result) error) (err error) {
	folder, remove, err := temporary.Folder("anonymise")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	c := &copier{folder: folder, databases: map[string]*file.Copy{}, renamed: map[string]string{}, problems: map[string]string{}}
	defer c.close()
	made, err := c.copyAll(ctx, nodes, progress)
	if err != nil {
		return err
	}
	return use(made)
}

// copier copies the data of nodes.
type copier struct {
	*renamer
	folder    string
	databases map[string]*file.Copy // by the sums of the originals; what is not anonymised has no name on disk
	renamed   map[string]string     // the paths of renamed databases, by the sums of the originals
	problems  map[string]string     // why files are left out, by their paths
	remarks   []string
}

// close gives the copies of the databases back.
func (c *copier) close() {
	for _, database := range c.databases {
		database.Close()
	}
}

// copyAll copies the data of nodes into new workdirs in the folder.
func (c *copier) copyAll(ctx context.Context, nodes []bundle.Workdir, progress func(text string)) (*Result, error) {
	stays, prose, found := vocabularyOf(wordList), vocabularyOf(proseList), newFound()
	progress("looking for names and addresses")
	for _, node := range nodes {
		if err := c.search(ctx, node, found, stays); err != nil {
			return nil, fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	found.sortPhrases()
	progress("choosing the replacements")
	var err error
	if c.renamer, err = bestRenamer(ctx, found, stays, prose); err != nil {
		return nil, err
	}
	result := &Result{}
	for _, node := range nodes {
		progress("copying " + node.Name)
		copied, err := c.copy(ctx, node)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", node.Name, err)
		}
		result.Nodes = append(result.Nodes, copied)
	}
	result.Map, result.Remarks = c.mapping(), c.remarks
	if n := len(slices.DeleteFunc(sortedKeys(found.uuids), found.isSystemID)); n > 0 {
		result.Remarks = append(result.Remarks, fmt.Sprintf("the first %d digits of %s stay, because cookies of flows have them: "+
			"two bundles of one deployment can be joined by them", keptDigits, phrase.Count(n, "UUID")))
	}
	if networks := found.readable(); len(networks) > 0 {
		result.Remarks = append(result.Remarks, fmt.Sprintf("more than the last %d bits of addresses stay in large networks, by the number in brackets: %s",
			hostBits, strings.Join(networks, ", ")))
	}
	if c.leftOut > 0 {
		result.Remarks = append(result.Remarks,
			fmt.Sprintf("%d parts of userdata and notes of actions are not understood: zeros are in their place", c.leftOut))
	}
	if kept := sortedKeys(c.kept); len(kept) > 0 {
		result.Remarks = append(result.Remarks, "names of which each word has a meaning for Open vSwitch, OVN, Kubernetes or OpenStack stay: "+strings.Join(kept, ", "))
	}
	return result, nil
}

// search adds what the files of a node hold to found.
func (c *copier) search(ctx context.Context, node bundle.Workdir, found *found, stays vocabulary) error {
	found.add([]byte(node.Name), false, stays)
	found.addName(node.Name, stays, true)
	files, err := filesOf(node.Dir)
	if err != nil {
		return err
	}
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		of := node.Dir.Join(path)
		found.add([]byte(path), false, stays)
		var err error
		switch how := handlingOf(path); how {
		case asDatabase:
			err = c.searchDatabase(ctx, of, found, stays)
		case asText, asProse:
			err = eachLine(of, func(line []byte) error {
				found.add(line, how == asProse, stays)
				return ctx.Err()
			})
		}
		if err != nil && ctx.Err() == nil {
			c.problems[of] = err.Error()
		}
	}
	return ctx.Err()
}

// filesOf returns the paths of the files of a workdir, without those that were made up: they can be made again.
func filesOf(wd *workdir.Dir) ([]string, error) {
	files, _, err := wd.DataFiles()
	if err != nil {
		return nil, err
	}
	manifest, err := wd.Manifest()
	if err != nil {
		return nil, err
	}
	madeUp := map[string]bool{}
	for _, collection := range manifest.Collections {
		for _, f := range collection.Files {
			madeUp[f.Path] = madeUp[f.Path] || collection.MadeUp()
		}
	}
	return slices.DeleteFunc(files, func(path string) bool { return madeUp[path] }), nil
}

// searchDatabase makes a copy of a database, one for all equal ones, and adds what it holds to found.
func (c *copier) searchDatabase(ctx context.Context, path string, found *found, stays vocabulary) error {
	_, sum, err := digest(ctx, path)
	if err != nil || c.databases[sum] != nil {
		return err
	}
	plain, err := file.NewCopy(ctx, path, c.folder)
	if err != nil {
		return err
	}
	c.databases[sum] = plain
	return plain.Transactions(ctx, func(text []byte) error { return found.addDatabase(ctx, text, kindOf(path), stays) })
}

// bestRenamer returns a renamer by which nothing that was found is replaced by another thing that was found, nor by a word
// that stays, if there is one among some.
func bestRenamer(ctx context.Context, found *found, stays, prose vocabulary) (best *renamer, err error) {
	const tries = 20
	fewest := -1
	for range tries {
		r := newRenamer(newKey(), found, stays, prose)
		n, err := r.clashes(ctx)
		if err != nil {
			return nil, err
		}
		if fewest < 0 || n < fewest {
			best, fewest = r, n
		}
		if fewest == 0 {
			break
		}
	}
	return best, nil
}

// clashes returns how many things that were found are replaced by another thing that was found, or by a word that stays.
func (r *renamer) clashes(ctx context.Context) (n int, err error) {
	const shortest = 3 // letters: there are too few shorter words
	count := func(clash bool) {
		if clash {
			n++
		}
	}
	for a := range r.found.addresses {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		to := r.replaced(a, a.BitLen())
		count(to != a && r.found.addresses[to] || to == a && a.Is4() && !isSpecial(a))
	}
	for p := range r.found.prefixes {
		to := r.replaced(p.Addr(), p.Bits())
		count(to != p.Addr() && r.found.addresses[to])
	}
	for m := range r.found.macs {
		to := r.key.mac(m)
		count(to != m && r.found.macs[to])
	}
	for _, word := range slices.Concat(sortedKeys(r.found.words), sortedKeys(r.found.singles)) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		to := r.key.name(word)
		count(len(word) >= shortest && (r.found.words[to] || r.found.prose[to] || r.stays[to]))
	}
	phrases := slices.Concat(slices.Collect(maps.Values(r.found.phrases))...)
	known := map[string]bool{}
	for _, name := range phrases {
		known[name] = true
	}
	for _, name := range phrases {
		count(known[r.replacedPhrase(name)])
	}
	return n, nil
}

// copy copies the data of a node.
func (c *copier) copy(ctx context.Context, node bundle.Workdir) (copied bundle.Workdir, err error) {
	manifest, err := node.Dir.Manifest()
	if err != nil {
		return copied, err
	}
	files, err := filesOf(node.Dir)
	if err != nil {
		return copied, err
	}
	if copied.Name = c.single(c.encoded(node.Name)); copied.Name == node.Name {
		c.kept[node.Name] = true
	}
	target := filepath.Join(c.folder, "nodes", copied.Name)
	if err := os.MkdirAll(target, 0o700); err != nil {
		return copied, err
	}
	written := map[string]workdir.File{} // by the paths of the originals
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return copied, err
		}
		to := c.path(path)
		err := c.copyFile(ctx, path, node.Dir.Join(path), filepath.Join(target, to))
		if ctx.Err() != nil {
			return copied, ctx.Err()
		}
		if err != nil {
			c.remarks = append(c.remarks, fmt.Sprintf("%s: %s is left out: %v", node.Name, path, err))
			continue
		}
		size, sum, err := digest(ctx, filepath.Join(target, to))
		if err != nil {
			return copied, err
		}
		written[path] = workdir.File{Path: to, Size: size, SHA256: sum}
	}
	manifest.Collections = slices.DeleteFunc(manifest.Collections, func(of workdir.Collection) bool { return of.MadeUp() })
	c.manifest(manifest, written)
	text, err := json.Marshal(manifest)
	if err == nil {
		err = os.WriteFile(filepath.Join(target, "manifest.json"), text, 0o600)
	}
	if err == nil {
		copied.Dir, err = workdir.Find(target)
	}
	return copied, err
}

// errNotRenamed is the error for a file in which names can't be replaced.
var errNotRenamed = errors.New("names in it can't be replaced")

// copyFile copies a file with everything replaced. After an error there is no copy.
func (c *copier) copyFile(ctx context.Context, path, from, to string) error {
	if problem := c.problems[from]; problem != "" {
		return errors.New(problem)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	switch how := handlingOf(path); how {
	case asDatabase:
		return c.copyDatabase(ctx, from, to)
	case asText, asProse:
		out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		err = eachLine(from, func(line []byte) error {
			_, err := out.Write(c.text(line, how == asProse))
			return errors.Join(err, ctx.Err())
		})
		if err = errors.Join(err, out.Close()); err != nil {
			return errors.Join(err, os.Remove(to))
		}
		return nil
	}
	return errNotRenamed
}

// copyDatabase copies a database with everything replaced, once for all equal ones.
func (c *copier) copyDatabase(ctx context.Context, from, to string) error {
	_, sum, err := digest(ctx, from)
	if err != nil {
		return err
	}
	if c.renamed[sum] == "" {
		rename := func(text []byte) ([]byte, error) { return c.database(ctx, text, kindOf(from)) }
		if err := c.databases[sum].Rewrite(ctx, to, rename); err != nil {
			return err
		}
		if kind := kindOf(from); kind != string(workdir.SB) { // its names come from the others
			if err := c.databases[sum].Transactions(ctx, func(text []byte) error { return c.keptNames(ctx, text, kind) }); err != nil {
				return err
			}
		}
		c.renamed[sum] = to
		return nil
	}
	return os.Link(c.renamed[sum], to)
}

// kindOf returns the kind of a database of a workdir.
func kindOf(path string) string { return filepath.Base(filepath.Dir(path)) }

// manifest replaces everything in a manifest, and leaves out files that were not written.
func (c *copier) manifest(m *workdir.Manifest, written map[string]workdir.File) {
	prose := func(texts []string) []string {
		var all []string
		for _, text := range texts {
			all = append(all, string(c.text([]byte(text), true)))
		}
		return all
	}
	for i := range m.Collections {
		of := &m.Collections[i]
		of.Source.Name = c.name(filepath.Base(of.Source.Name)) // the folders are those of who collected it
		of.Host, of.Node, of.Image = c.host(of.Host), c.host(of.Node), c.name(of.Image)
		of.LoadedImage = ""
		for j := range of.Bridges {
			of.Bridges[j] = c.name(of.Bridges[j])
		}
		of.Remarks, of.Lost = prose(of.Remarks), prose(of.Lost)
		for kind, lost := range of.LostDatabases {
			of.LostDatabases[kind] = prose(lost)
		}
		before := len(of.Files)
		of.Files = slices.DeleteFunc(of.Files, func(f workdir.File) bool { return written[f.Path].Path == "" })
		if n := before - len(of.Files); n > 0 {
			of.Remarks = append(of.Remarks, fmt.Sprintf("%d files were left out when the data was anonymised", n))
		}
		for j := range of.Files {
			f := &of.Files[j]
			now := written[f.Path]
			f.Path, f.Size, f.SHA256 = now.Path, now.Size, now.SHA256
			f.Origin, f.Bridge, f.Namespace, f.Remarks = c.name(f.Origin), c.name(f.Bridge), c.name(f.Namespace), prose(f.Remarks)
			if f.Partial != nil {
				f.Partial.Reasons = prose(f.Partial.Reasons)
			}
		}
		if b := of.Built; b != nil { // its commands may name what is nowhere else
			b.Assumptions = prose(b.Assumptions)
			for _, commands := range [][]workdir.Command{b.Refused, b.Failed} {
				for j := range commands {
					tool, _, _ := strings.Cut(commands[j].Command, " ")
					commands[j].Command, commands[j].Reason = c.name(tool), "left out when the data was anonymised"
				}
			}
		}
		if s := of.Synthesised; s != nil { // a database that was made of printed tables
			s.Chassis, s.Hostname, s.Assumptions = c.name(s.Chassis), c.name(s.Hostname), prose(s.Assumptions)
			for path, now := range written {
				if filepath.Base(path) == "tables.txt" && strings.HasPrefix(path, filepath.Join("db", string(of.Kind))) {
					s.SHA256 = now.SHA256
				}
			}
		}
	}
}

// mapping returns what was replaced.
func (c *copier) mapping() *Map {
	m := &Map{Names: c.words, Addresses: map[string]string{}, MACs: map[string]string{}, UUIDs: map[string]string{}}
	for a := range c.found.addresses {
		if to := c.replaced(a, a.BitLen()); to != a {
			m.Addresses[a.String()] = to.String()
		}
	}
	for p := range c.found.prefixes {
		if to := c.replaced(p.Addr(), p.Bits()); to != p.Addr() {
			m.Addresses[p.String()] = netip.PrefixFrom(to, p.Bits()).String()
		}
	}
	for mac := range c.found.macs {
		if to := c.key.mac(mac); to != mac {
			m.MACs[net.HardwareAddr(mac[:]).String()] = net.HardwareAddr(to[:]).String()
		}
	}
	for uuid := range c.found.uuids {
		m.UUIDs[uuid] = c.uuid(uuid)
	}
	return m
}

// digest returns the size and the sum of a file.
func digest(ctx context.Context, path string) (int64, string, error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, interrupt.Reader(ctx, in))
	return n, hex.EncodeToString(sum.Sum(nil)), err
}
