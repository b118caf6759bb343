package sets

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rowKey matches the UUID of a row in a record of a database file.
var rowKey = regexp.MustCompile(`"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})":[{n]`)

// reference matches a UUID; the first 32 bits of one as a logical flow has them of its rule; and a cookie, which has them without leading zeros
// (ovn-architecture(7)).
var reference = regexp.MustCompile(`()([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|("stage-hint",")([0-9a-f]{8})\b|\b(cookie=0x)([0-9a-f]{1,8})\b`)

// Renumber gives each row of the databases of unpacked reports another UUID, in all their files: its complement, so that rows that are sorted by
// UUID come in the opposite order.
func Renumber(reports ...string) error {
	known := map[string]bool{} // UUIDs and their first 32 bits
	err := eachFile(reports, func(path, text string) error {
		if filepath.Ext(path) == ".db" {
			for _, match := range rowKey.FindAllStringSubmatch(text, -1) {
				known[match[1]], known[match[1][:8]] = true, true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	change := func(text string) string {
		return reference.ReplaceAllStringFunc(text, func(found string) string {
			parts := slices.DeleteFunc(reference.FindStringSubmatch(found)[1:], func(part string) bool { return part == "" })
			before, digits := strings.Join(parts[:len(parts)-1], ""), parts[len(parts)-1]
			if full := strings.Repeat("0", max(0, 8-len(digits))) + digits; !known[full] {
				return found
			} else if digits = complement(full); before == "cookie=0x" {
				digits = strings.TrimLeft(digits, "0")
			}
			return before + digits
		})
	}
	return eachFile(reports, func(path, text string) error {
		if filepath.Ext(path) == ".db" {
			return os.WriteFile(path, []byte(changeRecords(text, change)), 0o600)
		}
		return os.WriteFile(path, []byte(change(text)), 0o600)
	})
}

// complement returns a UUID with the complement of each digit.
func complement(uuid string) string {
	return strings.Map(func(digit rune) rune {
		value, err := strconv.ParseInt(string(digit), 16, 8)
		if err != nil {
			return digit
		}
		return rune(fmt.Sprintf("%x", 15-value)[0])
	}, uuid)
}

// eachFile calls use for each regular file in folders, with its text.
func eachFile(folders []string, use func(path, text string) error) error {
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return use(path, string(text))
		})
		if err != nil {
			return err
		}
	}
	return nil
}
