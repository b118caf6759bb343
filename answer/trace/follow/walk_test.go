package follow

import (
	"testing"

	"ovs-offline/pkg/openflow/pass"
)

// TestForgottenRecirculationIsNoDrop has what ovs-vswitchd prints of a recirculation that
// has expired, which takes a second if the clock runs.
func TestForgottenRecirculationIsNoDrop(t *testing.T) {
	passes, err := pass.Parse("Flow: recirc_id=0x999,tcp,in_port=ANY\n\nbridge(\"br-int\")\n----------------\n >>>> Recirculation context not found for ID 2457 <<<<\n\nFinal flow: unchanged\nMegaflow: recirc_id=0x999,eth,tcp\nDatapath actions: drop\nTranslation failed (No recirculation context), packet is dropped.\n")
	if err != nil {
		t.Fatal(err)
	}
	if b := dropIn(passes[0]); b.Kind != Undetermined {
		t.Errorf("%s: %s", b.Kind, b.Why)
	}
}
