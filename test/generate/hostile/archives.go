package hostile

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mholt/archives"
)

// Archive is a hostile archive.
type Archive struct {
	Name  string
	Write func(w io.Writer) error
	// Endless is set if the archive never ends, so that it must be read from a pipe.
	Endless bool
}

const top = "sosreport-node1-2026-01-02-abcdefg/"

// member is an entry of an archive.
type member struct {
	tar.Header
	body Content
}

// Archives returns all hostile archives.
func Archives(p Targets) []Archive {
	var all []Archive
	add := func(name string, members ...member) {
		all = append(all, Archive{Name: name, Write: func(w io.Writer) error { return pack(w, append(report(), members...)) }})
	}
	const db = "etc/openvswitch/conf.db"
	outside := strings.Repeat("../", 12) + strings.TrimPrefix(p.Outside, "/")
	for _, name := range []string{outside + "/x", p.Outside + "/x", "../" + db, top + "../../" + db, "/" + db, top + commands + "../../../../" + outside + "/x",
		"./../" + top + db, top + "./" + commands + "./x", top + commands + "/", "..", ".", "/", "\\..\\..\\x", top + commands + "..", "//" + top + commands + "x"} {
		add("a file "+name, file(name, "x"))
	}
	for _, target := range []string{outside, p.Outside, p.Canary, "/etc/passwd", "/dev/zero", "/proc/self/environ", "../../../../../../../../etc/shadow", ".", "..", "x", strings.Repeat("a/../", 800) + "x", ""} {
		add("a link to "+short(target), link(top+"etc/openvswitch/conf.db", target), link(top+commands+"ovs-ofctl_show_br0", target), link(top+"sos_commands/ovn_host", target))
	}
	for _, target := range []string{outside + "/br-int.mgmt", p.Outside + "/br-int.mgmt", "/etc/passwd", top + db, top + "nowhere", ""} {
		add("a hard link to "+short(target), entry(tar.TypeLink, top+db, target), entry(tar.TypeLink, top+commands+"ovs-ofctl_show_br0", target))
	}
	add("a link, and a file through it", link(top+"etc/openvswitch", p.Outside), file(top+db, "x"), link(top+commands+"sub", outside), file(top+commands+"sub/x", "x"))
	add("links in a circle", link(top+db, "a.db"), link(top+"etc/openvswitch/a.db", "b.db"), link(top+"etc/openvswitch/b.db", "conf.db"))
	var chain []member
	for i := range 5000 {
		chain = append(chain, link(fmt.Sprintf("%setc/openvswitch/%d.db", top, i), fmt.Sprintf("%d.db", i+1)))
	}
	add("a chain of links", chain...)
	for name, kind := range map[string]byte{"a device": tar.TypeChar, "a block device": tar.TypeBlock, "a FIFO": tar.TypeFifo, "a folder": tar.TypeDir, "a contiguous file": tar.TypeCont, "an unknown type": 'Z', "a volume header": 'V'} {
		m := entry(kind, top+db, "")
		m.Devmajor, m.Devminor = 1, 5
		add(name+" in place of a database", m)
	}
	for name, text := range map[string]string{"control characters": "a\x1b[31m\x07\nb", "255 bytes": strings.Repeat("n", 255), "5000 bytes": strings.Repeat("n/", 2500) + "x", "no UTF-8": "\xff\xfe", "quotes": `'";$(touch ` + p.Canary + ")", "a dash": "--help"} {
		add("a name of "+name, file(top+commands+"ovs-ofctl_dump-flows_"+text, "x"), file(top+"etc/openvswitch/"+text+".db", "x"), file(text, "x"))
	}
	add("folders of escapes", file("\x1b[31msos-a/"+commands+"ovs-vsctl_list-br", "br0\n"), file("\x1b]0;x\x07sos-b/"+commands+"ovs-vsctl_list-br", "br0\n"))
	add("duplicates", repeated(2000, func(int) member { return file(top+commands+"ovs-ofctl_dump-flows_br0", "x") })...)
	add("a file and a folder of one name", file(top+"sos_commands", "x"), file(top+commands+"x", "y"), file(top+commands+"x/y", "z"))
	many := func(name string, n int, of func(i int) member) {
		all = append(all, Archive{Name: name, Write: func(w io.Writer) error { return zst(w, func(w io.Writer) error { return packEach(w, n, of) }) }})
	}
	many("a million tiny entries", 1_000_000, func(i int) member { return file(fmt.Sprintf("%svar/log/%d", top, i), "") })
	many("more than a million folders", 1_100_000, func(i int) member { return entry(tar.TypeDir, fmt.Sprintf("%sd%d/", top, i), "") })
	many("a hundred thousand files to collect", 100_000, func(i int) member { return file(fmt.Sprintf("%s%sx%d", top, commands, i), "x") })
	many("a hundred thousand links", 100_000, func(i int) member { return link(fmt.Sprintf("%s%sx%d", top, commands, i), "x") })
	many("a hundred thousand top folders", 100_000, func(i int) member { return file(fmt.Sprintf("sosreport-%d/%sx", i, commands), "x") })
	big := func(name, path string, size int64) {
		all = append(all, Archive{Name: name, Write: func(w io.Writer) error {
			return zst(w, func(w io.Writer) error { return pack(w, []member{sized(path, size, "\x00")}) })
		}}, Archive{Name: name + ", gzip'd", Write: func(w io.Writer) error {
			return gz(w, func(w io.Writer) error { return pack(w, []member{sized(path, size/4, "\x00")}) })
		}})
	}
	big("a bomb of 4 GiB", top+"var/log/messages", 4<<30)
	big("a database of 4 GiB", top+db, 4<<30)
	raw := func(name string, blocks ...[]byte) {
		all = append(all, Archive{Name: name, Write: func(w io.Writer) error { _, err := w.Write(bytes.Join(blocks, nil)); return err }})
	}
	good := packed3(report())
	body := good[:len(good)-1024]
	raw("a size of 8 EiB", body, block(top+db, '0', "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff"), make([]byte, 1024))
	raw("a negative size", body, block(top+db, '0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), make([]byte, 1024))
	raw("a size that is no number", body, block(top+db, '0', "7777777777x "), make([]byte, 1024))
	raw("a wrong sum", body, bytes.Replace(block(top+db, '0', "00000000000\x00"), []byte("conf"), []byte("kopf"), 1), make([]byte, 1024))
	raw("a long name of 8 GiB", body, block("././@LongLink", 'L', "77777777777\x00"), make([]byte, 4096))
	raw("a PAX header of 8 GiB", body, block("x", 'x', "77777777777\x00"), make([]byte, 4096))
	for name, records := range map[string]string{"paths": pax("path", "../../../../"+p.Outside+"/x"), "a size": pax("size", "9223372036854775807"), "a size below zero": pax("size", "-5"), "NULs": pax("path", "a\x00b"),
		"a wrong length": "99999 path=x\n", "no length": "path=x\n", "a long value": pax("path", strings.Repeat("y", 900000)), "many records": strings.Repeat(pax("comment", "x"), 50000)} {
		raw("PAX: "+name, body, block("x", 'x', fmt.Sprintf("%011o\x00", len(records))), padded(records), block(top+db, '0', "00000000000\x00"), make([]byte, 1024))
		raw("global PAX: "+name, block("x", 'g', fmt.Sprintf("%011o\x00", len(records))), padded(records), good)
	}
	for name, path := range map[string]string{"a hole of 8 EiB": top + "var/log/x", "a database that is a hole": top + db} {
		raw(name, body, sparse(path, 1<<62), make([]byte, 1024))
		records := pax("GNU.sparse.major", "0") + pax("GNU.sparse.minor", "1") + pax("GNU.sparse.name", path) + pax("GNU.sparse.size", "4611686018427387904") + pax("GNU.sparse.numblocks", "0") + pax("GNU.sparse.map", "")
		raw(name+", PAX", body, block("x", 'x', fmt.Sprintf("%011o\x00", len(records))), padded(records), block("y", '0', "00000000000\x00"), make([]byte, 1024))
	}
	raw("an end, and then text", good, bytes.Repeat([]byte("x"), 100000))
	raw("archives in a row", bytes.Repeat(good, 300))
	raw("half a block", good[:256])
	raw("gzip of nothing", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"))
	raw("xz of nonsense", []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46"), bytes.Repeat([]byte("\xff"), 4096))
	raw("xz with a dictionary of 4 GiB", []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x28\x00\x00\x00"), make([]byte, 4096))
	raw("zstd with a window of terabytes", []byte("\x28\xb5\x2f\xfd\x00\xf8"), bytes.Repeat([]byte("\x01\x00\x00"), 2000))
	endless := func(name string, head []byte, unit string) {
		all = append(all, Archive{Name: name, Endless: true, Write: func(w io.Writer) error {
			if _, err := w.Write(head); err != nil {
				return err
			}
			return many64(unit).Write(w)
		}})
	}
	endless("padding without end", good, strings.Repeat("\x00", 1<<16))
	endless("entries without end", body, strings.Repeat(string(block(top+"var/log/x", '0', "00000000000\x00")), 128))
	endless("files to collect without end", body, strings.Repeat(string(block(top+commands+"x", '0', "00000000000\x00")), 128))
	endless("a file without end", append(bytes.Clone(body), block(top+db, '0', "\x80\x00\x00\x00\x0f\xff\xff\xff\xff\xff\xff\xff")...), strings.Repeat("x", 1<<16))
	endless("zeros without end", nil, strings.Repeat("\x00", 1<<16))
	return append(all, costlyArchives()...)
}

// many64 returns a text that is too long to read to its end.
func many64(unit string) Content { return many(unit, 1<<40) }

// report returns the files that make an archive an sos report.
func report() []member {
	return []member{file(top+commands+"ovs-vsctl_-t_5_list-br", "br0\n"), file(top+commands+"ovs-ofctl_dump-flows_br0", header+flow+"priority=1,ip actions=drop\n")}
}

func entry(kind byte, name, target string) member {
	return member{Header: tar.Header{Typeflag: kind, Name: name, Linkname: target, Mode: 0o644, ModTime: time.Unix(1, 0)}}
}

func file(name, text string) member { return sized(name, int64(len(text)), text) }

// sized returns a file of size bytes that repeats a text.
func sized(name string, size int64, text string) member {
	m := entry(tar.TypeReg, name, "")
	m.Size = size
	if size > 0 {
		m.body = many(text, int(size)/len(text))
	}
	return m
}

func link(name, target string) member { return entry(tar.TypeSymlink, name, target) }

func repeated(n int, of func(i int) member) []member {
	var list []member
	for i := range n {
		list = append(list, of(i))
	}
	return list
}

func pack(w io.Writer, members []member) error {
	return packEach(w, len(members), func(i int) member { return members[i] })
}

// packEach writes an archive. It writes headers that archive/tar rejects by itself.
func packEach(w io.Writer, n int, of func(i int) member) error {
	for i := range n {
		m := of(i)
		if m.Size == 0 && m.Linkname == "" && len(m.Name) < 100 && (m.Typeflag == tar.TypeReg || m.Typeflag == tar.TypeDir) {
			if _, err := w.Write(block(m.Name, m.Typeflag, "00000000000\x00")); err != nil {
				return err
			}
			continue
		}
		one := tar.NewWriter(w) // a writer that rejected a header accepts no other
		if m.Name == "" || strings.ContainsRune(m.Name, 0) || one.WriteHeader(&m.Header) != nil {
			if _, err := w.Write(block(m.Name, m.Typeflag, fmt.Sprintf("%011o\x00", m.Size))); err != nil {
				return err
			}
		}
		if err := m.body.Write(w); err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, (512-m.Size%512)%512)); err != nil {
			return err
		}
	}
	_, err := w.Write(make([]byte, 1024))
	return err
}

func packed3(members []member) []byte {
	var out bytes.Buffer
	_ = pack(&out, members)
	return out.Bytes()
}

// block returns a header of a tar archive, with the size field as given.
func block(name string, kind byte, size string) []byte {
	b := make([]byte, 512)
	copy(b, name[:min(len(name), 100)])
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:136], size)
	copy(b[136:], "00000000001\x00        ")
	b[156] = kind
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// sparse returns a header in the format of GNU tar, of a file that is one hole.
func sparse(name string, size uint64) []byte {
	b := block(name, 'S', "00000000000\x00")
	copy(b[257:], "ustar  \x00")
	b[483] = 0x80
	for i := range 8 {
		b[483+4+i] = byte(size >> (56 - 8*i))
	}
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func pax(key, value string) string {
	length := len(key) + len(value) + 3
	for n := 0; n != length; {
		n, length = length, len(fmt.Sprint(length))+len(key)+len(value)+3
		if n == length {
			break
		}
	}
	return fmt.Sprintf("%d %s=%s\n", length, key, value)
}

func padded(text string) []byte {
	return append([]byte(text), make([]byte, (512-len(text)%512)%512)...)
}

func gz(w io.Writer, write func(io.Writer) error) error  { return through(archives.Gz{}, w, write) }
func zst(w io.Writer, write func(io.Writer) error) error { return through(archives.Zstd{}, w, write) }

func through(how archives.Compressor, w io.Writer, write func(io.Writer) error) error {
	packing, err := how.OpenWriter(w)
	if err != nil {
		return err
	}
	if err := write(packing); err != nil {
		return err
	}
	return packing.Close()
}

func short(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}
