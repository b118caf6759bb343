package services

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNamesOfServices looks services up by the VIPs of load balancers.
func TestNamesOfServices(t *testing.T) {
	text, err := Marshal([]Service{
		{"front", "web", []string{"10.96.222.47", "fd00:10:96::bbe8"}, []Port{{"TCP", 80}, {"UDP", 53}}},
		{"blue", "slr-inner", []string{"None", "172.30.0.100"}, []Port{{"TCP", 8088}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "services.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ protocol, vip, want string }{
		{"tcp", "10.96.222.47:80", "front/web"}, {"", "[fd00:10:96::bbe8]:80", "front/web"},
		{"udp", "10.96.222.47:53", "front/web"},
		{"udp", "10.96.222.47:80", ""}, {"tcp", "172.30.0.100:8088", "blue/slr-inner"}, {"tcp", "10.96.222.47", ""},
		{"tcp", "^VIP", ""},
	} {
		if got := names.Of(c.protocol, c.vip); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.protocol, c.vip, got, c.want)
		}
	}
}

// TestServicesThatAreNoFile reads what can't be services.
func TestServicesThatAreNoFile(t *testing.T) {
	folder := t.TempDir()
	if names, err := Read(filepath.Join(folder, "none.json")); err != nil || names.Of("tcp", "10.96.0.1:443") != "" {
		t.Errorf("no file: %v %v", names, err)
	}
	broken := filepath.Join(folder, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{broken, folder} {
		if _, err := Read(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
