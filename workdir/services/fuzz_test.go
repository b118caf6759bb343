package services

import (
	"path/filepath"
	"testing"

	"ovs-offline/test/check/files"
)

// FuzzRead reads any file of services: each VIP that it has is found again.
func FuzzRead(f *testing.F) {
	f.Add(`[{"namespace":"a","name":"b","addresses":["10.0.0.1","fd00::1","None"],"ports":[{"protocol":"TCP","port":1}]}]`)
	f.Add(`[{"addresses":["fe80::1%a"],"ports":[{"port":0}]}]`)
	f.Add(`[null]`)
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "services.json")
		files.Write(t, path, text)
		names, err := Read(path)
		if err != nil {
			return
		}
		for vip, of := range names.All {
			if of.Protocol != "" && names.Of(of.Protocol, vip.String()) != of.Name {
				t.Errorf("%q: %s %v is not found", text, of.Protocol, vip)
			}
		}
	})
}
