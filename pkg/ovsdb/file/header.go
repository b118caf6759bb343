package file

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"strconv"
)

// header is a parsed header line.
type header struct {
	magic  string
	length int64
	sum    string
	line   []byte
}

// maxHeader bounds a header line: ovsdb/log.c reads it into 128 bytes.
const maxHeader = 128

// parseHeader finds a header line at the end of line, which ends in a newline.
// Other bytes may precede it: a record that was cut off has no newline of its
// own. No line of JSON ends in a header: its words could only be part of a
// string, and a string ends in a quote on the same line (RFC 8259, 7). The sum
// may be any word without JSON's punctuation, because an anonymiser may have
// replaced part of it.
func parseHeader(line []byte) (header, bool) {
	if len(line) > maxHeader {
		line = line[len(line)-maxHeader:]
	}
	start := bytes.LastIndex(line, []byte("OVSDB "))
	if start < 0 || line[len(line)-1] != '\n' {
		return header{}, false
	}
	line = line[start:]
	words := bytes.Split(line[:len(line)-1], []byte(" "))
	if len(words) != 4 || len(words[3]) == 0 || bytes.ContainsAny(words[3], `"{}[],\`) {
		return header{}, false
	}
	magic := string(words[1])
	length, err := strconv.ParseUint(string(words[2]), 10, 63)
	if magic != "JSON" && magic != "CLUSTER" || err != nil || length == 0 {
		return header{}, false
	}
	return header{magic, int64(length), string(words[3]), bytes.Clone(line)}, true
}

// formatHeader returns the header line of a record whose text is these parts.
func formatHeader(magic string, body ...[]byte) []byte {
	sum, length := sha1.New(), 0
	for _, part := range body {
		sum.Write(part)
		length += len(part)
	}
	return fmt.Appendf(nil, "OVSDB %s %d %x\n", magic, length, sum.Sum(nil))
}
