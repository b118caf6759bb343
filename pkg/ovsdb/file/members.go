package file

import (
	"bytes"
	"fmt"
	"io"
)

// span is a part of a file, in bytes.
type span struct{ offset, length int64 }

func readSpan(file io.ReaderAt, span span) ([]byte, error) {
	text := make([]byte, span.length)
	n, err := file.ReadAt(text, span.offset)
	if n == len(text) {
		return text, nil
	}
	return text, err
}

// member is the value of a member of a JSON object.
type member struct {
	value  span
	second span // in an array: the second element, where it is an object or array
}

// memberFinder finds members of a JSON object that is written to it in pieces.
// It records where their values are in the file and keeps no text, because one
// record may hold a database of gigabytes.
type memberFinder struct {
	want    func(key string) bool
	found   map[string]*member // by key; the last one of equal keys
	matches int                // number of members that want accepted

	stringReader
	offset  int64 // of the next byte
	depth   int
	inValue bool    // of a member of the object itself
	current *member // whose value is being read, nil for one that is not wanted
	element int     // of the array that is the current value
	begin   int64   // of that element
}

func newMemberFinder(offset int64, want func(key string) bool) *memberFinder {
	return &memberFinder{want: want, found: map[string]*member{}, offset: offset}
}

// Write follows the structure of the next piece of the text.
func (f *memberFinder) Write(data []byte) (int, error) {
	for i := 0; i < len(data); i++ {
		if f.quoted {
			i = f.readString(data, i)
			continue
		}
		switch position := f.offset + int64(i); data[i] {
		case '"':
			f.quoted = true
			if f.depth == 1 && !f.inValue {
				f.inKey, f.key = true, f.key[:0]
			}
		case ':':
			if f.depth == 1 && !f.inValue {
				f.beginValue(position + 1)
			}
		case ',':
			if f.depth == 1 {
				f.endValue(position)
			} else if f.depth == 2 {
				f.element++
			}
		case '{', '[':
			if f.depth++; f.depth == 3 {
				f.begin = position
			}
		case '}', ']':
			if f.depth--; f.depth == 0 {
				f.endValue(position)
			} else if f.depth == 2 && f.current != nil && f.element == 1 {
				f.current.second = span{f.begin, position + 1 - f.begin}
			}
		}
	}
	f.offset += int64(len(data))
	return len(data), nil
}

func (f *memberFinder) beginValue(position int64) {
	f.inValue, f.element = true, 0
	if key := string(f.key); f.want(key) {
		f.matches++
		f.current = &member{value: span{offset: position}}
		f.found[key] = f.current
	}
}

func (f *memberFinder) endValue(position int64) {
	if f.current != nil {
		f.current.value.length = position - f.current.value.offset
	}
	f.inValue, f.current = false, nil
}

// maxMembers bounds the text that object returns, in bytes: the rows of a
// thousand chassis are a megabyte.
const maxMembers = 64 << 20

// object returns a JSON object of the members that were found.
func (f *memberFinder) object(file io.ReaderAt) ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for key, member := range f.found {
		if int64(text.Len())+member.value.length > maxMembers {
			return nil, fmt.Errorf("the tables to read are larger than %d MiB", maxMembers>>20)
		}
		value, err := readSpan(file, member.value)
		if err != nil {
			return nil, err
		}
		if text.Len() > 1 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"%s":%s`, key, value)
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}
