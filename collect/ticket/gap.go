package ticket

import (
	"strings"

	"ovs-offline/internal/lazyregexp"
	"ovs-offline/workdir/recording"
)

var (
	// gaps match the lines that stand for lines which were left out: dots, "--" of grep, what programs that show pages print, and words.
	gaps = lazyregexp.New(`(?i)^\W*(?:(?:\. ?){3,}[^=]*|…[^=]*|-- ?more ?--.*|lines? \d+-\d+\b.*|8<.*|.*>8|` +
		`\(?(?:snip|snipped|cut|truncated|skipped|omitted|output omitted|more flows|etc)\b[^=]*\)?)\W*$|^--$`)
	// omissions match remarks which say that lines were left out.
	omissions = lazyregexp.New(`(?i)\b(?:snip(?:ped|pet)?|truncated|omitted|skipp(?:ed|ing)|trimmed|elided|abbreviated|shortened|left out|not (?:shown|included|pasted)|` +
		`cut (?:off|out|here)|and so on|etc|(?:\d+ (?:more|other|similar|further)|many|more|other|lots of|several|similar) (?:more |other |similar )*(?:flows?|lines?|entries|rules|groups|ports|interfaces|rows))\b`)
	// remark matches the beginnings of lines that are no sentences.
	remark = lazyregexp.New(`^\s*(?:[\[(<{#;]|/[/*]|[-=*x]{2,})`)
	// breaks match what shows that a command was interrupted, or lost its connection.
	breaks = lazyregexp.New(`(?i)^\W*(?:\^C|killed|terminated|aborted|alarm clock)\W*$|^\W*segmentation fault|^ovs-(?:ofctl|vsctl|appctl|dpctl): |` +
		`command terminated with exit code|broken pipe|connection (?:to \S+ )?(?:closed|reset|lost)\b|terminating with signal|^error: (?:unexpected EOF|timed out)`)
	// hunks match the lines with which diff says what changed.
	hunks = lazyregexp.New(`^(?:@@ |\d+(?:,\d+)?[acd]\d+(?:,\d+)?$)`)
	// emphasis matches what people and trackers put round a part of a line to show it, and no output has: tags and colours.
	emphasis = lazyregexp.New(`(?i)</?(?:b|i|u|em|strong|span|font|mark|code|tt)(?: [^<>]*)?>|\{color(?::[\w#]+)?\}|\*\*`)
)

// maxRemark is the longest remark, in bytes, that can say that lines were left out.
const maxRemark = 100

// isGap reports whether a line stands for lines which were left out. Behind an empty line, a sentence may be about something else.
func isGap(line string, spaced bool) bool {
	if gaps.MatchString(line) {
		return true
	}
	return line != "" && len(line) <= maxRemark && !strings.Contains(line, "=") && omissions.MatchString(line) && (!spaced || remark.MatchString(line))
}

// isBreak reports whether a line shows that a command ended before it had printed all.
func isBreak(line string) bool { return breaks.MatchString(line) }

// isHunk reports whether diff printed a line to say what changed.
func isHunk(line string) bool { return hunks.MatchString(line) }

// stamp matches the time of a line of a log.
var stamp = lazyregexp.New(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)

// logLine returns the line of a log in a line: without the name of its file, which grep prints, and without marks. It is "" for another
// line.
func logLine(line string) string {
	const maxName = 200 // bytes
	if recording.IsLogLine(line) {
		return line
	}
	text := unmarked(line)
	if at := stamp.FindStringIndex(text[:min(len(text), maxName)]); at != nil && strings.Contains(text, "|") && recording.IsLogLine(text[at[0]:]) {
		return text[at[0]:]
	}
	return ""
}

// unmarked returns a line without the marks that show a part of it.
func unmarked(line string) string {
	if strings.ContainsAny(line, "<{`") || strings.Contains(line, "**") {
		line = emphasis.ReplaceAllString(line, "")
		if !isFence(line) {
			line = strings.ReplaceAll(line, "`", "")
		}
	}
	return line
}
