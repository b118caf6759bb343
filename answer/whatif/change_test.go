package whatif

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestScriptIsReadWithoutAShell(t *testing.T) {
	got, err := ReadScript(strings.NewReader(`# the new policy
ovn-nbctl --may-exist --severity=info acl-add sw0 to-lport 1000 'outport == "vm 1" && ip4' drop

  ovn-nbctl --wait=hv lsp-set-addresses vm1 "00:00:00:00:00:01 10.0.0.1" \
      -- set Logical_Switch_Port vm1 options:x=\"y\" # trailing
ovn-nbctl add-x "a\"b\\c" '' a*b [ab]
lsp-del 'vm 1'
--if-exists destroy ACL x`))
	want := Change{
		{"--may-exist", "--severity=info", "acl-add", "sw0", "to-lport", "1000", `outport == "vm 1" && ip4`, "drop"},
		{"lsp-set-addresses", "vm1", "00:00:00:00:00:01 10.0.0.1", "--", "set", "Logical_Switch_Port", "vm1",
			`options:x="y"`},
		{"add-x", `a"b\c`, "", "a*b", "[ab]"},
		{"lsp-del", "vm 1"},
		{"--if-exists", "destroy", "ACL", "x"},
	}
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOtherLinesAreRefused(t *testing.T) {
	for _, line := range []string{"", "# nothing", "rm -rf /", "reboot", "--db=tcp:192.0.2.1:6641 show",
		"lsp-del x; reboot", "sudo ovn-nbctl show", "/tmp/ovn-nbctl show", "ovn-nbctl", "ovn-nbctl --",
		"ovn-nbctl show; reboot",
		"ovn-nbctl show | sh", "ovn-nbctl show > /etc/passwd", "ovn-nbctl ls-add $(reboot)", "ovn-nbctl ls-add `reboot`",
		"ovn-nbctl ls-add \"$HOME\"",
		"ovn-nbctl ls-add 'a", "ovn-nbctl ls-add \"a", "ovn-nbctl show & reboot", "ovn-nbctl show;", "A=b ovn-nbctl show",
		"ovn-nbctl show <x", "ovn-nbctl ls-add ~root", "! ovn-nbctl show",
		"{ ovn-nbctl show; }", "ovn-nbctl show && ovn-nbctl show", "f() { ovn-nbctl show; }", "ovn-nbctl ls-add $((1))",
		"ovn-nbctl ls-add {a,b}", "ovn-nbctl ls-add $'a'",
		"ovn-nbctl --db=tcp:192.0.2.1:6641 show", "ovn-nbctl --db tcp:192.0.2.1:6641 show", "ovn-nbctl -t 5 show",
		"ovn-nbctl -utcp show",
		"ovn-nbctl --log-file=/etc/x show", "ovn-nbctl --log-f=/etc/x show", "ovn-nbctl --detach show",
		"ovn-nbctl --d=tcp:192.0.2.1:1 show",
		"ovn-nbctl --id acl-add --db=tcp:192.0.2.1:6641 show", "ovn-nbctl show -- --db=tcp:192.0.2.1:6641 show",
		"ovn-nbctl --pidfile show", "ovn-nbctl -v show"} {
		if got, err := ReadScript(strings.NewReader(line)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %q %v", line, got, err)
		}
	}
}

func TestRefusalNamesTheLine(t *testing.T) {
	_, err := ReadScript(strings.NewReader("ovn-nbctl ls-add a\n\nrm x\n"))
	if err == nil || !strings.Contains(err.Error(), "line 3: ") {
		t.Error(err)
	}
}

func FuzzReadScript(f *testing.F) {
	f.Add("ovn-nbctl ls-add 'a b' \\\n # x\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		change, err := ReadScript(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, args := range change {
			if again, err := checked(args); err != nil || !slices.Equal(again, args) {
				t.Errorf("%q: %q %v", args, again, err)
			}
		}
	})
}
