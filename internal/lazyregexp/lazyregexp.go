// Package lazyregexp compiles regular expressions when they are first used. A program with hundreds of them would otherwise compile all
// each time that it starts.
package lazyregexp

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp is a regular expression of package regexp, whose methods it has.
type Regexp struct {
	text    string
	compile func() *regexp.Regexp
}

// New returns the regular expression that a text of the program is. An invalid one panics when it is first used, and in tests at once.
func New(text string) *Regexp {
	r := &Regexp{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
	if strings.HasSuffix(os.Args[0], ".test") {
		r.compile()
	}
	return r
}

// String returns the text of the expression.
func (r *Regexp) String() string { return r.text }

// Match does what the method of package regexp does.
func (r *Regexp) Match(b []byte) bool { return r.compile().Match(b) }

// MatchString does what the method of package regexp does.
func (r *Regexp) MatchString(s string) bool { return r.compile().MatchString(s) }

// FindString does what the method of package regexp does.
func (r *Regexp) FindString(s string) string { return r.compile().FindString(s) }

// FindStringIndex does what the method of package regexp does.
func (r *Regexp) FindStringIndex(s string) []int { return r.compile().FindStringIndex(s) }

// FindStringSubmatch does what the method of package regexp does.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compile().FindStringSubmatch(s) }

// FindStringSubmatchIndex does what the method of package regexp does.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compile().FindStringSubmatchIndex(s)
}

// FindSubmatch does what the method of package regexp does.
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compile().FindSubmatch(b) }

// FindSubmatchIndex does what the method of package regexp does.
func (r *Regexp) FindSubmatchIndex(b []byte) []int { return r.compile().FindSubmatchIndex(b) }

// FindAllIndex does what the method of package regexp does.
func (r *Regexp) FindAllIndex(b []byte, n int) [][]int { return r.compile().FindAllIndex(b, n) }

// FindAllString does what the method of package regexp does.
func (r *Regexp) FindAllString(s string, n int) []string { return r.compile().FindAllString(s, n) }

// FindAllStringIndex does what the method of package regexp does.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compile().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch does what the method of package regexp does.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compile().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex does what the method of package regexp does.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compile().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAll does what the method of package regexp does.
func (r *Regexp) ReplaceAll(b, by []byte) []byte { return r.compile().ReplaceAll(b, by) }

// ReplaceAllFunc does what the method of package regexp does.
func (r *Regexp) ReplaceAllFunc(b []byte, by func([]byte) []byte) []byte {
	return r.compile().ReplaceAllFunc(b, by)
}

// ReplaceAllString does what the method of package regexp does.
func (r *Regexp) ReplaceAllString(s, by string) string { return r.compile().ReplaceAllString(s, by) }

// ReplaceAllLiteralString does what the method of package regexp does.
func (r *Regexp) ReplaceAllLiteralString(s, by string) string {
	return r.compile().ReplaceAllLiteralString(s, by)
}

// ReplaceAllStringFunc does what the method of package regexp does.
func (r *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.compile().ReplaceAllStringFunc(s, by)
}

// FindAllSubmatch does what the method of package regexp does.
func (r *Regexp) FindAllSubmatch(b []byte, n int) [][][]byte {
	return r.compile().FindAllSubmatch(b, n)
}
