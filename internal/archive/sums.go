package archive

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
)

// checksum is what a file beside an archive says of it: ARCHIVE.sha256, or
// ARCHIVE.md5 of older sos.
type checksum struct {
	file string // "" where there is none
	want string
	hash hash.Hash
}

// beside looks for the sum of a file.
func beside(name string) (*checksum, error) {
	for _, kind := range []struct {
		suffix string
		make   func() hash.Hash
	}{{".sha256", sha256.New}, {".md5", md5.New}} {
		raw, err := readSmall(name + kind.suffix)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		words := strings.Fields(string(raw))
		h := kind.make()
		if len(words) == 0 || len(words[0]) != hex.EncodedLen(h.Size()) {
			continue // something else of that name
		}
		return &checksum{file: name + kind.suffix, want: strings.ToLower(words[0]), hash: h}, nil
	}
	return &checksum{}, nil
}

func readSmall(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrNotExist
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4096))
}

// watch sums what is read.
func (c *checksum) watch(r io.Reader) io.Reader {
	if c.file == "" {
		return r
	}
	return io.TeeReader(r, c.hash)
}

// check reads to the end of what is watched, and compares.
func (c *checksum) check(r io.Reader) error {
	if c.file == "" {
		return nil
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return cannotRead(err)
	}
	if got := hex.EncodeToString(c.hash.Sum(nil)); got != c.want {
		return fmt.Errorf("is not what %s says (its sum is %s): copy it again; if that sum is another file's, move it away", c.file, got)
	}
	return nil
}
