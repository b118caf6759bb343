package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"ovs-offline/internal/fault"
)

func TestTheFirstClassInTheChainCounts(t *testing.T) {
	unknown := fault.Wrap(fault.Usage, errors.New("no such node"))
	for name, c := range map[string]struct {
		err  error
		want fault.Class
	}{
		"nil":       {nil, fault.Failure},
		"none":      {errors.New("failed"), fault.Failure},
		"wrapped":   {fmt.Errorf("set: %w", unknown), fault.Usage},
		"joined":    {errors.Join(errors.New("failed"), unknown), fault.Usage},
		"outermost": {fault.Wrap(fault.Undetermined, unknown), fault.Undetermined},
	} {
		if got := fault.Of(c.err); got != c.want {
			t.Errorf("%s: class %d, want %d", name, got, c.want)
		}
	}
	if !errors.Is(fmt.Errorf("set: %w", unknown), unknown) || fault.Wrap(fault.Usage, nil) != nil {
		t.Error("a class hides the error, or makes one of nil")
	}
}
