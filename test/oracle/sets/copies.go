package sets

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Copied returns the name that a node or a namespace of the set kubernetes-ic has in a copy.
// OVN allows no "-" in the names of port groups and address sets, which hold these names.
func Copied(name string, number int) string { return fmt.Sprintf("%sc%02d", name, number) }

// Copies writes the sos reports of count further clusters into dir/NODE, and returns the
// folders. Each cluster is the set kubernetes-ic with other names of nodes, chassis and
// namespaces (Copied), and on a subnet of its own. The clusters have the numbers 1 to count,
// at most 99.
func (s *Set) Copies(ctx context.Context, dir string, count int) (reports []string, err error) {
	for _, node := range s.Nodes {
		path, err := s.Report(node)
		if err != nil {
			return nil, err
		}
		recorded, err := unpack(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for number := 1; number <= count; number++ {
			report := filepath.Join(dir, Copied(node, number))
			if err := recorded.write(report, renamed(number)); err != nil {
				return nil, err
			}
			reports = append(reports, report)
		}
	}
	return reports, nil
}

// files are the texts and the symbolic links of an archive, by their path.
type files struct{ texts, links map[string]string }

func unpack(ctx context.Context, path string) (files, error) {
	f := files{map[string]string{}, map[string]string{}}
	unpacked, err := exec.CommandContext(ctx, "xz", "-dc", path).Output()
	if err != nil {
		return f, err
	}
	for archive := tar.NewReader(bytes.NewReader(unpacked)); ; {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		switch entry.Typeflag {
		case tar.TypeReg:
			text, err := io.ReadAll(archive)
			if err != nil {
				return f, err
			}
			f.texts[entry.Name] = string(text)
		case tar.TypeSymlink:
			f.links[entry.Name] = entry.Linkname
		}
	}
}

// write writes the files into dir with their texts and names changed.
func (f files) write(dir string, change func(string) string) error {
	for name, text := range f.texts {
		path := filepath.Join(dir, change(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".db") {
			text = changeRecords(text, change)
		} else {
			text = change(text)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for name, target := range f.links {
		path := filepath.Join(dir, change(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path)); err != nil {
			return err
		}
	}
	return nil
}

// renamed returns the function that gives a text the names and addresses of a copy.
func renamed(number int) func(string) string {
	pairs := [][2]string{
		{"172.18.0.", fmt.Sprintf("172.18.%d.", number)},
		{"02:42:ac:12:00:", fmt.Sprintf("02:42:ac:12:%02x:", number)},
		{"0xac1200", fmt.Sprintf("0xac12%02x", number)},
		{"0x242ac1200", fmt.Sprintf("0x242ac12%02x", number)},
		{"42acfffe1200", fmt.Sprintf("42acfffe12%02x", number)},
		{"42:acff:fe12:", fmt.Sprintf("42:acff:fe12:%x0", number)},
		{"f853:ccd:e793:", fmt.Sprintf("f853:ccd:e7%02x:", 0x93+number)},
		{"ac.12.00.", fmt.Sprintf("ac.12.%02x.", number)}, // in actions that a flow sends to ovn-controller
		{"cd.e7.93.", fmt.Sprintf("cd.e7.%02x.", 0x93+number)},
		{"ccde793", fmt.Sprintf("ccde7%02x", 0x93+number)},
	}
	for _, name := range []string{"worker1", "worker2", "worker3", "ns1", "ns2", "ns3", "kube-system"} {
		pairs = append(pairs, [2]string{name, Copied(name, number)}, [2]string{bytesOf(name), bytesOf(Copied(name, number))})
	}
	part := fmt.Sprintf("-4%03x-", number)
	return func(text string) string {
		for _, pair := range pairs {
			text = strings.ReplaceAll(text, pair[0], pair[1])
		}
		return thirdPart.ReplaceAllString(text, part)
	}
}

// bytesOf returns the bytes of a name as ovs-ofctl prints the userdata of an action.
func bytesOf(name string) string {
	return strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf("% x", name)), " ", ".")
}

// thirdPart matches the third part of a random UUID.
var thirdPart = regexp.MustCompile(`-4[0-9a-f]{3}-`)

// changeRecords changes the records of a database file, and makes their headers again.
func changeRecords(text string, change func(string) string) string {
	var b strings.Builder
	for header := ""; text != ""; {
		header, text, _ = strings.Cut(text, "\n")
		var magic string
		var size int
		if n, _ := fmt.Sscanf(header, "OVSDB %s %d", &magic, &size); n != 2 || size > len(text) {
			return b.String() // as a damaged file: its collection will say so
		}
		body := change(text[:size])
		text = text[size:]
		fmt.Fprintf(&b, "OVSDB %s %d %x\n%s", magic, len(body), sha1.Sum([]byte(body)), body)
	}
	return b.String()
}
