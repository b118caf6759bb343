package k8s

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
)

// TestCksumEqualsTheProgram compares the sums with those of the installed cksum.
func TestCksumEqualsTheProgram(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 2, 3, 255, 256, 257, 65535, 65536, 1<<20 + 7} {
		data := make([]byte, size)
		random.Read(data)
		c := exec.Command("cksum")
		c.Stdin = bytes.NewReader(data)
		want, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		var sum cksum
		for len(data) > 0 { // in pieces, as from a stream
			n := min(len(data), 4099)
			sum.Write(data[:n])
			data = data[n:]
		}
		for range 2 { // calling sum changes nothing
			if got := fmt.Sprintf("%d %d", sum.sum(), sum.size); got != strings.TrimSpace(string(want)) {
				t.Errorf("%d bytes: %s, cksum says %s", size, got, want)
			}
		}
	}
}
