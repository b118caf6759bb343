// Package lines reads texts line by line, within a limit for the length of a line.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// Longest is the length of the longest line that is read, in bytes: several times the length of a
// logical flow that names all addresses of a large cluster.
const Longest = 16 << 20

// Read calls use with each line of a text, without its end. The line is valid until use returns. Lines
// longer than Longest are skipped; Read returns their number.
func Read(r io.Reader, use func(line []byte) error) (skipped int, err error) {
	reader := bufio.NewReaderSize(r, 64<<10)
	var joined []byte // the beginning of a line that is longer than the reader's buffer
	tooLong := false
	for {
		part, err := reader.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !full && !errors.Is(err, io.EOF) {
			return skipped, err
		}
		tooLong = tooLong || len(joined)+len(part) > Longest+1
		if full {
			if !tooLong {
				joined = append(joined, part...)
			}
			continue
		}
		line := part
		if len(joined) > 0 {
			joined = append(joined, part...)
			line = joined
		}
		switch {
		case tooLong:
			skipped++
		case len(line) > 0:
			if err := use(bytes.TrimRight(line, "\r\n")); err != nil {
				return skipped, err
			}
		}
		if err != nil {
			return skipped, nil
		}
		joined, tooLong = joined[:0], false
	}
}

// Skipped returns the number of lines of a file that Read skips.
func Skipped(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= Longest {
		return 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return Read(file, func([]byte) error { return nil })
}
