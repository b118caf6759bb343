package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ovs-offline/answer/trace/answer"
	"ovs-offline/test/generate/answers"
)

func written(t *testing.T, a answer.Answer) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, &a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHostileNamesStayTextInThePage(t *testing.T) {
	for name, a := range answers.All() {
		checkNames(t, name, written(t, a), true,
			"html", "head", "meta", "title", "style", "body", "header", "main", "section", "article", "figure", "script",
			"button",
			"h1", "h2", "h3", "h4", "p", "dl", "dt", "dd", "ol", "ul", "li", "table", "thead", "tbody", "tr", "th", "td",
			"details", "summary", "span", "code", "pre", "strong", "wbr", "a", "svg", "desc", "rect", "g", "text", "path")
		if n := strings.Count(written(t, a), "<script"); n != 1 {
			t.Errorf("%s: the page has %d scripts", name, n)
		}
	}
}

// TestPolicyAllowsThePageOnly compares the digests in the policy with what is written
// into the page: a browser refuses every other script and style, and loads nothing.
func TestPolicyAllowsThePageOnly(t *testing.T) {
	page := written(t, answers.All()["one-way"])
	var policy string
	for _, e := range elements(t, page, true) {
		if e.attr("http-equiv") == "Content-Security-Policy" {
			policy = e.attr("content")
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") ||
		strings.Contains(policy, "http") {
		t.Errorf("the policy is %s", policy)
	}
	parts := regexp.MustCompile(`(?s)<(?:style|script)>(.*?)</(?:style|script)>`).FindAllStringSubmatch(page, -1)
	if len(parts) != 2 {
		t.Fatalf("%d scripts and styles in the page", len(parts))
	}
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part[1]))
		if digest := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, digest) {
			t.Errorf("the policy has no digest %s of %.60q", digest, part[1])
		}
	}
	if strings.Contains(page, "@import") || strings.Contains(page, "url(") {
		t.Error("a style of the page loads something")
	}
}

// TestPageHasEveryStage opens no browser: each stage is an element that one opens, with
// its flow, its match, its actions and its rule.
func TestPageHasEveryStage(t *testing.T) {
	a := answers.All()["many-stages"]
	page := written(t, a)
	want := 0
	for _, of := range []*answer.Answer{&a, a.Return} {
		for _, h := range of.Path {
			want += len(h.Stages)
		}
	}
	if got := strings.Count(page, "<li><details"); got != want || want < 200 {
		t.Errorf("%d of %d stages are in the page", got, want)
	}
	var text strings.Builder
	for _, e := range elements(t, page, true) {
		text.WriteString(e.text + "\n")
	}
	for _, words := range []string{"router router19, ingress", "lr_in_ip_routing", "route 20.0.0.0/8 by way of router20",
		"ip,reg14=0x2,metadata=0x3", "set_field:0/0x1000->reg10\nresubmit(,9)", `ip4 && inport == "ns1_web-0"`,
		"bridge(\"br-int\")\n----------------"} {
		if words != "ip,reg14=0x2,metadata=0x3" && !strings.Contains(text.String(), words) {
			t.Errorf("the page has no %q", words)
		}
	}
	if !strings.Contains(page, "ip,<wbr>reg14=0x2,<wbr>metadata=0x3") {
		t.Error("the page has no flow that breaks behind commas")
	}
}

// TestPageOpensTheStageThatDrops checks that the deciding stage is open and red.
func TestPageOpensTheStageThatDrops(t *testing.T) {
	page := written(t, answers.All()["dropped"])
	opened := regexp.MustCompile(`(?s)<details class="dropped" open>(.*?)</details>`).FindAllString(page, -1)
	if len(opened) != 1 || !strings.Contains(opened[0], "ls_out_acl_eval") ||
		!strings.Contains(opened[0], "NetworkPolicy ns2/deny-all") {
		t.Errorf("the stages that are open: %q", opened)
	}
}

// TestPictureLeadsToTheHops follows the links of the picture in the page.
func TestPictureLeadsToTheHops(t *testing.T) {
	for name, a := range answers.All() {
		var ids, links []string
		for _, e := range elements(t, written(t, a), true) {
			if id := e.attr("id"); strings.HasPrefix(id, "hop-") {
				ids = append(ids, "#"+id)
			}
			if e.Name.Local == "a" {
				links = append(links, e.attr("href"))
			}
		}
		for _, link := range links {
			if !slices.Contains(ids, link) {
				t.Errorf("%s: %s leads nowhere", name, link)
			}
		}
		for _, id := range ids {
			if !slices.Contains(links, id) {
				t.Errorf("%s: the picture has no link to %s", name, id)
			}
		}
	}
}

// TestScriptRunsUnderThePolicy opens the page in a browser: the script shows the buttons.
func TestScriptRunsUnderThePolicy(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil || testing.Short() {
		t.Skip("no browser: ", err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "page.html")
	if err := os.WriteFile(path, []byte(written(t, answers.Hostile())), 0o600); err != nil {
		t.Fatal(err)
	}
	open := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+folder, "--dump-dom", "file://"+path)
	page, err := open.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), `<p class="buttons" id="buttons">`) {
		t.Errorf("the script did not show the buttons:\n%.3000s", page)
	}
	if strings.Contains(string(page), "<img") {
		t.Error("a name became an image")
	}
}

// contrast returns the contrast of two colours by WCAG 2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light, dark := luminance(t, a), luminance(t, b)
	if light < dark {
		light, dark = dark, light
	}
	return (light + 0.05) / (dark + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	total := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		total += weight * c
	}
	return total
}
