package workdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"

	"ovs-offline/internal/interrupt"
)

// SumOf returns the sha256 of a file, as File.SHA256 has it.
func SumOf(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, interrupt.Reader(ctx, file))
	return hex.EncodeToString(sum.Sum(nil)), err
}
