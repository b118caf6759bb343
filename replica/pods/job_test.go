package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"ovs-offline/test/check/expect"
)

func TestParseToleration(t *testing.T) {
	for text, want := range map[string]corev1.Toleration{
		"dedicated=debug:NoSchedule": {Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "debug",
			Effect: corev1.TaintEffectNoSchedule},
		"dedicated=:NoExecute": {Key: "dedicated", Operator: corev1.TolerationOpEqual,
			Effect: corev1.TaintEffectNoExecute},
		"dedicated:NoSchedule": {Key: "dedicated", Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule},
		"example.com/dedicated": {Key: "example.com/dedicated", Operator: corev1.TolerationOpExists},
	} {
		got, err := ParseToleration(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		expect.Equal(t, got, want, text)
	}
	for _, text := range []string{"", ":NoSchedule", "=a", "a=b:Never"} {
		if got, err := ParseToleration(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}
