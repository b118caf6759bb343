package cmd

import "testing"

func TestSizesHaveUnits(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1000000": 1000000, "512B": 512, "1KiB": 1 << 10, "100GiB": 100 << 30,
		"20 gib": 20 << 30, "1.5GiB": 3 << 29, "10g": 10 << 30, "3TiB": 3 << 40} {
		var got int64
		if err := (size{&got}).Set(text); err != nil || got != want {
			t.Errorf("%q is %d bytes (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1KiBs", "99999999999TiB"} {
		got := int64(-1)
		if err := (size{&got}).Set(text); err == nil {
			t.Errorf("%q is taken as %d bytes", text, got)
		}
	}
	for bytes, want := range map[int64]string{0: "0B", 1000: "1000B", 1 << 10: "1KiB", 100 << 30: "100GiB",
		3 << 29: "1.5GiB"} {
		if got := (size{&bytes}).String(); got != want {
			t.Errorf("%d bytes are printed as %s, want %s", bytes, got, want)
		}
	}
}
