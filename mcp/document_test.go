package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ovs-offline/answer/check"
	"ovs-offline/answer/rule"
	"ovs-offline/test/check/expect"
)

// ask returns the result of a tool whose document a server made, with the parameters of rows.
func ask(t *testing.T, document any, lines LineParams, names ...string) (string, Result) {
	t.Helper()
	rows, err := newChooser(lines)
	if err != nil {
		t.Fatal(err)
	}
	c := &toolCall{rows: rows}
	if err := c.finish(document, names); err != nil {
		t.Fatal(err)
	}
	text, err := encode(c.Result)
	if err != nil {
		t.Fatal(err)
	}
	return text, c.Result
}

// TestRowsOfSeveralListsAreOneSeries pages through two lists of a document: each row comes once, in its list.
func TestRowsOfSeveralListsAreOneSeries(t *testing.T) {
	type document struct {
		Missing []int  `json:"missing"`
		Verdict string `json:"verdict"`
		Northd  struct {
			Missing []int `json:"missing"`
		} `json:"northd"`
	}
	d := document{Missing: []int{10, 11, 12}, Verdict: "drift"}
	d.Northd.Missing = []int{20, 21}
	for _, c := range []struct {
		lines LineParams
		want  string
	}{
		{LineParams{Head: 2}, `{"missing":[10,11],"northd":{"missing":[]},"verdict":"drift"}`},
		{LineParams{Head: 2, Skip: 2}, `{"missing":[12],"northd":{"missing":[20]},"verdict":"drift"}`},
		{LineParams{Head: 2, Skip: 4}, `{"missing":[],"northd":{"missing":[21]},"verdict":"drift"}`},
		{LineParams{Tail: 1}, `{"missing":[],"northd":{"missing":[21]},"verdict":"drift"}`},
		{LineParams{Pattern: "1$"}, `{"missing":[11],"northd":{"missing":[21]},"verdict":"drift"}`},
	} {
		text, _ := ask(t, d, c.lines, "missing")
		if !strings.Contains(text, `"document":`+c.want) {
			t.Errorf("%+v: %s", c.lines, text)
		}
	}
	text, result := ask(t, d, LineParams{Head: 2}, "missing")
	if *result.Lines != 5 || !strings.Contains(text, "these are 1 to 2 of 5: call again with skip=2") {
		t.Error(text)
	}
}

// TestRowsOfManyNodesStay has rows in the last of more nodes than a result can list.
func TestRowsOfManyNodesStay(t *testing.T) {
	type node struct {
		Node  string   `json:"node"`
		Added []string `json:"added"`
	}
	nodes := slices.Repeat([]node{{Node: strings.Repeat("n", 60)}}, 2000)
	nodes[1500].Added = []string{"the only flow"}
	text, _ := ask(t, map[string]any{"nodes": nodes}, LineParams{}, "added")
	if !strings.Contains(text, `"added":["the only flow"]`) || len(text) > maxOutput {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

// TestLongDocumentsAreCut has a report with more findings, evidence and remarks than a model can read: the result is
// small, says what it lacks, and paging shows each finding once.
func TestLongDocumentsAreCut(t *testing.T) {
	found := &check.Report{}
	evidence := slices.Repeat([]string{strings.Repeat("e", 100)}, 200)
	for i := range 60 {
		found.Findings = append(found.Findings, rule.Finding{Rule: fmt.Sprint("rule", i), Evidence: evidence})
		found.Remarks = append(found.Remarks, strings.Repeat("r", 4000))
	}
	seen := map[string]bool{}
	for skip := 0; skip < 60; {
		text, result := ask(t, found, LineParams{Skip: skip}, "findings")
		if len(text) > maxOutput || !strings.Contains(result.More, "cut after") {
			t.Fatalf("%d bytes: %s", len(text), result.More)
		}
		var got struct{ Document check.Report }
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Document.Findings) == 0 {
			t.Fatalf("%v: %.300s", err, text)
		}
		for _, finding := range got.Document.Findings {
			if seen[finding.Rule] {
				t.Errorf("%s comes twice", finding.Rule)
			}
			seen[finding.Rule] = true
		}
		skip += len(got.Document.Findings)
	}
	expect.Equal(t, len(seen), 60, "findings")
}

// TestTextsOfDocumentsAreEscaped has texts that a person or a terminal would not see as such, in rows, beside them and
// as keys.
func TestTextsOfDocumentsAreEscaped(t *testing.T) {
	const hidden = "\x1b[2J\u202eIgnore\n\u0085all\U000e0041"
	document := map[string]any{"rows": []any{map[string]string{hidden: hidden}, "a\tb \\n <&>"}, hidden: 1,
		"remarks": []string{hidden}}
	text, _ := ask(t, document, LineParams{}, "rows")
	var got struct{ Document struct{ Rows []any } }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	var whole any
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprint(whole)
	if strings.ContainsAny(printed, "\x1b\u202e\n\u0085\U000e0041") || strings.Count(printed, "Ignore") != 4 {
		t.Errorf("%q", printed)
	}
	expect.Equal(t, got.Document.Rows[1], any("a\tb \\n <&>"), "a row without hidden characters")
}

// TestNumbersStayExact has counters of which a floating-point number has not all digits.
func TestNumbersStayExact(t *testing.T) {
	text, _ := ask(t, map[string]any{"packets": uint64(1)<<63 + 1}, LineParams{})
	if !strings.Contains(text, "9223372036854775809") {
		t.Error(text)
	}
}
