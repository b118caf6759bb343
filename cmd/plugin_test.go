package cmd

import (
	"bytes"
	"strings"
	"testing"

	"ovs-offline/test/check/expect"
)

// TestHelpNamesTheCommandThatWasTyped checks the help of the program as itself and as
// kubectl's plugin.
func TestHelpNamesTheCommandThatWasTyped(t *testing.T) {
	for program, want := range map[string]string{
		"": "  ovs-offline ", "/usr/bin/ovs-offline": "  ovs-offline ",
		"/home/me/.krew/bin/kubectl-ovs_offline": "  kubectl ovs-offline ",
	} {
		var out, messages bytes.Buffer
		streams := IO{Out: &out, Err: &messages, Program: program}
		if code := Main([]string{"image", "list", "--help"}, streams); code != 0 {
			t.Errorf("exit code %d: %s", code, &messages)
		}
		for _, call := range []string{"image list [flags]\n", "image list\n", "--runtime process image list -o json | jq"} {
			if !strings.Contains(out.String(), want+call) {
				t.Errorf("called as %q, no %q in:\n%s", program, want+call, &out)
			}
		}
		if code := Main([]string{"exce"}, streams); code != 2 ||
			!strings.Contains(messages.String(), "see "+strings.TrimSpace(want)+" --help") {
			t.Errorf("called as %q: %d %s", program, code, &messages)
		}
	}
	o := &options{IO: IO{Program: "kubectl-ovs_offline"}, workdir: "/a b"}
	expect.Equal(t, o.self("stop"), "kubectl ovs-offline -w '/a b' stop")
}
